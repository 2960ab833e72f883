"""Items of pytest, and the tests that they come from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dstfuzz.campaign.results import TurnResult, turn_id
from pytest_dstfuzz.comparisons.registry import as_comparison
from pytest_dstfuzz.config import Settings, build_settings, check_variant, shard_text
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.plugin.options import spelled
from pytest_dstfuzz.plugin.relations import PARTED, SUITES, each_of, turns_for
from pytest_dstfuzz.plugin.selection import NODE, OWN_TESTS
from pytest_dstfuzz.plugin.turn import KEYWORD, DstTurn
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.relations.registry import as_relation
from pytest_dstfuzz.relations.relation import Side
from pytest_dstfuzz.report.explain import keyword, unlike
from pytest_dstfuzz.report.redact import KEPT_BACK
from pytest_dstfuzz.search.registry import as_search


class TurnParam(NamedTuple):
    """What one item of a parametrised test is about."""

    settings: Settings
    #: Names of the settings that markers of the test gave.
    marked: tuple[str, ...]
    dialogue: Dialogue
    turn_index: int
    #: Readable id of the turn, and of the item: with the relation where several are told apart.
    turn_id: str
    item_id: str

    def with_options(self, options: Mapping[str, object]) -> TurnParam:
        """Return the same under further options, as if a marker had given them."""
        if not options:
            return self
        settings = self.settings.replace_options(**options)
        return self._replace(settings=settings, marked=tuple(sorted({*self.marked, *options})))


def param_of(item: pytest.Item) -> TurnParam | None:
    """Return what an item is about, if it is about a turn."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    param = params.get("dst_turn")
    return param if isinstance(param, TurnParam) else None


def parametrise(metafunc: pytest.Metafunc, values: Mapping[str, Any], context: RunContext) -> None:
    """Make one item of a test for each relation and each turn that is sampled.

    Where the session's own settings are wrong there are none; it ends when collection is over.
    """
    settings = context.settings
    params: list[Any] = []
    if context.mistake is None and context.stored is None:
        if values:
            settings = build_settings(values, settings)
            context.check(settings)
        suite = SUITES[settings.reply.outcome] if is_own(metafunc.definition) else {}
        side = suite.get(metafunc.function.__name__)
        params = list(_params(settings, tuple(sorted(values)), side, context))
    ids = [param.item_id for param in params]
    if not params and (told := _why_none(settings, context)):
        # What pytest makes of no items at all may be an error: an ini file decides that.
        params, ids = [pytest.param(None, marks=pytest.mark.skip(reason=told))], ["none"]
    metafunc.parametrize("dst_turn", params, ids=ids, indirect=True)


def _why_none(settings: Settings, context: RunContext) -> str:
    """Say why a test is about no turn, where that is no mistake."""
    if context.stored is not None:
        return "a folder of results is judged, and the tracker is asked nothing"
    shard = settings.data.shard
    return "" if shard is None else f"no dialogue is of part {shard_text(shard)}"


def _params(
    settings: Settings, marked: tuple[str, ...], side: Side | None, context: RunContext
) -> Iterator[TurnParam]:
    """Yield what the items of a test are about; a ``side`` leaves out relations of the other."""
    turns = context.turns(settings)
    for one in each_of(settings, context.relations(settings)):
        if side in (None, one.relation.side):
            for dialogue, index in turns_for(one.relation, turns):
                name = turn_id(context.data, dialogue.id, index)
                yield TurnParam(one.settings, marked, dialogue, index, name, name + one.suffix)


def make_selectable(items: Iterable[pytest.Item]) -> None:
    """Give a keyword to every item that ``-k`` could not select, or not alone, by its name.

    Ids of dialogues are free text, but ``-k`` takes neither blanks nor parentheses, and
    upper and lower case are the same to it.
    """
    about = [(item, param) for item in items if (param := param_of(item)) is not None]
    names = Counter(item.name.lower() for item in {item.name: item for item, _ in about}.values())
    for item, param in about:
        alone = names[item.name.lower()] == 1
        word = keyword(item.name) if alone else unlike(item.name)
        if word != item.name:
            item.stash[KEYWORD] = word
            item.extra_keyword_matches.add(word)
        # What the summary shows of a turn; pytest spells odd ids in its own way.
        if (shown := keyword(param.turn_id)) not in item.name:
            item.extra_keyword_matches.add(f"[{shown}]")


