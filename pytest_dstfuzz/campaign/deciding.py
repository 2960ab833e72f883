r"""Decisions for trackers whose answers vary, by a majority vote or a sequential test.

A vote
------
A service may answer the same question differently each time. For such a tracker, each clean turn is
first requested ``votes`` times (three by default). More answers are requested until one value of
each slot leads the others by ``votes`` answers. If the first answer to a variant breaks the
relation, the variant is requested again. Each answer votes as a whole, either for the change
because it breaks the relation, or against it. So wrong answers count together even if they differ.
The requests end if the change leads by ``2 * votes - 1`` answers or trails by ``votes``. This is a
sequential probability ratio test (Wald, 1945). If the change wins, the clean answer must lead by
two answers more than the change. If answers are wrong with probability w, chance causes a lead of d
with odds of ``(w / (1 - w)) ** d``. If neither side has more than half of all answers, the variant
is undecided. If the first answer to a variant keeps the relation, the variant is not requested
again. `summary.Noise` estimates the remaining noise.

A sequential test
-----------------
Each clean turn is requested ``floor`` times before any edit. The share of its answers that differ
from the usual answer is the noise floor. Each answer to a variant keeps or breaks the relation. Let
r clean answers equal the usual answer and q differ from it. Let c answers to the variant break the
relation and s keep it. In both contexts, a share w of the answers differs from the usual one. w is
unknown and may have any value between 0 and 1/2. Either both contexts have the same usual answer,
or their usual answers differ. It is also unknown which of the two clean answers is the usual one,
so the likelihoods are integrals over all w from 0 to 1. Their ratio is::

    \Lambda = (r + c)! (q + s)! / ((r + s)! (q + c)!)

This is Wald's sequential probability ratio test with a weight function in place of a known w (Wald,
Sequential Analysis, 1947, section 4.1.3). With error rates \alpha and \beta, it finds a change if
\Lambda >= (1 - \beta) / \alpha and no change if \Lambda <= \beta / (1 - \alpha). Otherwise it
requests more answers. The false-positive rate is at most \alpha / (1 - \beta), even with repeated
looks at the data (Ville's inequality). The rate of missed changes is at most \beta / (1 - \alpha).
Both bounds hold on average over w, for independent answers and for changes that last. The test
leaves a variant undecided if half of its answers change or if w is near 1/2. If r is not greater
than q, there is no usual answer, and nothing is decided. Failures count for neither side.

Repeated requests
-----------------
A tracker that must be repeatable gets one request for each context, except for a few checks.

The preflight detects trackers with random answers. It misses a tracker that is random once in a
hundred times, or one that begins later to carry data from dialogue to dialogue. Therefore, some
variants of a finished dialogue are requested again together with their clean turns. These are one
violation in half of the turns with violations, and one held variant in an eighth of the turns with
held variants. The seed selects these variants for each turn, so the result of a turn does not
depend on other turns. The cache stores second answers under separate keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import factorial
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np

from pytest_dstfuzz.campaign.answers import (
    AS_GIVEN,
    UNSTABLE,
    Answer,
    Folding,
    TrackerFailure,
    all_answers,
    all_asked,
)
from pytest_dstfuzz.campaign.results import (
    TurnResult,
    VariantOutcome,
    VariantResult,
    Votes,
)
from pytest_dstfuzz.config import TrackerSettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, Again, Context
from pytest_dstfuzz.relations.relation import UNCHANGED, Delta, Expectation, Verdict
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

Answers = Mapping[Context, Answer]
#: Whether an answer breaks the relation. Takes the clean outcome and the new one.
Breaks = Callable[[Outcome, Outcome], bool]
#: Maximum number of requests for one context, as a multiple of ``votes``.
_MOST: Final = 11
#: Maximum number of requests for one context in a sequential test.
MOST: Final = 32
#: Default number of requests for a clean turn, and default for both error rates.
FLOOR: Final = 5
ERROR_RATE: Final = 0.05
#: Margin by which the clean turn's lead must exceed that of a variant.
_AHEAD: Final = 2
#: Outcome of a variant -> share of the turns with such a variant that request one again.
SHARES: Final = {"violation": 1 / 2, "held": 1 / 8}


class _Rules(Protocol):
    @property
    def folding(self) -> Folding: ...


class _VariantJudgement(Protocol):
    @property
    def result(self) -> VariantResult: ...


class AskedTurn(Protocol):
    """The part of a turn that a vote or a sequential test needs. Attempts may have any type."""

    @property
    def rules(self) -> _Rules:
        """The rules of the campaign."""

    @property
    def clean_context(self) -> Context:
        """The context of the clean turn."""

    @property
    def attempts(self) -> Mapping[int, Any]:
        """The attempts by number, each with its ``context``."""

    def expected(self, attempt: Any) -> Expectation:
        """Return the expected changes of an attempt."""

    def reference(self, attempt: Any) -> Context:
        """Return the reference context for an attempt."""

    def recorded(self, attempt: Any) -> Outcome | None:
        """Return the recorded answer if the relation compares an attempt with it."""

    def asks(self, attempt: Any) -> bool:
        """Return whether an attempt needs a call of the tracker."""

    def verdict(self, attempt: Any, clean: Outcome, found: Outcome) -> Verdict:
        """Return the verdict of the relation on an answer."""


class Sides(NamedTuple):
    """The two answers that a relation compares."""

    clean: Outcome
    answer: Answer
    #: Whether the answers do not decide (yet) if the relation holds.
    undecided: bool = False
    #: Whether they do not decide, and some answers keep the relation while others break it.
    split: bool = False


@dataclass(frozen=True, slots=True)
class Vote:
    """A majority vote, or a single answer if ``votes`` is 1."""

    #: Minimum number of answers in a vote on a violation. 1 = no vote.
    votes: int = 1
    #: Whether the next requests depend on the provisional outcome of a variant.
    by_outcome: ClassVar[bool] = True

    @property
    def again(self) -> bool:
        """Whether any context is requested again."""
        return self.votes > 1

    @property
    def floor(self) -> int:
        """Minimum number of requests for a clean turn."""
        return self.votes

    def clean_wanted(self, context: Context, answers: Answers, folding: Folding) -> list[Context]:
        """Return the next requests for a clean turn."""
        return clean_wanted(context, answers, self.votes, folding)

    def unstable(self, context: Context, answers: Answers, folding: Folding) -> bool:
        """Return whether the answers to a clean turn vary too much for comparisons."""
        return unstable(context, answers, self.votes, folding)

    def clean_outcome(self, context: Context, answers: Answers, folding: Folding) -> Outcome:
        """Return the majority answer to a clean turn. Its first answer must not be a failure."""
        return settle_clean(context, answers, folding)

    def sides(
        self,
        turn: AskedTurn,
        attempt: Any,
        clean: Context,
        context: Context,
        answers: Answers,
        expected: Expectation = UNCHANGED,
    ) -> Sides:
        """Return the majority answers to the clean context and to another context.

        Args:
            turn: the turn of the attempt.
            attempt: the attempt, for the verdicts of the relation on each answer.
            clean: the reference context.
            context: the context of the attempt, or of a part of its edits.
            answers: all answers so far.
            expected: the expected changes. A text that agrees with such a value counts as it.
        """
        rules = _verdicts(turn, attempt)
        return settle_sides(clean, context, answers, rules, expected, turn.rules.folding)

    def wanted(
        self, turn: AskedTurn, attempt: Any, answers: Answers, outcome: VariantOutcome
    ) -> list[Context]:
        """Return the next requests for an attempt with the provisional ``outcome``."""
        carried, context = outcome == "carried", attempt.context
        if outcome == "error":
            return []
        if not (carried or outcome == "violation" or len(all_asked([context], answers)) > 1):
            return []
        wanted = variant_wanted(
            turn.reference(attempt),
            context,
            answers,
            _verdicts(turn, attempt),
            votes=self.votes,
            lead=self.votes if carried else 2 * self.votes - 1,
            expected=turn.expected(attempt),
            folding=turn.rules.folding,
        )
        if turn.recorded(attempt) is None:
            return wanted
        # The relation compares with the recorded answer, so the clean answer needs no vote.
        return [one for one in wanted if one.exchanges == context.exchanges]

    def part_wanted(
        self, turn: AskedTurn, attempt: Any, context: Context, answers: Answers
    ) -> list[Context]:
        """Return the next requests for a part of an attempt, if its first answer is a violation."""
        return variant_wanted(
            turn.clean_context,
            context,
            answers,
            _verdicts(turn, attempt),
            votes=self.votes,
            lead=self.votes,
            folding=turn.rules.folding,
        )

    def votes_on(self, turn: AskedTurn, attempt: Any, answers: Answers) -> Votes | None:
        """Return the votes on an attempt, or ``None`` if there is only one answer."""
        return count_votes(
            turn.reference(attempt),
            attempt.context,
            answers,
            _verdicts(turn, attempt),
            turn.expected(attempt),
            turn.rules.folding,
            recorded=turn.recorded(attempt) is not None,
        )


class AnswerTally(NamedTuple):
    """Numbers of answers to a clean turn and to a variant."""

    #: Answers to the clean turn: the usual one, and all others.
    usual: int
    others: int
    #: Answers to the variant: those that break the relation, and those that keep it.
    changed: int
    kept: int

    @property
    def ratio(self) -> Fraction:
        """The likelihood of different usual answers, divided by the likelihood of equal ones."""
        r, q, c, s = self
        return Fraction(factorial(r + c) * factorial(q + s), factorial(r + s) * factorial(q + c))


class Ruling(NamedTuple):
    """The decision from the answers to a clean turn and to a variant."""

    #: The usual answer to the clean turn.
    clean: Outcome
    #: The most frequent answer on the winning side, or a failure if the first answer is one.
    answer: Answer
    #: Whether the answers to the variant differ; ``None`` = undecided.
    changed: bool | None
    tally: AnswerTally
    #: Number of requests for the variant and for its clean turn, failures included.
    asked: int
    clean_asked: int


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """A sequential test with its error rates."""

    floor: int = FLOOR
    #: Maximum false-positive rate, and maximum rate of missed changes.
    false_rate: float = ERROR_RATE
    missed_rate: float = ERROR_RATE
    #: Number of answers to a context that estimates of the calls assume.
    votes: ClassVar[int] = 3
    again: ClassVar[bool] = True
    by_outcome: ClassVar[bool] = False

    def decided(self, tally: AnswerTally) -> bool | None:
        """Return whether the answers show a change, or ``None`` if this is undecided."""
        upper, lower = _bounds(self.false_rate, self.missed_rate)
        if not tally.changed + tally.kept or tally.usual <= tally.others:
            return None
        return True if tally.ratio >= upper else False if tally.ratio <= lower else None

    def clean_wanted(self, context: Context, answers: Answers, folding: Folding) -> list[Context]:
        """Return the next requests for a clean turn, until it has `floor` answers."""
        given = folding.alike(all_answers(context, answers), context)
        if isinstance(given[0], TrackerFailure):
            return []
        end = self.floor
        if len(given) >= self.floor and _without_majority(given):
            end = 2 * self.floor
        return [context.again(number) for number in range(len(given), end)]

    def unstable(self, context: Context, answers: Answers, folding: Folding) -> bool:
        """Return whether a clean turn has no answer with a majority."""
        given = folding.alike(all_answers(context, answers), context)
        return isinstance(given[0], Prediction) and _without_majority(given)

    def ruling(
        self,
        clean: Context,
        context: Context,
        answers: Answers,
        folding: Folding,
        breaks: Breaks,
        *,
        expected: Expectation = UNCHANGED,
    ) -> Ruling:
        """Return the decision from the answers to a clean turn and to a variant.

        A text that agrees with an ``expected`` value counts as that value.
        """
        usual = folding.alike(all_answers(clean, answers), clean)
        before = usual_outcome(usual)
        counted, others = _counted(usual, before)
        # A rare answer to the clean turn counts as another answer for the clean turn. Unlike in a
        # vote, it must also count so for the variant, because both likelihoods use the same w.
        found = all_answers(context, answers)
        given = folding.to_clean(found, (), before, clean, expected.against(before), context)
        broken, kept = _sorted_by_verdict(given, before, breaks)
        tally = AnswerTally(counted, others, len(broken), len(kept))
        if isinstance(given[0], TrackerFailure):
            return Ruling(before, given[0], None, tally, len(given), len(usual))
        changed = self.decided(tally)
        side = len(broken) > len(kept) if changed is None else changed
        answer = replace(given[0], state=usual_outcome(broken if side else kept))
        return Ruling(before, answer, changed, tally, len(given), len(usual))

    def more(self, clean: Context, context: Context, ruling: Ruling) -> list[Context]:
        """Return the next requests for a variant. Return none if it is decided or undecidable."""
        if ruling.changed is not None or isinstance(ruling.answer, TrackerFailure):
            return []
        r, q, c, s = ruling.tally
        if r - q < abs(c - s) + _AHEAD and ruling.clean_asked < MOST:
            return [clean.again(ruling.clean_asked)]
        asked = ruling.asked
        # The smallest number of further answers that could decide.
        for more in range(1, MOST - asked + 1):
            both = (AnswerTally(r, q, c + more, s), AnswerTally(r, q, c, s + more))
            if any(self.decided(one) is not None for one in both):
                return [context.again(number) for number in range(asked, asked + more)]
        return []

    def clean_outcome(self, context: Context, answers: Answers, folding: Folding) -> Outcome:
        """Return the most frequent answer to a clean turn."""
        return usual_outcome(folding.alike(all_answers(context, answers), context))

    def sides(
        self,
        turn: AskedTurn,
        attempt: Any,
        clean: Context,
        context: Context,
        answers: Answers,
        expected: Expectation = UNCHANGED,  # noqa: ARG002 - the relation is asked
    ) -> Sides:
        """Return the usual answers to the clean context and to another one, see `Vote.sides`."""
        if isinstance(failed := answers[clean], TrackerFailure):
            return Sides(Outcome(), failed)
        ruling = self._ruling(turn, attempt, clean, context, answers)
        undecided, tally = ruling.changed is None, ruling.tally
        split = undecided and min(tally.changed, tally.kept) > 0
        return Sides(ruling.clean, ruling.answer, undecided, split)

    def wanted(
        self,
        turn: AskedTurn,
        attempt: Any,
        answers: Answers,
        outcome: VariantOutcome,  # noqa: ARG002 - a test looks at the answers themselves
    ) -> list[Context]:
        """Return the next requests for an attempt."""
        reference, context = turn.reference(attempt), attempt.context
        if not turn.asks(attempt) or isinstance(answers[reference], TrackerFailure):
            return []
        ruling = self._ruling(turn, attempt, reference, context, answers)
        return self.more(reference, context, ruling)

    def part_wanted(
        self, turn: AskedTurn, attempt: Any, context: Context, answers: Answers
    ) -> list[Context]:
        """Return the next requests for a part of an attempt, if its first answer is a violation."""
        clean = turn.clean_context
        return self.more(clean, context, self._ruling(turn, attempt, clean, context, answers))

    def votes_on(
        self,
        turn: AskedTurn,
        attempt: Any,
        answers: Answers,
    ) -> Votes | None:
        """Return the answers to an attempt as votes, or ``None`` if there is only one."""
        clean = turn.reference(attempt)
        if isinstance(answers[clean], TrackerFailure):
            return None
        ruling = self._ruling(turn, attempt, clean, attempt.context, answers)
        return votes_of(ruling, clean, answers, turn.rules.folding)

    def _ruling(
        self,
        turn: AskedTurn,
        attempt: Any,
        clean: Context,
        context: Context,
        answers: Answers,
    ) -> Ruling:
        folding, expected = turn.rules.folding, turn.expected(attempt)
        breaks = _verdicts(turn, attempt)
        return self.ruling(clean, context, answers, folding, breaks, expected=expected)


def _verdicts(turn: AskedTurn, attempt: Any) -> Breaks:
    """Return a function that asks the relation about one answer to an attempt."""

    def breaks(before: Outcome, found: Outcome) -> bool:
        return turn.verdict(attempt, before, found).kind == "violation"

    return breaks


Decider = Vote | SequentialTest
#: One answer for each context.
ONCE: Final = Vote()


def decider_of(settings: TrackerSettings, *, repeatable: bool = False) -> Decider:
    """Return the decider of some settings. A repeatable tracker needs one answer."""
    if repeatable or settings.error_rate == ():
        return ONCE
    if settings.noise_floor is None and settings.error_rate is None:
        return Vote(settings.votes)
    rates = settings.error_rate or (ERROR_RATE, ERROR_RATE)
    return SequentialTest(settings.noise_floor or FLOOR, *rates)


def idle_test(settings: TrackerSettings, who: str) -> str:
    """Return the message that a sequential test has no effect because ``who`` is repeatable."""
    asked = {"dst_noise_floor": settings.noise_floor, "--dst-error-rate": settings.error_rate}
    names = [name for name, value in asked.items() if value is not None]
    return (
        f"{' and '.join(names)} had no effect, because {who} declares that it is repeatable: if "
        "its answers vary, set --dst-repeatable=no"
    )


def usual_outcome(given: Sequence[Answer]) -> Outcome:
    """Return the most frequent outcome. If several are equally frequent, return the first."""
    counted = Counter(one.state for one in given if isinstance(one, Prediction))
    return counted.most_common(1)[0][0] if counted else Outcome()


def votes_of(ruling: Ruling, clean: Context, answers: Answers, folding: Folding) -> Votes | None:
    """Return a ruling's answers as votes, or ``None`` if the variant has only one answer."""
    if ruling.asked < 2 or isinstance(ruling.answer, TrackerFailure):
        return None
    usual = folding.alike(all_answers(clean, answers), clean)
    state = ruling.answer.state
    against = sum(isinstance(one, Prediction) and one.state == state for one in usual)
    r, _, c, s = ruling.tally
    return Votes(ruling.asked, c, s, s, r, against if state != ruling.clean else 0)


