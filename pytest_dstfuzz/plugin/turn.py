"""The values of the fixtures for robustness tests: turn, report, proposer, conformance kit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import pytest

from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.attempts import begin_turn
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.errors import KEPT_BACK, UserError
from pytest_dstfuzz.perturb.words import Variant
from pytest_dstfuzz.plugin.options import repeat_options
from pytest_dstfuzz.plugin.relations import ASSERTIONS, other_side
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.explain import explain, explain_in_a_line, weakness_of
from pytest_dstfuzz.report.redact import redact_turn

if TYPE_CHECKING:
    from pytest_dstfuzz.testing import Conformance, Finding


class Brief(NamedTuple):
    """A failed turn in one line, because other failures show its weakness in full."""

    weakness: str  #: Its id.
    line: str
    dialogue_id: str
    turn_index: int


#: The word that selects an item by ``-k``, if it is not the item's name.
KEYWORD: pytest.StashKey[str] = pytest.StashKey()
#: The text of a failure, and its short form.
BRIEF: pytest.StashKey[tuple[str, Brief]] = pytest.StashKey()
#: The rules that a test may give for comparing answers.
_RULES: Final = ("arguments", "call_order")
#: Maximum number of further proposals if a variant is invalid or a duplicate.
REDRAWS = 8


class DstTurn:
    """A turn of the data under the settings of one test.

    Args:
        item: the test.
        dialogue: the dialogue of the turn.
        turn_index: its index in the dialogue.
        settings: the settings of the test.
        run: computes the result under additional options. It returns the result and the settings,
            which name the search and the relation. It is called once, when the result is first
            used.
        why_accepted: takes a result and the name of its relation. It returns why all violations are
            accepted, or ``""`` if one is not.
        refuse: returns the exception that ends the session because of a mistake in the test.
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
        """The result of the turn. The first access calls the tracker."""
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
        """Fail if a variant changed the predicted belief state, the reply, or the tool calls.

        Skip if no variant was tested.

        Under ``--dst-fail-on=gate``, violations and failures of the tracker are only recorded. The
        session is judged at its end. If the relation expects a change, the session ends with an
        error: see `assert_changes`.

        Args:
            arguments: rules for arguments of tools or for slots. They replace ``--dst-arguments``.
                Example: ``{"book_table.people": "number"}``.
            call_order: ``any`` or ``exact``, replaces ``--dst-call-order``.
        """
        __tracebackhide__ = True
        given = dict(zip(_RULES, (arguments, call_order), strict=True))
        self._compare_by({name: value for name, value in given.items() if value is not None})
        self._refuse_other_side("assert_unchanged")
        self.assert_holds()

    def assert_changes(self) -> None:
        """Fail if the predicted belief state did not change as expected, slot by slot.

        For replies: fail if the new reply has the same meaning as the old one.

        The test is skipped or only recorded in the same cases as in `assert_unchanged`.
        """
        __tracebackhide__ = True
        self._refuse_other_side("assert_changes")
        self.assert_holds()

    def assert_holds(self) -> None:
        """Fail if the relation of this test is broken. The relation may or may not expect a change.

        The test is skipped or only recorded in the same cases as in `assert_unchanged`.
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
            pytest.skip(printable(result.reason) or "this turn has no valid variant")
        elif result.outcome == "inapplicable":
            pytest.skip(printable(result.reason) or "the relation does not apply to this turn")

    def _compare_by(self, options: Mapping[str, object]) -> None:
        """Override the test's options for comparing tool calls."""
        __tracebackhide__ = True
        if "_found" not in self.__dict__:
            # The test may change its rules later.
            self._options = _copied(options)
            return
        names = [name for name in _RULES if options.get(name) != self._options.get(name)]
        if not names:
            return
        told = (
            f"assert_unchanged({names[0]}=...) comes too late: dst_turn.result or an earlier "
            f"assertion has compared without {names[0]}. Call it first, or write "
            f"@pytest.mark.dst({names[0]}=...)"
        )
        if self._options:
            told = (
                f"assert_unchanged has other rules ({', '.join(names)}) than before in this test, "
                "but a test has one result, which was compared by the first ones. Give the same "
                "rules each time, or write a test for each"
            )
        raise self._refuse(UserError(told)) from None

    def _refuse_other_side(self, called: str) -> None:
        """End the session if the called assertion contradicts the relation."""
        __tracebackhide__ = True
        relation, side = self._found[1].variant.relation, self.result.side
        if ASSERTIONS[side] != called:
            what = self.result.kind.words.what
            raise self._refuse(UserError(other_side(relation, side, called, what))) from None

    def _shown(self, reason: str) -> str:
        return KEPT_BACK if self.settings.output.redact else reason

    def _fail(self) -> NoReturn:
        __tracebackhide__ = True
        result = redact_turn(self.result) if self.settings.output.redact else self.result
        verbose = self._item.config.get_verbosity() > 0
        weakness = weakness_of(self.result)
        text = explain(
            result, self._found[1], command=self.command, verbose=verbose, weakness=weakness
        )
        if weakness is not None:
            line = explain_in_a_line(result, weakness)
            brief = Brief(weakness.id, line, result.dialogue_id, result.turn_index)
            self._item.stash[BRIEF] = (text, brief)
        pytest.fail(text, pytrace=False)


