"""The pytest items of the plugin, and the test functions that they run."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import ismethod
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest

from pytest_dstfuzz.campaign.results import TurnResult, turn_id
from pytest_dstfuzz.comparisons.registry import as_comparison
from pytest_dstfuzz.config import Settings, build_settings, check_variant, shard_text
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import KEPT_BACK, UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.plugin.options import GivenOption, spell_option
from pytest_dstfuzz.plugin.relations import PARTED, SUITES, each_of, turns_for
from pytest_dstfuzz.plugin.selection import NODE, OWN_TESTS
from pytest_dstfuzz.plugin.turn import KEYWORD, DstTurn
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.relations.registry import as_relation
from pytest_dstfuzz.relations.relation import Side
from pytest_dstfuzz.report.explain import bracket, keyword, unlike
from pytest_dstfuzz.search.registry import as_search, default_search


class TurnParam(NamedTuple):
    """The parameter of an item of a parametrised test."""

    settings: Settings
    #: Names of the settings from markers of the test.
    marked: tuple[str, ...]
    dialogue: Dialogue
    turn_index: int
    #: Readable id of the turn, and of the item. The latter includes the relation if there are
    #: several.
    turn_id: str
    item_id: str

    def with_options(self, options: Mapping[str, object]) -> TurnParam:
        """Return the parameter with additional options, as if a marker had set them."""
        if not options:
            return self
        settings = self.settings.replace_options(**options)
        return self._replace(settings=settings, marked=tuple(sorted({*self.marked, *options})))


def param_of(item: pytest.Item) -> TurnParam | None:
    """Return the parameter of an item, or ``None`` if the item does not test a turn."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    param = params.get("dst_turn")
    return param if isinstance(param, TurnParam) else None


def parametrise(metafunc: pytest.Metafunc, values: Mapping[str, Any], context: RunContext) -> None:
    """Parametrise a test by relations and sampled turns.

    If the session's settings are wrong, there are no items, and the session ends after collection.
    """
    settings = context.settings
    params: list[Any] = []
    if context.mistake is None and context.stored is None:
        if values:
            values = {**_search_of(values, settings), **values}
            settings = build_settings(values, settings)
            context.check(settings)
        suite = SUITES[settings.reply.outcome] if is_own(metafunc.definition) else {}
        side = suite.get(metafunc.function.__name__)
        params = list(_params(settings, tuple(sorted(values)), side, context))
    ids = [param.item_id for param in params]
    if not params and (told := _why_none(settings, context)):
        # For a test without items, pytest may report an error, depending on the ini file.
        params, ids = [pytest.param(None, marks=pytest.mark.skip(reason=told))], ["none"]
    metafunc.parametrize("dst_turn", params, ids=ids, indirect=True)


def _search_of(values: Mapping[str, Any], session: Settings) -> dict[str, Any]:
    """Return the default search for a marker with another profile, if the search differs.

    The default search of a profile with a noise model cannot run in another profile.
    """
    if "validity" not in values or default_search(session) != session.variant.search:
        return {}
    own = default_search(session.replace_options(validity=values["validity"]))
    return {} if own == session.variant.search else {"search": own}


def _why_none(settings: Settings, context: RunContext) -> str:
    """Return the reason why a test has no turns. Return ``""`` if this is a mistake."""
    if context.stored is not None:
        return "--dst-results judges stored results and does not call the tracker"
    shard = settings.data.shard
    return "" if shard is None else f"part {shard_text(shard)} has no dialogues"


def _params(
    settings: Settings, marked: tuple[str, ...], side: Side | None, context: RunContext
) -> Iterator[TurnParam]:
    """Yield the parameters of a test. ``side`` restricts them to relations of one side."""
    turns = context.turns(settings)
    for one in each_of(settings, context.relations(settings)):
        if side in (None, one.relation.side):
            for dialogue, index in turns_for(one.relation, turns):
                name = turn_id(context.data, dialogue.id, index)
                yield TurnParam(one.settings, marked, dialogue, index, name, name + one.suffix)