def own_settings(settings: Settings, base: Settings) -> str:
    """Spell in what a test's settings differ from the session's, as its marker would.

    Not search and relation, which its fixtures may have given: they are told by themselves.
    """
    own, common = settings.options(), base.options()
    return ", ".join(
        f"{name}={list(value) if isinstance(value, tuple) else value!r}"
        for name, value in own.items()
        if name not in ("search", "relation") and value != common[name]
    )


def properties(result: TurnResult, settings: Settings) -> list[tuple[str, object]]:
    """Return what --junitxml shows of a turn."""
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
    """Return file and line of a test, as GitHub wants them; ``None`` for one that is no file's.

    The file is seen from the root of the repository where that is known, and else from where
    pytest was called.
    """
    file, line, _ = item.location
    path = item.config.rootpath / file
    if line is None or not path.is_file() or is_own(item):
        return None
    root = Path(os.environ.get("GITHUB_WORKSPACE") or item.config.invocation_params.dir)
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return shown.as_posix(), line + 1


def test_belief_state_survives(dst_turn: DstTurn) -> None:
    """What the user means is the same, so the predicted belief state must be."""
    # A fixture may give a relation of either side.
    dst_turn.assert_holds()


def test_belief_state_follows(dst_turn: DstTurn) -> None:
    """What the user means has changed, so the predicted belief state must change, and how."""
    dst_turn.assert_holds()


def test_reply_survives(dst_turn: DstTurn) -> None:
    """What the user means is the same, so the bot must say the same."""
    dst_turn.assert_holds()


def test_reply_follows(dst_turn: DstTurn) -> None:
    """What the user means has changed, so the bot must say something else."""
    dst_turn.assert_holds()


def test_tool_calls_survive(dst_turn: DstTurn) -> None:
    """What the user means is the same, so the assistant must call the same."""
    dst_turn.assert_holds()


def test_tool_calls_follow(dst_turn: DstTurn) -> None:
    """What the user means has changed, so the tool calls must change, and how."""
    dst_turn.assert_holds()


class OwnModule(pytest.Module):
    """A module of the plugin as a collector, whatever names the user's configuration gives."""

    #: Names of those of its tests that are wanted.
    wanted: Collection[str] = OWN_TESTS

    def funcnamefilter(self, name: str) -> bool:
        """Take the tests that the plugin has, also where ``python_functions`` was changed."""
        return name in self.wanted

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002  # there is no test class
        """Take no class."""
        return False


def own_items(
    session: pytest.Session, file: str = __file__, wanted: Collection[str] = OWN_TESTS
) -> Iterator[pytest.Item]:
    """Collect tests in a module of the plugin: by default the built-in suite.

    Their ids begin with the same word on every machine.
    """
    module = OwnModule.from_parent(session, path=Path(file), name=NODE, nodeid=NODE)
    module.wanted = wanted
    return session.genitems(module)


def suite_items(session: pytest.Session, context: RunContext) -> Iterator[pytest.Item]:
    """Collect the built-in suite: a test for each side that the relations of the run have.

    It survives where the settings are wrong: the session ends when collection is over.
    """
    sides = {"should-not-change"}
    if context.mistake is None:
        sides = {relation.side for relation in context.relations(context.settings)}
    suite = SUITES[context.settings.reply.outcome]
    return own_items(session, wanted=[name for name, side in suite.items() if side in sides])


def is_own(node: pytest.Item | pytest.Collector) -> bool:
    """Whether a test is one that the plugin adds."""
    return node.nodeid.startswith(f"{NODE}::")


#: Fixtures that decide what comes of a turn besides its settings.
_DECIDING = (
    *("dst_model", "dst_search", "dst_relation", "dst_outcome", "dst_compare"),
    "dst_lexicon",
)
#: Fixture without ``dst_`` -> what it gives that is no name, where that is called otherwise.
_CALLED = {"compare": "comparison"}
#: Parameters of these types are the same when they are equal; others only as one object.
_PLAIN = (str, int, float, bool, type(None))


class CampaignKey(NamedTuple):
    """What two tests must share to share a campaign."""

    #: Settings of the tests, and those with search and relation of the fixtures.
    settings: Settings
    effective: Settings
    #: Where the tracker came from, and the tracker itself.
    origin: str
    model_id: int
    #: Compared by identity.
    lexicon: Lexicon
    #: ``id()`` of what fixtures gave where it is no name, 0 otherwise.
    search_id: int = 0
    relation_id: int = 0
    compare_id: int = 0