class DstReport:
    """The results of the robustness tests of this process so far.

    Args:
        models: returns a dictionary from the name of each tracker to its results, in the order of
            the data. A single tracker has the name ``""``.
        settings: the settings of the session.
    """

    def __init__(
        self, models: Callable[[], Mapping[str, tuple[TurnResult, ...]]], settings: Settings
    ) -> None:
        self._models = models
        self.settings = settings

    @property
    def results(self) -> tuple[TurnResult, ...]:
        """The results of the tested turns so far, in the order of the data."""
        return tuple(result for results in self._models().values() for result in results)

    @property
    def summary(self) -> Summary:
        """The figures of these turns.

        Raises:
            UserError: the session has several trackers. Use `summaries`, because their figures are
                not added up.
        """
        found = self.summaries()
        if len(found) > 1:
            raise UserError(
                f"this session tests {len(found)} trackers, and their figures are not added up: "
                "dst_report.summaries() has the figures of each tracker by its name"
            )
        return next(iter(found.values()))

    def summaries(self) -> dict[str, Summary]:
        """Return the figures of each tracker by its name. A single tracker has the name ``""``."""
        return {name: summarise(results) for name, results in self._models().items()}


class DstProposer:
    """Proposes variants of a turn that are likely to break the tracker.

    It calls the tracker for clean turns only.
    """

    def __init__(self, rules: CampaignSpec, predictor: Predictor) -> None:
        self.search = rules.search
        self._rules = rules
        self._predictor = predictor

    def variants(self, dialogue: Dialogue, turn_index: int, count: int = 1) -> list[Variant]:
        """Return variants of a turn. The first one is the best by the search.

        The same arguments give the same variants. The tracker is not asked about them, so a test
        may use them freely. In contrast, ``--dst-search`` lets an adaptive search learn from
        earlier attempts.

        Args:
            dialogue: any dialogue, even if it is not in the session's data.
            turn_index: the index of the turn, from 0.
            count: maximum number of variants.

        Returns:
            At most ``count`` variants, all valid and different.

        Raises:
            IndexError: the dialogue has no such turn.
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
    """The results of the conformance kit, with an assertion."""

    #: Findings and figures.
    report: Conformance

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The result of each check, in the order of the checks."""
        return self.report.findings

    def assert_passed(self) -> None:
        """Fail if a check failed. The error has the reasons and remedies. Warnings do not fail."""
        __tracebackhide__ = True
        if not self.report.passed:
            pytest.fail(printable(self.report.explain()), pytrace=False)


def repeat_command(item: pytest.Item, seed: int) -> str:
    """Return the command that repeats a test."""
    options = repeat_options(item.config, seed)
    file, separator, name = item.nodeid.partition("::")
    path = item.config.rootpath / file
    if path.is_file():
        folder = item.config.invocation_params.dir
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        return f"pytest {shlex.quote(f'{shown}{separator}{name}')} {options}"
    # The built-in suite is in no file, so its items are selected by keyword.
    return f"pytest -k {shlex.quote(item.stash.get(KEYWORD, name))} {options}"


def session_command(config: pytest.Config, seed: int) -> str:
    """Return the command that repeats a session. In it, each violation fails a test."""
    typed = config.args if config.args_source == pytest.Config.ArgsSource.ARGS else ()
    words = shlex.join(["pytest", *typed])
    return f"{words} {repeat_options(config, seed)} --dst-fail-on=violation"


def _reason(result: TurnResult) -> str:
    failed = (variant.reason for variant in result.variants if variant.outcome == "error")
    return result.reason or next(failed, "no reason given")


def _copied(rules: Any) -> Any:
    """Return a copy of rules, with copies of their dictionaries and lists."""
    if isinstance(rules, Mapping):
        return {name: _copied(one) for name, one in rules.items()}
    return [_copied(one) for one in rules] if isinstance(rules, list) else rules