def make_selectable(items: Iterable[pytest.Item]) -> None:
    """Add a keyword to items if ``-k`` cannot select them by name.

    Ids of dialogues are free text, but ``-k`` accepts neither blanks nor parentheses and ignores
    case.
    """
    about = [(item, param) for item in items if (param := param_of(item)) is not None]
    names = Counter(item.name.lower() for item in {item.name: item for item, _ in about}.values())
    for item, param in about:
        alone = names[item.name.lower()] == 1
        word = keyword(item.name) if alone else unlike(item.name)
        if word != item.name:
            item.stash[KEYWORD] = word
            item.extra_keyword_matches.add(word)
        # The commands of reports have this word. The name may have escaped characters and other
        # parameters.
        if (word := bracket(keyword(param.turn_id))) not in item.name:
            item.extra_keyword_matches.add(word)


def own_settings(settings: Settings, base: Settings) -> str:
    """Return the settings of a test that differ from the session's, written as a marker.

    Search and relation are not included, because fixtures may set them. They are recorded
    separately.
    """
    own, common = settings.options(), base.options()
    return ", ".join(
        f"{name}={list(value) if isinstance(value, tuple) else value!r}"
        for name, value in own.items()
        if name not in ("search", "relation") and value != common[name]
    )


def properties(result: TurnResult, settings: Settings) -> list[tuple[str, object]]:
    """Return the properties of a turn for --junitxml."""
    outcomes = [variant.outcome for variant in result.variants]
    shown: list[tuple[str, object]] = [
        ("dst_turn", result.id),
        ("dst_outcome", result.outcome),
        ("dst_variants", len(outcomes)),
        ("dst_valid", sum(variant.valid for variant in result.variants)),
        ("dst_violations", outcomes.count("violation")),
        ("dst_seed", settings.variant.seed),
    ]
    if result.relation != "metamorphic":
        shown.append(("dst_relation", result.relation))
    failed = [item.failure for item in result.violations if item.failure not in (None, "changed")]
    if failed:
        shown.append(("dst_failure", ", ".join(map(str, dict.fromkeys(failed)))))
    apart = [change.distance for item in result.violations for change in item.changed_slots]
    if distances := [distance for distance in apart if distance is not None]:
        shown.append(("dst_distance", f"{max(distances):.4f}"))
    if result.reason:
        shown.append(("dst_reason", KEPT_BACK if settings.output.redact else result.reason))
    return shown


def place_of(item: pytest.Item) -> tuple[str, int] | None:
    """Return file and line of a test for GitHub, or ``None`` if the suite has no such file.

    The path is relative to the root of the repository. If the root is unknown, the path is relative
    to the folder where pytest was started.
    """
    file, line, _ = item.location
    path = item.config.rootpath / file
    if line is None or not path.is_file() or is_own(item):
        return None
    root = Path(os.environ.get("GITHUB_WORKSPACE") or item.config.invocation_params.dir)
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return shown.as_posix(), line + 1


def test_belief_state_survives(dst_turn: DstTurn) -> None:
    """The meaning is unchanged, so the predicted belief state must be unchanged, too."""
    # A fixture may provide a relation of either side.
    dst_turn.assert_holds()


def test_belief_state_follows(dst_turn: DstTurn) -> None:
    """The meaning has changed, so the predicted belief state must change as expected."""
    dst_turn.assert_holds()


def test_reply_survives(dst_turn: DstTurn) -> None:
    """The meaning is unchanged, so the bot's reply must have the same content."""
    dst_turn.assert_holds()


def test_reply_follows(dst_turn: DstTurn) -> None:
    """The meaning has changed, so the bot's reply must say something else."""
    dst_turn.assert_holds()


