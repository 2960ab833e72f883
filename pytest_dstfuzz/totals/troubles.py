"""Checks whether the figures of a session mean anything: errors, unstable or equal answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.figures import DistinctCount, LastByTurn
from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnOutcome, TurnResult
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind

#: If the tracker fails on more than this share of the turns, the other figures are unreliable.
MOST_ERRORS: Final = 0.05
#: A run that ended early gets a verdict only if this share of the selected turns has results.
LEAST_TESTED: Final = 0.5
#: If the answers to at least this number of turns are all equal, this is not by chance.
LEAST_TELLING: Final = 20
#: If at least this number of turns have recorded calls and no answer has a call, this is not by
#: chance.
LEAST_CALLS: Final = 3
#: Outcomes of turns that tested the tracker.
_TESTED: tuple[TurnOutcome, ...] = ("held", "violation", "error")


def failure_text(turn: TurnResult, *, hidden: bool) -> str:
    """Return the id of a failed turn and the error, unless texts are ``hidden``."""
    reasons = [turn.reason, *(one.reason for one in turn.variants if one.outcome == "error")]
    reason = next(filter(None, reasons), "")
    return turn.id if hidden or not reason else f"{turn.id}: {reason}"


class TroublesTally:
    """Collects the turns of a session and reports problems that make its figures unreliable."""

    def __init__(self, *, hidden: bool = False) -> None:
        """Create an empty tally. If ``hidden``, leave out error messages, which may have texts."""
        self._hidden = hidden
        #: Relation -> its first group with a failure, and the text of the first failed turn.
        self._failures: dict[str, tuple[str, str]] = {}
        self._outcomes: Counter[TurnOutcome] = Counter()
        #: Numbers of turns with a valid variant, and without one.
        self._tested: Counter[bool] = Counter()
        #: Number of turns with missing variants.
        self._unfinished = 0
        #: Relation -> its turns that were run by outcome, its first group, and its kind of answer.
        self._relations: dict[str, Counter[TurnOutcome]] = {}
        self._groups: dict[str, str] = {}
        self._kinds: dict[str, AnswerKind] = {}
        #: Whether a turn is unstable, for turns to which a relation applies. This is independent of
        #: the relation.
        self._unstable = LastByTurn(1)
        #: Variants that were run, and those of them whose answers do not decide.
        self._variants = self._undecided = 0
        #: Relation -> number of violations in skipped turns that the bot was not asked to confirm.
        self.unconfirmed: Counter[str] = Counter()
        self._unconfirmed = 0
        #: The kind of answer of the first turn.
        self._kind: AnswerKind | None = None

    def add(self, turn: TurnResult, group: str = "") -> None:
        """Count a turn of a group of results."""
        self._outcomes[turn.outcome] += 1
        if turn.outcome == "skipped":
            self.unconfirmed[turn.relation] += turn.left_out
            self._unconfirmed += turn.left_out > 0
            return
        self._unfinished += turn.left_out > 0
        if turn.outcome != "inapplicable":
            self._tested[turn.tested] += 1
        if turn.outcome == "error":
            before = self._failures.get(turn.relation)
            if before is None or group < before[0]:
                self._failures[turn.relation] = group, failure_text(turn, hidden=self._hidden)
        # Count each relation alone, and leave out turns to which it does not apply, because these
        # would hide failures.
        self._relations.setdefault(turn.relation, Counter())[turn.outcome] += 1
        self._groups[turn.relation] = min(group, self._groups.get(turn.relation, group))
        if turn.outcome != "inapplicable":
            self._kinds.setdefault(turn.relation, turn.kind)
            self._unstable.add(turn.id, turn.reason == UNSTABLE)
            undecided = sum(one.outcome == "unstable" for one in turn.variants)
            self._undecided += undecided
            self._variants += undecided + sum(one.outcome in RUN_OUTCOMES for one in turn.variants)
            self._kind = self._kind or turn.kind

    def troubles(self, ended: str = "") -> list[str]:
        """Return the reasons why the figures of a session mean nothing, one sentence each."""
        outcomes = self._outcomes
        if not any(outcomes[outcome] for outcome in _TESTED):
            what = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
            if text := self.unstable_text or self._undecided_text:
                return [text]
            nothing = what or ended or "none was selected, or all were skipped"
            return [f"no turn was tested ({nothing})"]
        found: list[str] = []
        if not self._tested[True]:
            found.append("no turn has a valid variant, so nothing was tested")
        for name, turns in self._ranked():
            own, errors = _asked(turns), turns["error"]
            if errors > MOST_ERRORS * own:
                under = "" if len(self._relations) == 1 else f" (relation {name})"
                found.append(
                    f"{self._kinds[name].words.who} failed on {errors} of {own} turns{under}, "
                    f"more than {percent(MOST_ERRORS, 0)}; the first failure: "
                    f"{self._failures[name][1]}"
                )
        found += filter(None, (self.unstable_text, self._undecided_text))
        return found

    def _ranked(self) -> list[tuple[str, Counter[TurnOutcome]]]:
        """Return the relations in the order of their first groups."""
        return sorted(self._relations.items(), key=lambda item: self._groups[item[0]])

    def raised(self) -> tuple[str, ...]:
        """Return a text for each relation with tracker failures that are too few to fail a run."""
        return tuple(
            f"{self._kinds[name].words.who} failed on {errors} of {own} turns, and a gate "
            f"allows {percent(MOST_ERRORS, 0)}; the first failure: {self._failures[name][1]}"
            for name, turns in self._ranked()
            if 0 < (errors := turns["error"]) <= MOST_ERRORS * (own := _asked(turns))
        )

    @property
    def unstable_text(self) -> str:
        """A sentence if too many turns are unstable (no answer has a majority), or ``""``."""
        rows = self._unstable.rows()
        unstable = sum(never > 0 for (never,) in rows)
        if unstable <= MOST_ERRORS * len(rows):
            return ""
        untested = (
            f"{unstable} of {len(rows)} turns could not be tested, more than "
            f"{percent(MOST_ERRORS, 0)}"
        )
        if self._kind is not None and self._kind.has_slots:
            return (
                f"{untested}: the tracker's answers to the same messages differ each time, and no "
                "answer has a majority. Make it answer alike: fix its seed, or lower the "
                "temperature of its model"
            )
        if self._kind is not None and self._kind.has_tools:
            return (
                f"{untested}: the assistant's calls for the same messages differ each time. Set "
                "with --dst-arguments which values of an argument are equal, or lower the "
                "temperature of its model"
            )
        return (
            f"{untested}: the bot's replies to the same messages differ each time. Choose another "
            "comparison with --dst-compare, or a larger threshold; dstfuzz calibrate finds a "
            "threshold"
        )

    @property
    def _undecided_text(self) -> str:
        """A sentence if too many variants are undecided, or ``""``."""
        undecided, run = self._undecided, self._variants
        if undecided <= MOST_ERRORS * run:
            return ""
        who = (self._kind or BELIEF_STATES).words.who
        return (
            f"{undecided} of {run} variants have no verdict, more than {percent(MOST_ERRORS, 0)}: "
            f"{who} answers each of them sometimes as expected and sometimes not, or fails, and "
            "neither has a majority. Make its answers vary less: fix its seed, or lower the "
            "temperature of its model"
        )

    @property
    def untested_text(self) -> str:
        """A clause if most turns have no valid variant, or ``""``."""
        tested, every = self._tested[True], self._tested.total()
        if tested >= LEAST_TESTED * every:
            return ""
        return f"only {tested:,} of {every:,} turns have a valid variant"

    def cut_short(self, missing: int, ended: str) -> str:
        """Return a clause if a session ended before all turns were tested, or ``""``."""
        selected = self._outcomes.total() + missing
        if not ended or (self._done == selected and not self._unfinished):
            return ""
        if self._done == selected:
            short = f"{self._unfinished:,} of {selected:,} turns lack some of their variants"
        else:
            short = f"only {self._done:,} of {selected:,} turns were run"
        if self._unconfirmed:
            short += (
                f"; in {self._unconfirmed:,} others, the bot was not asked to confirm a violation"
            )
        return f"{short} ({ended})"

    def enough(self, missing: int) -> bool:
        """Return whether a session has enough results for a verdict."""
        return self._done >= LEAST_TESTED * (self._outcomes.total() + missing)

    @property
    def many_unconfirmed(self) -> bool:
        """Whether the skipped turns with unconfirmed violations are more than a gate allows."""
        return self._unconfirmed > MOST_ERRORS * self._done

    @property
    def _done(self) -> int:
        return self._outcomes.total() - self._outcomes["skipped"]


def _asked(turns: Counter[TurnOutcome]) -> int:
    """Return the number of turns that a relation applies to."""
    return turns.total() - turns["inapplicable"]


#: Whether two answers to the context of a turn agree.
Agrees = Callable[[Outcome, Outcome, Context], bool]


class AnswersTally:
    """Collects clean answers and reports if all are equal.

    A turn that several tests share counts once. Without a comparison, all fallback replies are one
    answer.
    """

    def __init__(self, fallbacks: tuple[str, ...] = (), agree: Agrees | None = None) -> None:
        """Create an empty tally.

        Args:
            fallbacks: regular expressions of replies without an answer, in addition to the known
                ones.
            agree: the comparison of answers; ``None`` = equality.
        """
        self._fallbacks, self._agree = fallbacks, agree
        self._kind: AnswerKind | None = None
        #: The first answer, and whether a different one followed.
        self._first: Outcome | None = None
        self.differ = False
        #: Whether an answer agreed with the first one although it was not equal.
        self._alike = False
        self._turns, self._answered = DistinctCount(), DistinctCount()
        #: Turns with recorded calls, all turns with an answer, and whether each kind has a call.
        self._recorded, self._assisted = DistinctCount(), DistinctCount()
        self._called_recorded = self._called = False

    def add(self, turn: TurnResult, asked: Context | None = None) -> None:
        """Record the tracker's answer to a clean turn.

        ``asked`` is the context of the turn; ``None`` = only its last exchange is known.
        """
        if self._kind is None:
            self._kind = turn.kind
        if turn.kind.has_tools and turn.clean_state is not None:
            self._called = self._called or bool(turn.clean_state)
            self._assisted.add(turn.id)
            if turn.label:
                self._recorded.add(turn.id)
                self._called_recorded = self._called_recorded or bool(turn.clean_state)
        if turn.outcome == "skipped" or self.differ:
            return
        self._turns.add(turn.id)
        if turn.clean_state is not None:
            self._answered.add(turn.id)
            said = turn.clean_state
            # A comparison must tell a fallback apart from an answer by itself.
            folds = self._agree is None and not turn.kind.words.values
            if folds and is_fallback(turn.kind.text(said), self._fallbacks):
                said = Outcome()
            if self._first is None:
                self._first = said
            asked = asked or Context((Exchange(turn.system, turn.user),))
            self.differ = not self._same(self._first, said, asked)

    def _same(self, first: Outcome, said: Outcome, asked: Context) -> bool:
        if first == said or self._agree is None:
            return first == said
        agreed = self._agree(first, said, asked) and self._agree(said, first, asked)
        self._alike = self._alike or agreed
        return agreed

    @property
    def told_apart(self) -> bool | None:
        """Whether the comparison told two answers apart. ``None`` if all answers are equal."""
        return self.differ if self.differ or self._alike else None

    @property
    def one(self) -> bool:
        """Whether all answers agree. With fewer than `LEAST_TELLING` turns, this may be chance."""
        return self._turns.value >= LEAST_TELLING and self._first is not None and not self.differ

    @property
    def text(self) -> str:
        """A sentence if a tracker gives the same clean answer to all turns, otherwise ``""``.

        No variant can break such a tracker, so the results mean nothing. Fewer than `LEAST_TELLING`
        turns may have equal answers by chance.
        """
        if text := self._no_calls():
            return text
        if not self.one:
            return ""
        what = f"the same: {', '.join(self._first or ())}" if self._first else "empty"
        words = (self._kind or BELIEF_STATES).words
        if not words.values:
            what = f"the same {words.short}" if self._first else "fallback replies"
        return (
            f"the clean answers to all {self._answered.value:,} turns are {what}; {words.some} "
            "that understands nothing cannot be broken, so nothing was tested"
        )

    def _no_calls(self) -> str:
        """Return a sentence if an assistant makes no calls although some are recorded, or ``""``.

        With fewer than `LEAST_CALLS` turns with recorded calls, missing calls may be chance. In
        this case, the sentence is returned only if the assistant makes no call at all in at least
        `LEAST_CALLS` turns.
        """
        recorded = self._recorded.value
        if not recorded or self._called_recorded:
            return ""
        if recorded < LEAST_CALLS and (self._called or self._assisted.value < LEAST_CALLS):
            return ""
        turns = "1 turn" if recorded == 1 else f"all {recorded:,} turns"
        return (
            f"at {turns} with recorded calls the assistant calls nothing, so nothing was tested: "
            "check that it gets the tools"
        )