def _without_majority(given: Sequence[Answer]) -> bool:
    usual, others = _counted(given, usual_outcome(given))
    return usual <= others


def _counted(given: Sequence[Answer], usual: Outcome) -> tuple[int, int]:
    """Return how many answers are usual and how many are not. Failures are left out."""
    same = [one.state == usual for one in given if isinstance(one, Prediction)]
    return same.count(True), same.count(False)


@lru_cache(maxsize=16)
def _bounds(false_rate: float, missed_rate: float) -> tuple[Fraction, Fraction]:
    """Return two likelihood ratios: to find a change, and to find no change."""
    false, missed = Fraction(str(false_rate)), Fraction(str(missed_rate))
    return (1 - missed) / false, missed / (1 - false)


def clean_wanted(
    context: Context,
    answers: Mapping[Context, Answer],
    votes: int,
    folding: Folding = AS_GIVEN,
) -> list[Context]:
    """Return the next requests for a clean turn, until each slot is decided.

    A vote needs at least ``votes`` answers, and a value must lead the others by as many. More than
    half of the whole answers must be equal, because values of different answers may win the votes
    on the slots.
    """
    given = folding.alike(all_answers(context, answers), context)
    if isinstance(given[0], TrackerFailure) or len(given) >= _MOST * votes:
        return []
    if _no_two_alike(given, votes, folding):
        return []
    behind = [votes - _lead(given, slot) for slot in _slots(given)]
    behind += [votes - len(given), 1 - _whole_lead(given)]
    return _more(context, given, max(behind), votes)