def test_tool_calls_survive(dst_turn: DstTurn) -> None:
    """The meaning is unchanged, so the assistant must make the same calls."""
    dst_turn.assert_holds()


def test_tool_calls_follow(dst_turn: DstTurn) -> None:
    """The meaning has changed, so the tool calls must change as expected."""
    dst_turn.assert_holds()


class OwnModule(pytest.Module):
    """A collector for a module of the plugin. It ignores the user's naming conventions."""

    #: Names of the tests to collect.
    wanted: Collection[str] = OWN_TESTS

    def funcnamefilter(self, name: str) -> bool:
        """Return whether to collect a function. Ignore ``python_functions``."""
        return name in self.wanted

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002  # there is no test class
        """Collect no class."""
        return False


def own_items(
    place: pytest.Collector, file: str = __file__, wanted: Collection[str] = OWN_TESTS
) -> Iterator[pytest.Item]:
    """Collect tests in a module of the plugin: by default the built-in suite.

    The tests use the fixtures of their place: a file, a folder, or the session. Their ids begin
    with the same word on every machine.
    """
    node = f"{NODE}::{place.nodeid}" if place.nodeid else NODE
    module = OwnModule.from_parent(place, path=Path(file), name=NODE, nodeid=node)
    module.wanted = wanted
    return place.session.genitems(module)


def place_of_tracker(item: pytest.Item) -> pytest.Collector | None:
    """Return the place of an item's fixture ``dst_model``, or ``None`` if no other test can use it.

    Only the methods of a class can use its fixtures, and a test has its parameters for itself.
    """
    definition = _definitions(item)["dst_model"][-1]
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "dst_model" in params and _find_parameter(item, "dst_model") is None:
        return None
    within = (node for node in item.listchain() if isinstance(node, pytest.Collector))
    place = next((node for node in within if node.nodeid == definition.baseid), item.session)
    return None if isinstance(place, pytest.Class) else place


def suite_items(session: pytest.Session, context: RunContext) -> Iterator[pytest.Item]:
    """Collect the built-in suite: two tests, one of them for relations that expect a change.

    This works even if the settings are wrong. In that case, the session ends after collection.
    """
    sides = {"should-not-change"}
    if context.mistake is None:
        sides = {relation.side for relation in context.relations(context.settings)}
    suite = SUITES[context.settings.reply.outcome]
    return own_items(session, wanted=[name for name, side in suite.items() if side in sides])