class Origins:
    """Names what decides the results of a test besides its settings."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        #: Tokens of the items that were learned, each of which is asked for some times.
        self._tokens: dict[pytest.Item, Hashable] = {}

    def learn(self, items: Iterable[pytest.Item]) -> None:
        """Name the origins of all items, each by its first item in alphabetical order.

        Neither the order of the items nor the process changes a name.
        """
        for item in items:
            token, name = _token(item), _name(item)
            self._tokens[item] = token
            self._names[token] = min(self._names.get(token, name), name)

    def model(self, item: pytest.Item, asked: Settings, base: Settings) -> str:
        """Return the name of the tracker that an item gets, and of what is tested of its answers.

        It says where a suite makes the tracker, and by which parameters. ``""`` is the tracker of
        the session with the outcome of the session.

        Args:
            item: the test.
            asked: its settings.
            base: those of the session.
        """
        places = [_place(item, name) for name in ("dst_model", "dst_outcome")]
        if (outcome := asked.reply.outcome) != base.reply.outcome:
            places.append(outcome)
        return ", ".join(filter(None, places))

    def of(self, item: pytest.Item) -> str:
        """Return the name of an item's origin: that of every test that shares its tracker."""
        token = self._tokens[item] if item in self._tokens else _token(item)
        return self._names[token] if token in self._names else _name(item)


class FixtureValues:
    """What the fixtures of a session gave, checked; each fixture gives one thing."""

    def __init__(self, origins: Origins, relations: str) -> None:
        """Keep what tests share; ``relations`` are those that the session names."""
        self._origins = origins
        self._relations = relations
        #: By origin and name of a fixture: what it made first.
        self._made: dict[tuple[str, str], object] = {}
        #: By ``id()``: a search, a relation or a comparison, and the same with its answers checked.
        self._given: dict[int, tuple[object, Any]] = {}

    def own(self, value_id: int) -> Any:
        """Return what a fixture gave by the id of its `CampaignKey`; ``None`` for 0."""
        return self._given[value_id][1] if value_id else None

    def key(
        self,
        item: pytest.Item,
        param: TurnParam,
        model: object,
        chosen: Mapping[str, object],
        lexicon: Lexicon,
    ) -> CampaignKey:
        """Return what decides the result of a test, once all of it is known."""
        if not isinstance(lexicon, Lexicon):
            raise UserError(
                "the fixture dst_lexicon must return a lexicon, such as "
                f"load_lexicon().with_sources(...), not {describe(lexicon)}"
            )
        settings = param.settings
        names = ("variant", "variants")
        one, all_of = (spelled(name, settings, name in param.marked) for name in names)
        check_variant(settings.variant, f" ({one} with {all_of} at {item.name})")
        origin = self._origins.of(item)
        given = {"dst_model": model, "dst_lexicon": lexicon}
        ids = {"search": 0, "relation": 0, "compare": 0}
        self._refuse_for_several(item, param, chosen.get("relation"))
        for name, value in chosen.items():
            # The fixture of the plugin gives what the session names, of which each item has one.
            if name in param.marked or (name == "relation" and value == self._relations):
                continue
            known: Any = value
            # Without a comparison there is a default, which has no name among the settings.
            if not isinstance(value, str) and (name, value) != ("compare", None):
                given[f"dst_{name}"] = value
                known, ids[name] = self._checked(name, value, settings).name, id(value)
            settings = settings.replace_options(**{name: known})
        for fixture, value in given.items():
            self._refuse_another(item, origin, fixture, value)
        key = (param.settings, settings, origin, id(model), lexicon)
        return CampaignKey(*key, ids["search"], ids["relation"], ids["compare"])

    def _checked(self, name: str, value: object, settings: Settings) -> Any:
        """Return what a fixture gave in the place of a name, checked once."""
        if id(value) not in self._given:
            where = f"the fixture dst_{name} gave neither a name nor a {_CALLED.get(name, name)}"
            if name == "outcome":
                raise UserError(
                    f"the fixture dst_outcome must return a text, not {describe(value)}"
                )
            found: object
            if name == "compare":
                found = as_comparison(value, where, settings.reply)
            else:
                found = (as_search if name == "search" else as_relation)(value, where)
            # The value is kept with it: a new one could be given the same id otherwise.
            self._given[id(value)] = value, found
        return self._given[id(value)][1]

    def _refuse_for_several(self, item: pytest.Item, param: TurnParam, given: object) -> None:
        """Refuse a fixture that gives one relation to tests that were made for several."""
        names = self._relations.split(PARTED)
        if "relation" not in param.marked and given != self._relations and names[1:]:
            raise UserError(
                f"the fixture dst_relation gives one relation to {item.name}, and several are "
                f"named: --dst-relation={self._relations}. Name one, or write "
                "@pytest.mark.dst(relation=...) at the test in place of the fixture"
            )

    def _refuse_another(self, item: pytest.Item, origin: str, fixture: str, value: object) -> None:
        """Refuse a fixture that makes anew what a session shares.

        Each tracker would be asked for all that the ones before it were asked.
        """
        first = self._made.setdefault((origin, fixture), value)
        # Even a session's fixture is made anew, when its parameter changes to and fro.
        if first is not value and (scope := scope_of(item, fixture)) != "session":
            raise UserError(
                f"make {fixture} session-scoped: @pytest.fixture(scope='session'). Its scope is "
                f"'{scope}', and it made another {describe(value)} for {item.name}"
            )