def _no_two_alike(given: Sequence[Answer], votes: int, folding: Folding) -> bool:
    """Return whether all replies differ after twice the answers that a vote needs."""
    states = {one.state for one in given if isinstance(one, Prediction)}
    return not folding.exact and len(given) >= 2 * votes and len(states) == len(given)


def unstable(
    context: Context, answers: Mapping[Context, Answer], votes: int, folding: Folding
) -> bool:
    """Return whether the answers to a clean turn are too unstable for a majority.

    Either no two of the first replies agree, or no answer has a majority after the maximum number
    of requests.
    """
    given = folding.alike(all_answers(context, answers), context)
    if votes == 1 or isinstance(given[0], TrackerFailure):
        return False
    undecided = len(given) >= _MOST * votes and _whole_lead(given) <= 0
    return undecided or _no_two_alike(given, votes, folding)


def variant_wanted(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    breaks: Breaks,
    *,
    votes: int,
    lead: int,
    expected: Expectation = UNCHANGED,
    folding: Folding = AS_GIVEN,
) -> list[Context]:
    """Return the next requests for a variant whose first answer breaks the relation.

    The variant may have only half of its edits. The requests repeat the context, or the ``clean``
    context if a change leads. If everything is decided, there are no requests. A change needs a
    lead of ``lead`` answers. The clean answer needs two more, because all variants of the turn
    depend on it.
    """
    before, given, _ = _compare_sides(clean, context, answers, expected, folding)
    broken, kept = _sorted_by_verdict(given, before, breaks)
    failed = len(given) - len(broken) - len(kept)
    # While no side leads by enough, request answers until one can.
    ahead = 2 * len(broken) - len(given)
    needed = [lead - ahead, *(votes - (2 * side - len(given)) for side in (len(kept), failed))]
    wanted = _more(context, given, max(min(needed), 0), votes)
    if not wanted and ahead > 0:
        clean_given = folding.alike(all_answers(clean, answers), clean)
        wanted = _more(clean, clean_given, lead + 2 - _whole_lead(clean_given), votes)
    return wanted