def is_own(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether the plugin added a test."""
    return node.nodeid.startswith(f"{NODE}::")


#: Fixtures that determine the result of a turn, in addition to the settings.
_DECIDING = (
    *("dst_model", "dst_search", "dst_relation", "dst_outcome", "dst_compare"),
    "dst_lexicon",
)
#: Those of them that determine the tracker and the kind of its answers.
_OF_TRACKER = ("dst_model", "dst_outcome")
#: Fixture without ``dst_`` -> the word for its value in messages, if it differs.
_CALLED = {"compare": "comparison"}
#: Parameters of these types are compared by equality, others by identity.
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class MadeObject:
    """The object that a fixture returned for a test, by a name that holds in all processes."""

    fixture: str
    scope: str
    #: Name of the test, for the message.
    test: str = field(compare=False)
    #: Origin of the test, see `Origins`.
    origin: str
    #: ``""`` if all tests of the origin get one object.
    name: str = ""

    @property
    def source(self) -> str:
        """The name of the object's source for all processes, which may share its answers."""
        return f"{self.origin} {self.name}"

    @property
    def refusal(self) -> str:
        """The message if another test of the origin got another object."""
        return (
            f"the fixture {self.fixture} has the scope '{self.scope}' and returned a new object "
            f"for {self.test}. Make it session-scoped: @pytest.fixture(scope='session')"
        )


class CampaignKey(NamedTuple):
    """Two tests with the same key share a campaign."""

    #: Settings of the tests, and the same with the values of the fixtures.
    settings: Settings
    effective: Settings
    #: Origin of the tracker, and its ``id()``.
    origin: str
    model_id: int
    #: Compared by identity.
    lexicon: Lexicon
    #: ``id()`` of a fixture's value if it is not a name, otherwise 0.
    search_id: int = 0
    relation_id: int = 0
    compare_id: int = 0
    #: The objects of the fixtures, that of the tracker first, see `FixtureValues.made`.
    made: tuple[MadeObject, ...] = ()


class Origins:
    """Names the origin of test results: the fixtures and parameters that determine them."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        #: Name of a tracker -> the tokens of all trackers that would have it, each with its number.
        self._trackers: dict[str, dict[Hashable, int]] = {}
        #: Cached tokens, because each item's token is needed several times.
        self._tokens: dict[pytest.Item, Hashable] = {}

    def learn(self, items: Iterable[pytest.Item]) -> None:
        """Name each origin after the first of its items in alphabetical order."""
        for item in items:
            token, name = _token(item), _name(item)
            self._tokens[item] = token
            self._names[token] = min(self._names.get(token, name), name)
        # Parameters with dashes may give the tests of two origins the same ids.
        seen = Counter[str]()
        for token, name in self._names.items():
            seen[name] += 1
            if seen[name] > 1:
                self._names[token] = f"{name} ({seen[name]})"

    def model(self, item: pytest.Item, asked: Settings, base: Settings) -> str:
        """Return the name of an item's tracker and kind of answer.

        It shows where a suite defines the tracker, with the parameters. ``""`` is the tracker of
        the session with the session's kind of answer. If several trackers would have one name, all
        but the first of them get a number.

        Args:
            item: the test.
            asked: the settings of the test.
            base: the settings of the session.
        """
        places = [_place(item, name) for name in _OF_TRACKER]
        if (outcome := asked.reply.outcome) != base.reply.outcome:
            places.append(outcome)
        name = ", ".join(filter(None, places))
        known = self._trackers.setdefault(name, {})
        number = known.setdefault(_token(item, _OF_TRACKER), len(known)) if name else 0
        return f"{name} ({number + 1})" if number else name

    def of(self, item: pytest.Item) -> str:
        """Return the name of an item's origin. All tests with the same tracker have one origin."""
        token = self._tokens[item] if item in self._tokens else _token(item)
        return self._names[token] if token in self._names else _name(item)


class FixtureValues:
    """The checked values of a session's fixtures. Each fixture must keep one value."""

    def __init__(self, origins: Origins, relations: str, *, shared: bool = False) -> None:
        """Store the shared origins and the ``relations`` of the session.

        ``shared`` says whether other processes run tests of the same origins.
        """
        self._origins = origins
        self._relations = relations
        self._shared = shared
        #: ``id()`` of an object -> the object, and its name in a module.
        self._names: dict[int, tuple[object, str]] = {}
        #: (origin, name of a fixture) -> its first value.
        self._made: dict[tuple[str, str], object] = {}
        #: ``id()`` of a search, relation or comparison -> the object, and the checked version.
        self._given: dict[int, tuple[object, Any]] = {}

    def own(self, value_id: int) -> Any:
        """Return the value of a fixture by its id in a `CampaignKey`. The id 0 returns ``None``."""
        return self._given[value_id][1] if value_id else None

    def key(
        self,
        item: pytest.Item,
        param: TurnParam,
        model: object,
        chosen: Mapping[str, object],
        lexicon: Lexicon,
    ) -> CampaignKey:
        """Return the key of a test's campaign. All fixtures must have their values."""
        if not isinstance(lexicon, Lexicon):
            raise UserError(
                "the fixture dst_lexicon must return a lexicon, such as "
                f"load_lexicon().with_sources(...), not {describe(lexicon)}"
            )
        settings = param.settings
        names = ("variant", "variants")
        one, all_of = (spell_option(name, settings, name in param.marked) for name in names)
        check_variant(settings.variant, f" ({one} with {all_of} at {item.name})")
        origin = self._origins.of(item)
        given = {"dst_model": model, "dst_lexicon": lexicon}
        ids = {"search": 0, "relation": 0, "compare": 0}
        self._refuse_for_several(item, param, chosen.get("relation"))
        for name, value in chosen.items():
            # The plugin's own fixture returns all relations of the session, but each item has one.
            if name in param.marked or (name == "relation" and value == self._relations):
                continue
            known: Any = value
            # ``None`` means the default comparison, which is not a name in the settings.
            if not isinstance(value, str) and (name, value) != ("compare", None):
                given[f"dst_{name}"] = value
                known, ids[name] = self._checked(name, value, settings).name, id(value)
            settings = settings.replace_options(**{name: known})
        made = tuple(self.made(item, fixture, value) for fixture, value in given.items())
        for made_object in made:
            self._refuse_another(made_object, given[made_object.fixture])
        key = (param.settings, settings, origin, id(model), lexicon)
        return CampaignKey(*key, ids["search"], ids["relation"], ids["compare"], made)

    def made(self, item: pytest.Item, fixture: str, value: object) -> MadeObject:
        """Return the object that a fixture returned, with a name if other processes make it, too.

        The name is that of the object in a module. Any other object belongs to the place of the
        test for which the fixture made it: in another process, it may be another one.
        """
        scope = scope_of(item, fixture)
        about = MadeObject(fixture, scope, item.name, self._origins.of(item))
        params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        # The origin has the parameters, and the folder of a package.
        known = scope in ("session", "package") or any(one is value for one in params.values())
        if known or not self._shared:
            return about
        if id(value) not in self._names:
            # Keep a reference to the value: otherwise a new one could get the same id.
            self._names[id(value)] = value, _name_in_module(value)
        return replace(about, name=self._names[id(value)][1] or _place_of_scope(item, scope))

    def _checked(self, name: str, value: object, settings: Settings) -> Any:
        """Return the object that a fixture returned instead of a name. Check each object once."""
        if id(value) not in self._given:
            where = (
                f"the fixture dst_{name} returned neither a name nor a {_CALLED.get(name, name)}"
            )
            if name == "outcome":
                raise UserError(
                    f"the fixture dst_outcome must return a text, not {describe(value)}"
                )
            found: object
            if name == "compare":
                found = as_comparison(value, where, settings.reply)
            else:
                found = (as_search if name == "search" else as_relation)(value, where)
            # Keep a reference to the value: otherwise a new one could get the same id.
            self._given[id(value)] = value, found
        return self._given[id(value)][1]

    def _refuse_for_several(self, item: pytest.Item, param: TurnParam, given: object) -> None:
        """Raise an error if a fixture returns one relation but the test has several."""
        names = self._relations.split(PARTED)
        if "relation" not in param.marked and given != self._relations and names[1:]:
            raise UserError(
                f"the fixture dst_relation returns one relation for {item.name}, but "
                f"--dst-relation={self._relations} names several. Name one, or replace the fixture "
                "by @pytest.mark.dst(relation=...) at the test"
            )

    def _refuse_another(self, made: MadeObject, value: object) -> None:
        """Raise an error if a fixture makes a new object for each test.

        Each new tracker would receive all requests again. `ResultCollector` compares the objects of
        several processes.
        """
        first = self._made.setdefault((made.origin, made.fixture), value)
        # Even a session-scoped fixture is created again if its parameter alternates.
        if first is not value and made.scope != "session":
            raise UserError(made.refusal)


def _name_in_module(value: object) -> str:
    """Return the name of a module's attribute that is or directly contains an object, or ``""``."""
    found = []
    for place, module in [*sys.modules.items()]:
        if not isinstance(module, ModuleType):
            continue
        # A module that loads itself late must not be loaded.
        for name, one in [*ModuleType.__getattribute__(module, "__dict__").items()]:
            inner = [*one.values()] if type(one) is dict else one
            if one is value:
                found.append(f"{place}:{name}")
            elif type(inner) in (list, tuple):
                found += [f"{place}:{name}:{at}" for at, it in enumerate(inner) if it is value]
    return min(found, default="")


def _place_of_scope(item: pytest.Item, scope: str) -> str:
    """Return the id of the node for which a fixture of this scope makes one object."""
    if scope == "function":
        return item.nodeid
    within = item.getparent(pytest.Class) if scope == "class" else None
    return (within or item.getparent(pytest.Module) or item).nodeid


def scope_of(item: pytest.Item, fixture: str) -> str:
    """Return the scope of an item's fixture by name."""
    definitions = _definitions(item).get(fixture)
    return str(definitions[-1].scope) if definitions else "function"


def brings_its_own(item: pytest.Item, fixture: str) -> bool:
    """Return whether a suite overrides a fixture of the plugin for an item."""
    return len(_definitions(item).get(fixture, ())) > 1


#: Fixtures whose value has no name of its own, so that reports would show the option.
_TYPED: Final = ("dst_model", "dst_compare")
#: A fixture with one of these arguments may read the command line.
_READERS: Final = frozenset({"request", "pytestconfig"})
#: Prefix of the modules of this package.
_PACKAGE: Final = "pytest_dstfuzz."


def refuse_replaced_options(items: Sequence[pytest.Item], given: Iterable[GivenOption]) -> None:
    """Raise an error if fixtures replace a typed option in all tests that use it.

    A fixture replaces a value of the ini file silently, as everywhere in pytest. But an option on
    the command line would name a tracker or a comparison that no test uses.
    """
    for option in given:
        fixture = f"dst_{option.name}"
        # The outcome may have chosen the shipped assistant.
        typed = option.on_command_line and option.name in option.shown_as
        if not typed or fixture not in _TYPED:
            continue
        asking = [
            item
            for item in items
            if fixture in getattr(item, "fixturenames", ())
            and ((param := param_of(item)) is None or option.name not in param.marked)
        ]
        if asking and all(_replaces(item, fixture) for item in asking):
            place = _place(asking[0], fixture).rpartition("::")[0]
            # The value may be an address with a password.
            raise UserError(
                f"{option.shown_as} has no effect: the fixture {fixture} of "
                f"{place or 'the root conftest.py or a plugin'} "
                "replaces it in all selected tests. Leave out the option or the fixture, or let "
                f"the fixture use the option: def {fixture}({fixture})"
            )


def _replaces(item: pytest.Item, fixture: str) -> bool:
    """Return whether a suite overrides a fixture without a look at the value of the option."""
    used = _definitions(item).get(fixture, ())[-1]
    if used.func.__module__.startswith(_PACKAGE):
        return False
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    # A fixture with parameters needs the request for them.
    readers = {fixture} if fixture in params else {fixture, *_READERS}
    return readers.isdisjoint(_walk_fixtures(item, used.argnames))


def _walk_fixtures(item: pytest.Item, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of fixtures and of all that they use."""
    found = list(names)
    for name in found:
        yield name
        # A fixture that overrides another may use it, including its own dependencies.
        needed = (other for one in _definitions(item).get(name, ()) for other in one.argnames)
        found += dict.fromkeys(other for other in needed if other not in found)


def _name(item: pytest.Item) -> str:
    """Return the name of a test without its turn and relation."""
    param = param_of(item)
    name = item.nodeid if param is None else item.nodeid.replace(param.item_id, "")
    # The built-in suite counts as one test for both sides.
    for first, *others in SUITES.values() if is_own(item) else ():
        for other in others:
            name = name.replace(f"::{other}[", f"::{first}[")
    return name


def _token(item: pytest.Item, fixtures: Iterable[str] = _DECIDING) -> Hashable:
    """Return the fixtures that determine an item's results, with the parameters they depend on."""
    definitions = _definitions(item)
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    found: list[Hashable] = []
    for name in _walk_fixtures(item, fixtures):
        used = definitions.get(name, ())[-1:]
        found += [(name, definition.baseid, definition.func) for definition in used]
        if name in params:
            found.append((name, _identity(params[name])))
    return tuple(found)


def _place(item: pytest.Item, fixture: str) -> str:
    """Return the place of a suite's fixture for an item, with its parameters, or ``""``.

    The place is the innermost one of the fixture and of those that it uses. So a fixture that uses
    another one in each test file has several names.
    """
    definitions = _definitions(item)
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    shown, places = list[str](), {""}
    for name in _walk_fixtures(item, [fixture]):
        if name in params:
            shown.append(_show_parameter(item, name))
        places |= {one.baseid for one in definitions.get(name, ())[-1:]}
    if not (shown or brings_its_own(item, fixture)):
        return ""
    where = "::".join(filter(None, (max(places, key=len), fixture)))
    return f"{where}[{','.join(shown)}]" if shown else where


def _show_parameter(item: pytest.Item, name: str) -> str:
    """Return the name of a fixture's parameter, which does not depend on the order if possible."""
    callspec: Any = item.callspec  # type: ignore[attr-defined]  # it has parameters
    value = callspec.params[name]
    found = _find_parameter(item, name)
    if found is None:  # The test itself has the parameters.
        return _spell(value) or _id_of_test(callspec, name) or name
    own = str(found.id) if isinstance(found.id, (str, int, float)) else _spell(value)
    return own or f"{name}{found.number}"


def _id_of_test(callspec: Any, name: str) -> str:
    """Return pytest's id of a parameter that a test has, or ``""`` if it belongs to several."""
    # pytest has no public API for the ids, which it joins by dashes.
    ids = getattr(callspec, "_idlist", ())
    return (
        str(dict(zip(callspec.params, ids, strict=True))[name])
        if len(ids) == len(callspec.params)
        else ""
    )


class _Parameter(NamedTuple):
    """A parameter of a fixture: its place in the list, and the id that the suite gives it."""

    number: int
    id: object


def _find_parameter(item: pytest.Item, name: str) -> _Parameter | None:
    """Return the item's parameter of a fixture, or ``None`` if the test itself has it."""
    callspec: Any = item.callspec  # type: ignore[attr-defined]  # it has parameters
    number = callspec.indices.get(name, 0)
    with_params = (one for one in reversed(_definitions(item)[name]) if one.params is not None)
    definition = next(with_params, None)
    if definition is None or number >= len(definition.params):
        return None
    value, given = definition.params[number], None
    if hasattr(value, "marks"):  # pytest.param has the value, its marks and its id.
        given, (value,) = value.id, value.values
    if value is not callspec.params[name]:
        return None
    if given is None and (ids := definition.ids) is not None:
        given = ids(value) if callable(ids) else ids[number]
    return _Parameter(number, given)


def _spell(value: object) -> str:
    """Return a plain value, or the name of an object with its module, or ``""``."""
    if isinstance(value, _PLAIN):
        return str(value)
    name, module = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
    # Methods of two objects, and functions inside of functions, may have one name.
    if not (isinstance(name, str) and isinstance(module, str)) or "<" in name or ismethod(value):
        return ""
    return f"{module}.{name}"


def _identity(value: object) -> Hashable:
    return (type(value), value) if isinstance(value, _PLAIN) else id(value)


def _definitions(item: pytest.Item) -> Mapping[str, Any]:
    # pytest has no public API for the fixtures of an item before it runs.
    info = getattr(item, "_fixtureinfo", None)
    definitions: Mapping[str, Any] = getattr(info, "name2fixturedefs", {})
    return definitions