def scope_of(item: pytest.Item, fixture: str) -> str:
    """Return the scope of the fixture that an item gets under a name."""
    definitions = _definitions(item).get(fixture)
    return str(definitions[-1].scope) if definitions else "function"


def brings_its_own(item: pytest.Item, fixture: str) -> bool:
    """Whether a suite overrides a fixture of the plugin for an item."""
    return len(_definitions(item).get(fixture, ())) > 1


def _name(item: pytest.Item) -> str:
    """Return the name of a test, whichever of its turns and relations it is about."""
    param = param_of(item)
    name = item.nodeid if param is None else item.nodeid.replace(param.item_id, "")
    # The built-in suite is one test, whichever sides its relations have.
    for first, *others in SUITES.values() if is_own(item) else ():
        for other in others:
            name = name.replace(f"::{other}[", f"::{first}[")
    return name


def _token(item: pytest.Item) -> Hashable:
    """Return the deciding fixtures of an item, and the parameters that they depend on."""
    definitions = _definitions(item)
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    found: list[Hashable] = []
    names = list(_DECIDING)
    for name in names:
        used = definitions.get(name, ())[-1:]
        found += [(name, definition.baseid, definition.func) for definition in used]
        if name in params:
            found.append((name, _identity(params[name])))
        # A fixture that overrides another of its name may use it, and with it what that uses.
        needed = (other for one in definitions.get(name, ()) for other in one.argnames)
        names += dict.fromkeys(other for other in needed if other not in names)
    return tuple(found)


def _place(item: pytest.Item, fixture: str) -> str:
    """Return where a suite overrides a fixture for an item, with its parameters, or ``""``."""
    definitions = _definitions(item)
    used = definitions.get(fixture, ())[-1:]
    callspec = getattr(item, "callspec", None)
    params: Mapping[str, Any] = getattr(callspec, "params", {})
    names, shown = [fixture], list[str]()
    for name in names:
        if name in params:
            shown.append(_shown(name, params[name], getattr(callspec, "indices", {})))
        needed = (other for one in definitions.get(name, ()) for other in one.argnames)
        names += dict.fromkeys(other for other in needed if other not in names)
    if not (shown or brings_its_own(item, fixture)):
        return ""
    where = "::".join([*(one.baseid for one in used if one.baseid), fixture])
    return f"{where}[{'-'.join(shown)}]" if shown else where


def _shown(name: str, value: object, indices: Mapping[str, int]) -> str:
    """Return a parameter as pytest shows most of them."""
    if isinstance(value, _PLAIN):
        return str(value)
    return str(getattr(value, "__name__", f"{name}{indices.get(name, 0)}"))


def _identity(value: object) -> Hashable:
    return (type(value), value) if isinstance(value, _PLAIN) else id(value)


def _definitions(item: pytest.Item) -> Mapping[str, Any]:
    # pytest has no public way to ask which fixtures an item gets before it runs.
    info = getattr(item, "_fixtureinfo", None)
    definitions: Mapping[str, Any] = getattr(info, "name2fixturedefs", {})
    return definitions
