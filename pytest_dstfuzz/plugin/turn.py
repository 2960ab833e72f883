"""What the fixtures give to a robustness test: a turn, a report, proposals, a conformance kit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.attempts import begin_turn
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Variant
from pytest_dstfuzz.plugin.options import repeat_options
from pytest_dstfuzz.plugin.relations import ASSERTIONS, other_side
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.explain import explain
from pytest_dstfuzz.report.redact import KEPT_BACK, redacted

if TYPE_CHECKING:
    from pytest_dstfuzz.testing import Conformance, Finding

#: What ``-k`` selects an item with, where that is not the item's name.
KEYWORD: pytest.StashKey[str] = pytest.StashKey()
#: How often a search is asked for another proposal in the place of one that is not valid or new.
REDRAWS = 8


class DstTurn:
    """One turn of the data under the settings of one test.

    Args:
        item: the test.
        dialogue: the dialogue that the turn is of.
        turn_index: its place in the dialogue.
        settings: those of the test.
        run: computes the result under further options, and returns it with the settings that name
            the search and the relation in use; it is called once, when the result is first asked
            for.
        why_accepted: says why all violations of a result may stay, given the name of the relation;
            ``""`` = they may not.
        refuse: makes of a mistake in the test what ends the session.
    """

    def __init__(
        self,
        item: pytest.Item,
        dialogue: Dialogue,
        turn_index: int,
        settings: Settings,
        run: Callable[[Mapping[str, object]], tuple[TurnResult, Settings]],
        why_accepted: Callable[[TurnResult, str], str],
        refuse: Callable[[UserError], BaseException],
    ) -> None:
        self.dialogue = dialogue
        self.turn: Turn = dialogue.turns[turn_index]
        self.settings = settings
        self._item = item
        self._run = run
        self._options: Mapping[str, object] = {}
        self._why_accepted = why_accepted
        self._refuse = refuse

    def __repr__(self) -> str:
        return f"<DstTurn {self.dialogue.id} turn {self.turn.index}>"

    @property
    def result(self) -> TurnResult:
        """What came of the turn's variants; the tracker is asked when this is first read."""
        return self._found[0]

    @cached_property
    def _found(self) -> tuple[TurnResult, Settings]:
        return self._run(self._options)

    @property
    def command(self) -> str:
        """The command that repeats this test with the same variants."""
        return repeat_command(self._item, self.settings.variant.seed)

    def assert_unchanged(
        self, *, arguments: Mapping[str, object] | None = None, call_order: str | None = None
    ) -> None:
        """Fail when a variant changed the predicted belief state, the reply, or the tool calls.

        It skips when none was tested.

        Under ``--dst-fail-on=gate`` violations and failures of the tracker are recorded,
        and the session as a whole is judged at its end. Under a relation that asks for a change
        it ends the session as a mistake: see `assert_changes`.

        Args:
            arguments: rules of the arguments of tools, or of slots, in the place of
                ``--dst-arguments``: ``{"book_table.people": "number"}``.
            call_order: ``any`` or ``exact``, in the place of ``--dst-call-order``.
        """
        __tracebackhide__ = True
        given = {"arguments": arguments, "call_order": call_order}
        self._compare_by({name: value for name, value in given.items() if value is not None})
        self._refuse_other_side("assert_unchanged")
        self.assert_holds()

    def assert_changes(self) -> None:
        """Fail when the predicted belief state did not follow what was edited, slot by slot.

        Of replies: when what was said is the same as before.

        It skips and records as `assert_unchanged` does, which is for relations under which the
        state is to stay.
        """
        __tracebackhide__ = True
        self._refuse_other_side("assert_changes")
        self.assert_holds()

    def assert_holds(self) -> None:
        """Fail when the relation of this test is broken, whichever side it is of.

        It skips and records as `assert_unchanged` does.
        """
        __tracebackhide__ = True
        result = self.result
        gate = self.settings.gate.fail_on == "gate"
        if result.outcome == "violation" and not gate:
            if reason := self._why_accepted(result, self._found[1].variant.relation):
                pytest.xfail(printable(f"accepted: {reason}"))
            self._fail()
        elif result.outcome == "error":
            if not gate:
                self._fail()
            who = result.kind.words.who
            pytest.skip(printable(f"{who} failed: {self._shown(_reason(result))}"))
        elif result.outcome == "skipped":
            pytest.skip(printable(result.reason) or "the budget ended before this turn was run")
        elif result.outcome == "untested":
            pytest.skip(printable(result.reason) or "no valid variant was made of this turn")
        elif result.outcome == "inapplicable":
            pytest.skip(printable(result.reason) or "the relation says nothing about this turn")

    def _compare_by(self, options: Mapping[str, object]) -> None:
        """Let the tool calls be compared by other options than those of the test."""
        __tracebackhide__ = True
        if options and "_found" in self.__dict__:
            name = next(iter(options))
            told = (
                f"assert_unchanged({name}=...) comes too late: dst_turn.result was read before it, "
                f"and compared without it. Read it afterwards, or write "
                f"@pytest.mark.dst({name}=...)"
            )
            raise self._refuse(UserError(told)) from None
        self._options = options or self._options

    def _refuse_other_side(self, called: str) -> None:
        """End the session where an assertion asks for what the relation does not."""
        __tracebackhide__ = True
        relation, side = self._found[1].variant.relation, self.result.side
        if ASSERTIONS[side] != called:
            what = self.result.kind.words.what
            raise self._refuse(UserError(other_side(relation, side, called, what))) from None

    def _shown(self, reason: str) -> str:
        return KEPT_BACK if self.settings.output.redact else reason

    def _fail(self) -> NoReturn:
        __tracebackhide__ = True
        result = redacted(self.result) if self.settings.output.redact else self.result
        pytest.fail(explain(result, self._found[1], command=self.command), pytrace=False)