def settle_clean(
    context: Context, answers: Mapping[Context, Answer], folding: Folding = AS_GIVEN
) -> Outcome:
    """Return the state of a clean turn: each slot's majority value, or else the first one."""
    votes = folding.alike(all_answers(context, answers), context)
    first = votes[0]
    assert isinstance(first, Prediction)  # noqa: S101 - the caller handles failures
    if len(votes) == 1:
        return first.state
    return _changed(first.state, _majority(votes, _slots(votes)))


def _compare_sides(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    expected: Expectation,
    folding: Folding,
) -> tuple[Outcome, Sequence[Answer], Expectation]:
    """Return the clean answer, the answers aligned to it, and the expected changes."""
    before = settle_clean(clean, answers, folding)
    expected = expected.against(before)
    found, given = all_answers(clean, answers), all_answers(context, answers)
    return before, folding.to_clean(given, found, before, clean, expected, context), expected


def _sorted_by_verdict(
    given: Iterable[Answer], before: Outcome, breaks: Breaks
) -> tuple[list[Prediction], list[Prediction]]:
    """Return the answers that break the relation, and those that keep it. Leave out failures."""
    broken: list[Prediction] = []
    kept: list[Prediction] = []
    for one in given:
        if isinstance(one, Prediction):
            (broken if breaks(before, one.state) else kept).append(one)
    return broken, kept


