"""What an item of a robustness test is about, the names that it goes by; the built-in suite."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dstfuzz.campaign.results import TurnResult, turn_id
from pytest_dstfuzz.config import Settings, build_settings, shard_text
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.plugin.relations import SUITES, each_of, turns_for
from pytest_dstfuzz.plugin.selection import NODE, OWN_TESTS
from pytest_dstfuzz.plugin.turn import KEYWORD, DstTurn
from pytest_dstfuzz.relations.rewrite import Side
from pytest_dstfuzz.report.explain import keyword, unlike
from pytest_dstfuzz.report.redact import KEPT_BACK


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