class DstReport:
    """What the robustness tests of this process have found so far.

    Args:
        models: gives the results of each tracker by its name, in the order of the data; ``""`` is
            the name where there is one.
        settings: those of the session.
    """

    def __init__(
        self, models: Callable[[], Mapping[str, tuple[TurnResult, ...]]], settings: Settings
    ) -> None:
        self._models = models
        self.settings = settings

    @property
    def results(self) -> tuple[TurnResult, ...]:
        """The turns that tests asked for so far, in the order of the data."""
        return tuple(result for results in self._models().values() for result in results)

    @property
    def summary(self) -> Summary:
        """The figures of these turns.

        Raises:
            UserError: they are of several trackers, whose figures are not added up: see
                `summaries`.
        """
        found = self.summaries()
        if len(found) > 1:
            raise UserError(
                f"this session tests {len(found)} trackers, and their figures are not added up: "
                "dst_report.summaries() has those of each by its name"
            )
        return next(iter(found.values()))

    def summaries(self) -> dict[str, Summary]:
        """Return the figures of each tracker by its name; ``""`` is the name where it is one."""
        return {name: summarise(results) for name, results in self._models().items()}


class DstProposer:
    """Lets a test ask a search for what is most likely to break the tracker at a turn.

    The tracker is asked about clean turns only.
    """

    def __init__(self, rules: CampaignSpec, predictor: Predictor) -> None:
        self.search = rules.search
        self._rules = rules
        self._predictor = predictor

    def variants(self, dialogue: Dialogue, turn_index: int, count: int = 1) -> list[Variant]:
        """Return variants of a turn, the one that the search thinks best first.

        The same arguments give the same variants. What the tracker says to them is not
        asked: a test may do with them what it likes. (``--dst-search`` lets an adaptive
        search learn from its earlier attempts.)

        Args:
            dialogue: the dialogue; it need not be one of the session's data.
            turn_index: of the turn, from 0.
            count: how many variants to look for.

        Returns:
            At most ``count`` of them, all valid and different.

        Raises:
            IndexError: there is no such turn.
        """
        context = dialogue.context(turn_index)
        answers = self._predictor.predict([context])
        clean = answers.get(context, TrackerFailure("the budget ended", asked=False))
        turn = begin_turn(self._rules, dialogue, turn_index, clean)
        found: dict[str, Variant] = {}
        for number in range(count):
            variant = turn.draw(number)[0].variant
            if variant.valid:
                found.setdefault(variant.text, variant)
        return list(found.values())


@dataclass(frozen=True)
class DstConformance:
    """Lets a test assert that the tracker can be tested at all."""

    #: Findings and figures.
    report: Conformance

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The finding of each check, in their order."""
        return self.report.findings

    def assert_passed(self) -> None:
        """Fail when a check failed, and say which, why, and what to do; warnings may be."""
        __tracebackhide__ = True
        if not self.report.passed:
            pytest.fail(printable(self.report.explain()), pytrace=False)


def repeat_command(item: pytest.Item, seed: int) -> str:
    """Return the command that repeats one test as it was run."""
    options = repeat_options(item.config, seed)
    file, separator, name = item.nodeid.partition("::")
    path = item.config.rootpath / file
    if path.is_file():
        folder = item.config.invocation_params.dir
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        return f"pytest {shlex.quote(f'{Path(shown)}{separator}{name}')} {options}"
    # The built-in suite is no file that could be named; its items are chosen by keyword.
    return f"pytest -k {shlex.quote(item.stash.get(KEYWORD, name))} {options}"


def session_command(config: pytest.Config, seed: int) -> str:
    """Return the command that repeats a session, with each violation failing its test."""
    typed = config.args if config.args_source == pytest.Config.ArgsSource.ARGS else ()
    words = shlex.join(["pytest", *typed])
    return f"{words} {repeat_options(config, seed)} --dst-fail-on=violation"


def _reason(result: TurnResult) -> str:
    failed = (variant.reason for variant in result.variants if variant.outcome == "error")
    return result.reason or next(failed, "no reason given")