def settle_sides(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    breaks: Breaks,
    expected: Expectation = UNCHANGED,
    folding: Folding = AS_GIVEN,
) -> Sides:
    """Return the clean state and the answer for the relation to compare.

    The answer is the only one, or the result of a vote: the usual answer of the side with more than
    half of all answers. If there is no such side, or no usual answer to the clean context, the vote
    is undecided. If the request for the clean context failed, the answer is that failure.
    """
    if isinstance(failed := answers[clean], TrackerFailure):
        return Sides(Outcome(), failed)
    before, given, expected = _compare_sides(clean, context, answers, expected, folding)
    first, clean_given = given[0], folding.alike(all_answers(clean, answers), clean)
    if isinstance(first, TrackerFailure) or len(given) == 1:
        return Sides(before, first)
    broken, kept = _sorted_by_verdict(given, before, breaks)
    if len(broken) > len(kept):
        state = _common_change(broken, len(given), before, expected, breaks)
    else:
        state = usual_outcome(kept)
    most = max(len(broken), len(kept))
    undecided = 2 * most <= len(given) or _whole_lead(clean_given) <= 0
    split = undecided and bool(broken and kept)
    return Sides(before, Prediction(state, first.impurities), undecided, split)


def _common_change(
    broken: Sequence[Prediction],
    asked: int,
    before: Outcome,
    expected: Expectation,
    breaks: Breaks,
) -> Outcome:
    """Return what the answers that break a relation have in common.

    A slot is changed if it is wrong in more than half of all answers. If no slot is, the result is
    the most frequent of the answers.
    """
    values = {delta.slot: _as_wanted(delta, broken) for delta in expected.deltas}
    for slot in sorted({*_slots(broken), *before, *values}):
        delta = expected.of(slot)
        wanted = Admissible((before.get(slot),)) if delta is None else delta.after
        wrong = {v: n for v, n in _values(broken, slot).items() if v not in wanted}
        if 2 * sum(wrong.values()) > asked:
            values[slot] = max(wrong, key=lambda value: wrong[value])
    state = _changed(before, values)
    return state if breaks(before, state) else usual_outcome(broken)


def count_votes(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    breaks: Breaks,
    expected: Expectation = UNCHANGED,
    folding: Folding = AS_GIVEN,
    *,
    recorded: bool = False,
) -> Votes | None:
    """Return the votes on a variant, or ``None`` if it has only one answer."""
    if len(all_answers(context, answers)) < 2 or isinstance(answers[clean], TrackerFailure):
        return None
    before, given, _ = _compare_sides(clean, context, answers, expected, folding)
    broken, kept = _sorted_by_verdict(given, before, breaks)
    usual = folding.alike(all_answers(clean, answers), clean)
    if recorded:  # The recorded answer needs no vote.
        return Votes(len(given), len(broken), len(kept), len(kept), len(usual), 0)
    counted = Counter(one.state for one in usual if isinstance(one, Prediction))
    # If a slot should change, the clean answer is not evidence against a change.
    against = sum(counted[state] for state in {one.state for one in broken} - {before})
    return Votes(len(given), len(broken), len(kept), len(kept), counted[before], against)


def _more(context: Context, given: Sequence[Answer], count: int, votes: int) -> list[Context]:
    """Return the next repetitions of a context, up to the maximum number of requests."""
    end = min(len(given) + count, _MOST * votes)
    return [context.again(number) for number in range(len(given), end)]


def _values(votes: Iterable[Answer], slot: str) -> Counter[str | None]:
    """Count the answers with each value; ``None`` = absent. Failures do not count."""
    return Counter(vote.state.get(slot) for vote in votes if isinstance(vote, Prediction))


def _lead(votes: Sequence[Answer], slot: str) -> int:
    """Return the lead of a slot's most frequent value over all other answers together."""
    return 2 * max(_values(votes, slot).values()) - len(votes)


def _whole_lead(votes: Sequence[Answer]) -> int:
    """Return how many more answers are the most frequent one than all others together."""
    states = Counter(vote.state for vote in votes if isinstance(vote, Prediction))
    return 2 * max(states.values()) - len(votes)


def _as_wanted(delta: Delta, votes: Sequence[Answer]) -> str | None:
    """Return the most frequent admissible value of a slot."""
    counted = _values(votes, delta.slot).most_common()
    given = [value for value, _ in counted if value in delta.after]
    named = () if delta.after.anything_but else delta.after.values
    # If no answer has an admissible value and none is named, the slot counts as absent.
    return [*given, *named, None][0]


def _majority(votes: Sequence[Answer], slots: Iterable[str]) -> dict[str, str | None]:
    """Map each slot to its value in more than half of the answers; ``None`` = absent.

    Failures vote for no value. Slots without a majority are left out.
    """
    most = {slot: _values(votes, slot).most_common(1)[0] for slot in slots}
    return {slot: value for slot, (value, count) in most.items() if 2 * count > len(votes)}


def _slots(votes: Iterable[Answer]) -> list[str]:
    """Return the slots in some answers, sorted."""
    return sorted({slot for vote in votes if isinstance(vote, Prediction) for slot in vote.state})


def _changed(state: Outcome, values: Mapping[str, str | None]) -> Outcome:
    """Return a state with other values for some slots. Without changes, return the same object."""
    new = {slot: value for slot, value in {**state, **values}.items() if value is not None}
    return state if new == state else type(state)(new)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A variant to request again, together with its clean turn."""

    #: Index of the turn in its dialogue, and number of the variant.
    place: int
    number: int
    #: Contexts of the clean turn and of the variant.
    contexts: tuple[Context, Context]
    folding: Folding = AS_GIVEN

    @property
    def wanted(self) -> list[Again]:
        """The contexts to request again. They have the repetition -1, which votes never use."""
        return [context.again(-1) for context in self.contexts]

    def same(self, answers: Mapping[Context, Answer]) -> bool | None:
        """Return whether both contexts got equal answers again; ``None`` if one is missing."""
        found = []
        for first, again in zip(self.contexts, self.wanted, strict=True):
            one, other = answers[first], answers.get(again)
            if (
                other is None
                or isinstance(one, TrackerFailure)
                or isinstance(other, TrackerFailure)
            ):
                return None
            found.append(self.folding.agree(one.state, other.state, self.contexts[0]))
        return all(found)


def choose_repeats(
    turns: Sequence[AskedTurn],
    judged: Sequence[Sequence[_VariantJudgement]],
    seed: int,
    dialogue: str,
) -> list[Repeat]:
    """Choose violations and held variants of a dialogue for repeated requests, see `SHARES`."""
    chosen = []
    for (place, items), outcome in product(enumerate(judged), SHARES):
        found = [item.result.index for item in items if item.result.outcome == outcome]
        rng = _stream_of_repeat(seed, dialogue, place, outcome)
        if found and rng.random() < SHARES[outcome]:
            number, turn = found[int(rng.integers(len(found)))], turns[place]
            attempt = turn.attempts[number]
            contexts = turn.reference(attempt), attempt.context
            chosen.append(Repeat(place, number, contexts, turn.rules.folding))
    return chosen


def is_repeated(seed: int, dialogue: str, place: int, outcome: str) -> bool:
    """Return whether a turn requests one of its variants with this outcome again, if it has any."""
    return _stream_of_repeat(seed, dialogue, place, outcome).random() < SHARES[outcome]


def _stream_of_repeat(seed: int, dialogue: str, place: int, outcome: str) -> np.random.Generator:
    return stream(seed, "repeat", dialogue, place, outcome)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Numbers of variants that were requested again."""

    #: Repeated violations, and those with a different answer.
    violations: int
    violations_changed: int
    #: Repeated variants that held, and those with a different answer.
    held: int
    held_changed: int

    @property
    def changed(self) -> int:
        """Number of variants with a different answer."""
        return self.violations_changed + self.held_changed


class RepetitionTally:
    """Tracks whether all repeated requests of a run had equal answers."""

    def __init__(self) -> None:
        self.same = True

    def add(self, turn: TurnResult) -> None:
        """Record whether all repeated answers to one turn and its variants were equal."""
        answered = {kind for kind in turn.clean_votes if kind >= 0}
        self.same = (
            self.same
            and len(answered) <= 1
            and turn.reason != UNSTABLE
            and all(map(_repeated, turn.variants))
        )


def _repeated(variant: VariantResult) -> bool:
    """Return whether all answers to a variant and to its clean turn were equal."""
    votes = variant.votes
    voted = votes is None or (votes.against == 0 and votes.changed in (0, votes.asked))
    return voted and variant.outcome != "unstable" and variant.repeated is not False


class RepeatsTally:
    """Counts repeated requests, turn by turn."""

    def __init__(self) -> None:
        #: (was a violation, had the same answers) -> number of variants.
        self._asked: Counter[tuple[bool, bool]] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Count the requests that were repeated for a turn."""
        for item in turn.variants:
            if item.repeated is not None:
                self._asked[item.outcome == "violation", item.repeated] += 1

    @property
    def repeats(self) -> Repeats | None:
        """The counts, or ``None`` without repeated requests."""
        asked = self._asked
        if not asked:
            return None
        return Repeats(
            violations=asked[True, True] + asked[True, False],
            violations_changed=asked[True, False],
            held=asked[False, True] + asked[False, False],
            held_changed=asked[False, False],
        )
