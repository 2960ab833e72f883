r"""What the answers of a tracker that varies come to: by a vote, or by a sequential test.

A vote
------
A service may answer one question now so and now so. Of such a tracker each clean turn is asked
several times before anything else (``votes``, three by default), and again until one value of each
slot leads by as many answers. A variant whose first answer breaks the relation is asked again until
the change leads by ``2 * votes - 1`` answers, or is ``votes`` behind: a sequential probability
ratio test (Wald, 1945). Where the change stands, the clean value must lead by two more. Where
answers are wrong with chance w and always in the same way, a lead of d comes about by accident with
odds of ``(w / (1 - w)) ** d``. A variant whose first answer kept the relation is not asked again.
What is left of the noise is estimated, see `noise`.

A sequential test
-----------------
Each clean turn is asked ``floor`` times before it is perturbed: how often its answers are not the
usual one is the noise floor. Of a variant each answer keeps the relation or breaks it. Let r clean
answers be the usual one and q others, and c answers to the variant break the relation and s keep
it. To both contexts the system gives its usual answer but for a share w, which is not known and may
lie anywhere between 0 and 1/2. Either both have one usual answer, or they have different ones.
Which of the two clean answers is the usual one is as open as w, so the likelihoods are integrals
over all w from 0 to 1, and their ratio is::

    \Lambda = (r + c)! (q + s)! / ((r + s)! (q + c)!)

It is Wald's sequential probability ratio test with a weight function in the place of a known w
(Wald, Sequential Analysis, 1947, section 4.1.3). With error rates \alpha and \beta it ends with a
change where \Lambda >= (1 - \beta) / \alpha, and without one where \Lambda <= \beta / (1 - \alpha);
between the two more is asked. So of variants that are answered as the clean turn is, at most
\alpha / (1 - \beta) are taken for changed ones, whenever one stops to look (Ville's inequality),
and of changed ones at most \beta / (1 - \alpha) are missed. That holds on average over w, for
answers that do not depend on each other, and for changes that last: a change that shows in half of
the answers, or a w near 1/2, is what it leaves undecided. Where r is not more than q, the usual
answer is none, and nothing is decided. A failure to answer is neither.

Asking once more
----------------
A tracker that must repeat itself is taken at its word, but for a few contexts asked once more.

The preflight sees trackers that answer at random, but not one that does so once in a hundred times,
nor one that keeps something from one dialogue to the next only later on. So of every second turn
that is broken a violation, and of every eighth one a variant that held, are asked for again, with
the clean turn, when their dialogue is done. Which ones is drawn by the seed for each turn, so that
the result of a turn does not depend on the others. A cache keeps second answers apart from first
ones, and none stands for the other.
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
    ChangedSlot,
    TurnResult,
    VariantOutcome,
    VariantResult,
    Votes,
    faults,
)
from pytest_dstfuzz.config import TrackerSettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Again, Context
from pytest_dstfuzz.relations.relation import UNCHANGED, Admissible, Delta, Expected, Verdict
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

Answers = Mapping[Context, Answer]
#: Whether an answer breaks the relation: of the clean outcome, and of what was found.
Breaks = Callable[[Outcome, Outcome], bool]
#: One context is asked at most so many times the answers of a vote, however its answers go.
_MOST: Final = 11
#: A sequential test asks one context at most so many times.
MOST: Final = 32
#: Times that a clean turn is asked, and rates of both errors, where nothing else is said.
FLOOR: Final = 5
ERROR_RATE: Final = 0.05
#: By how many answers more than a variant its clean turn must be sure.
_AHEAD: Final = 2
#: Outcome of a variant -> share of the turns with one such in which one is asked again.
SHARES: Final = {"violation": 1 / 2, "held": 1 / 8}


class _Rules(Protocol):
    @property
    def folding(self) -> Folding: ...


class _Judged(Protocol):
    @property
    def result(self) -> VariantResult: ...


class AskedTurn(Protocol):
    """What a decider needs of a turn; it passes attempts on as they are."""

    @property
    def rules(self) -> _Rules:
        """The rules of the campaign."""

    @property
    def clean_context(self) -> Context:
        """What the turn itself asks."""

    @property
    def attempts(self) -> Mapping[int, Any]:
        """The attempts by number, each with its ``context``."""

    def expected(self, attempt: Any) -> Expected:
        """Return what the relation expects of an attempt."""

    def reference(self, attempt: Any) -> Context:
        """Return what an attempt is held against."""

    def asks(self, attempt: Any) -> bool:
        """Say whether an attempt is asked for."""

    def verdict(self, attempt: Any, clean: Outcome, found: Outcome) -> Verdict:
        """Return what the relation says of an answer."""


class Sides(NamedTuple):
    """The two sides that a relation compares."""

    clean: Outcome
    answer: Answer
    #: Whether there are answers for either side, and too few for any: only a test says so.
    undecided: bool = False
    #: Whether it is undecided with answers for both.
    split: bool = False


@dataclass(frozen=True, slots=True)
class Vote:
    """A majority of so many answers, or the one answer that there is."""

    #: Answers of a vote on what breaks the relation once; 1 = there is no vote.
    votes: int = 1
    #: Whether what to ask next depends on how a variant looks so far.
    by_outcome: ClassVar[bool] = True

    @property
    def again(self) -> bool:
        """Whether anything is asked again."""
        return self.votes > 1

    @property
    def floor(self) -> int:
        """How often a clean turn is asked at least."""
        return self.votes

    def clean_wanted(self, context: Context, answers: Answers, folding: Folding) -> list[Context]:
        """Return what to ask next about a clean turn."""
        return clean_wanted(context, answers, self.votes, folding)

    def unstable(self, context: Context, answers: Answers, folding: Folding) -> bool:
        """Whether a system says nothing for good to a clean turn: there is nothing to compare."""
        return unstable(context, answers, self.votes, folding)

    def clean_outcome(self, context: Context, answers: Answers, folding: Folding) -> Outcome:
        """Return what the answers to a clean turn, the first of which is sound, count as."""
        return settled_clean(context, answers, folding)

    def sides(
        self,
        turn: AskedTurn,
        attempt: Any,  # noqa: ARG002 - as a test takes it
        clean: Context,
        context: Context,
        answers: Answers,
        expected: Expected = UNCHANGED,
    ) -> Sides:
        """Return what the answers to a clean context and to another one count as.

        Args:
            turn: of the attempt.
            attempt: whose relation it is.
            clean: what is held against.
            context: of the attempt, or of a part of it.
            answers: to all that was asked.
            expected: what a vote counts as a change is what is not as expected; a test asks the
                relation.
        """
        return Sides(*settled(clean, context, answers, expected, turn.rules.folding))

    def wanted(
        self, turn: AskedTurn, attempt: Any, answers: Answers, outcome: VariantOutcome
    ) -> list[Context]:
        """Return what to ask next about an attempt; ``outcome`` is what it looks like so far."""
        carried, context = outcome == "carried", attempt.context
        if outcome in ("error", "improved"):
            return []
        if not (carried or outcome == "violation" or len(all_asked([context], answers)) > 1):
            return []
        return variant_wanted(
            turn.reference(attempt),
            context,
            answers,
            votes=self.votes,
            lead=self.votes if carried else 2 * self.votes - 1,
            expected=turn.expected(attempt),
            folding=turn.rules.folding,
        )

    def part_wanted(
        self,
        turn: AskedTurn,
        attempt: Any,  # noqa: ARG002 - as a test takes it
        context: Context,
        answers: Answers,
    ) -> list[Context]:
        """Return what to ask next about a part of an attempt that first broke the relation."""
        clean, folding = turn.clean_context, turn.rules.folding
        return variant_wanted(
            clean, context, answers, votes=self.votes, lead=self.votes, folding=folding
        )

    def votes_on(
        self,
        turn: AskedTurn,
        attempt: Any,
        answers: Answers,
        changes: Sequence[ChangedSlot],
    ) -> Votes | None:
        """Return how the answers to an attempt voted; ``None`` where there is only one."""
        clean, expected = turn.reference(attempt), turn.expected(attempt)
        return count_votes(clean, attempt.context, answers, changes, expected, turn.rules.folding)


class AnswerTally(NamedTuple):
    """The answers to a clean turn and to a variant of it, as they count."""

    #: Of the clean turn: those with the usual outcome, and the others.
    usual: int
    others: int
    #: Of the variant: those that break the relation, and those that keep it.
    changed: int
    kept: int

    @property
    def ratio(self) -> Fraction:
        """How much likelier they are if the usual answers differ than if they are one."""
        r, q, c, s = self
        return Fraction(factorial(r + c) * factorial(q + s), factorial(r + s) * factorial(q + c))


class Ruling(NamedTuple):
    """What the answers to a clean turn and to a variant come to."""

    #: What the clean turn's answers count as.
    clean: Outcome
    #: The most frequent answer of the side that has it; what failed where the first answer did.
    answer: Answer
    #: Whether the variant is answered otherwise; ``None`` = that cannot be told.
    changed: bool | None
    tally: AnswerTally
    #: How often the variant was asked, and its clean turn: failures are among it.
    asked: int
    clean_asked: int


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """The test, with its error rates."""

    floor: int = FLOOR
    #: Share of the unchanged variants that may be taken for changed, and of the changed ones that
    #: may be missed.
    false_rate: float = ERROR_RATE
    missed_rate: float = ERROR_RATE
    #: As many answers as an estimate of the calls goes by.
    votes: ClassVar[int] = 3
    again: ClassVar[bool] = True
    by_outcome: ClassVar[bool] = False

    def decided(self, tally: AnswerTally) -> bool | None:
        """Whether some answers show a change (``True``) or none (``False``); ``None`` = neither."""
        upper, lower = _bounds(self.false_rate, self.missed_rate)
        if not tally.changed + tally.kept or tally.usual <= tally.others:
            return None
        return True if tally.ratio >= upper else False if tally.ratio <= lower else None

    def clean_wanted(self, context: Context, answers: Answers, folding: Folding) -> list[Context]:
        """Return what to ask next about a clean turn: so often that its noise is known."""
        given = folding.alike(all_answers(context, answers), context)
        if isinstance(given[0], TrackerFailure):
            return []
        end = self.floor
        if len(given) >= self.floor and _without_majority(given):
            end = 2 * self.floor
        return [context.again(number) for number in range(len(given), end)]

    def unstable(self, context: Context, answers: Answers, folding: Folding) -> bool:
        """Whether a system has no usual answer to a clean turn: none has a majority."""
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
        expected: Expected = UNCHANGED,
    ) -> Ruling:
        """Return what the answers to a variant come to, beside those to its clean turn.

        A text that says the same as what is ``expected`` counts as that.
        """
        usual = folding.alike(all_answers(clean, answers), clean)
        before = usual_outcome(usual)
        counted, others = _counted(usual, before)
        # What the clean turn says now and then counts as another answer there. It must not count
        # as the usual one here, as it does in a vote: the likelihoods are of one and the same w.
        found = all_answers(context, answers)
        given = folding.to_clean(found, (), before, clean, expected.against(before), context)
        broken: list[Prediction] = []
        kept: list[Prediction] = []
        for one in given:
            if isinstance(one, Prediction):
                (broken if breaks(before, one.state) else kept).append(one)
        tally = AnswerTally(counted, others, len(broken), len(kept))
        if isinstance(given[0], TrackerFailure):
            return Ruling(before, given[0], None, tally, len(given), len(usual))
        changed = self.decided(tally)
        side = len(broken) > len(kept) if changed is None else changed
        chosen = broken if side else kept
        state = Counter(one.state for one in chosen).most_common(1)[0][0]
        answer = replace(given[0], state=state)
        return Ruling(before, answer, changed, tally, len(given), len(usual))

    def more(self, clean: Context, context: Context, ruling: Ruling) -> list[Context]:
        """Return what to ask next about a variant; nothing where it is decided, or cannot be."""
        if ruling.changed is not None or isinstance(ruling.answer, TrackerFailure):
            return []
        r, q, c, s = ruling.tally
        if r - q < abs(c - s) + _AHEAD and ruling.clean_asked < MOST:
            return [clean.again(ruling.clean_asked)]
        asked = ruling.asked
        # So many are needed at least, whichever way they go.
        for more in range(1, MOST - asked + 1):
            both = (AnswerTally(r, q, c + more, s), AnswerTally(r, q, c, s + more))
            if any(self.decided(one) is not None for one in both):
                return [context.again(number) for number in range(asked, asked + more)]
        return []

    def clean_outcome(self, context: Context, answers: Answers, folding: Folding) -> Outcome:
        """Return the usual answer to a clean turn."""
        return usual_outcome(folding.alike(all_answers(context, answers), context))

    def sides(
        self,
        turn: AskedTurn,
        attempt: Any,
        clean: Context,
        context: Context,
        answers: Answers,
        expected: Expected = UNCHANGED,  # noqa: ARG002 - the relation is asked
    ) -> Sides:
        """Return what the answers to a clean context and to another one count as; as a vote."""
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
        """Return what to ask next about an attempt."""
        reference, context = turn.reference(attempt), attempt.context
        if not turn.asks(attempt) or isinstance(answers[reference], TrackerFailure):
            return []
        ruling = self._ruling(turn, attempt, reference, context, answers)
        return self.more(reference, context, ruling)

    def part_wanted(
        self, turn: AskedTurn, attempt: Any, context: Context, answers: Answers
    ) -> list[Context]:
        """Return what to ask next about a part of an attempt that first broke the relation."""
        clean = turn.clean_context
        return self.more(clean, context, self._ruling(turn, attempt, clean, context, answers))

    def votes_on(
        self,
        turn: AskedTurn,
        attempt: Any,
        answers: Answers,
        changes: Sequence[ChangedSlot],  # noqa: ARG002 - an answer counts as a whole
    ) -> Votes | None:
        """Return the answers to an attempt as votes; ``None`` where there is only one."""
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
        def breaks(before: Outcome, found: Outcome) -> bool:
            return turn.verdict(attempt, before, found).kind == "violation"

        folding, expected = turn.rules.folding, turn.expected(attempt)
        return self.ruling(clean, context, answers, folding, breaks, expected=expected)


Decider = Vote | SequentialTest
#: One answer each: nothing is asked again.
ONCE: Final = Vote()


def decider_of(settings: TrackerSettings, *, repeatable: bool = False) -> Decider:
    """Return what decides by some settings; of a tracker that repeats itself, its one answer."""
    if repeatable or settings.error_rate == ():
        return ONCE
    if settings.noise_floor is None and settings.error_rate is None:
        return Vote(settings.votes)
    rates = settings.error_rate or (ERROR_RATE, ERROR_RATE)
    return SequentialTest(settings.noise_floor or FLOOR, *rates)


def idle_test(settings: TrackerSettings, who: str) -> str:
    """Say that a test is asked for in vain: ``who`` answers says that answers do not vary."""
    asked = {"dst_noise_floor": settings.noise_floor, "--dst-error-rate": settings.error_rate}
    names = [name for name, value in asked.items() if value is not None]
    return (
        f"{' and '.join(names)} did nothing: {who} says that it repeats itself, so nothing is put "
        "to a test; if its answers vary, say --dst-repeatable=no"
    )


def usual_outcome(given: Sequence[Answer]) -> Outcome:
    """Return the most frequent outcome of some answers, of several the first."""
    counted = Counter(one.state for one in given if isinstance(one, Prediction))
    return counted.most_common(1)[0][0] if counted else Outcome()


def votes_of(ruling: Ruling, clean: Context, answers: Answers, folding: Folding) -> Votes | None:
    """Return the answers of a ruling as votes; ``None`` where the variant was asked once."""
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
    """Return how many answers are the usual one, and how many another; a failure is neither."""
    same = [one.state == usual for one in given if isinstance(one, Prediction)]
    return same.count(True), same.count(False)


@lru_cache(maxsize=16)
def _bounds(false_rate: float, missed_rate: float) -> tuple[Fraction, Fraction]:
    """Return the ratios at which the test ends with a change, and without one."""
    false, missed = Fraction(str(false_rate)), Fraction(str(missed_rate))
    return (1 - missed) / false, missed / (1 - false)


def clean_wanted(
    context: Context,
    answers: Mapping[Context, Answer],
    votes: int,
    folding: Folding = AS_GIVEN,
) -> list[Context]:
    """Return what to ask next about a clean turn; nothing once each of its slots is decided.

    A vote takes at least ``votes`` answers, and a value must be ahead of others by as many.
    """
    given = folding.alike(all_answers(context, answers), context)
    if isinstance(given[0], TrackerFailure) or len(given) >= _MOST * votes:
        return []
    if _no_two_alike(given, votes, folding):
        return []
    behind = [votes - _lead(given, slot) for slot in _slots(given)]
    return _more(context, given, max([*behind, votes - len(given)]), votes)


def _no_two_alike(given: Sequence[Answer], votes: int, folding: Folding) -> bool:
    """Whether a system says something else each time: twice as many answers as a vote takes."""
    states = {one.state for one in given if isinstance(one, Prediction)}
    return not folding.exact and len(given) >= 2 * votes and len(states) == len(given)


def unstable(
    context: Context, answers: Mapping[Context, Answer], votes: int, folding: Folding
) -> bool:
    """Whether what a system replies to a clean turn settles down to nothing.

    No two of the first replies say the same, or none of its ways to reply has a majority after all
    that may be asked.
    """
    given = folding.alike(all_answers(context, answers), context)
    if folding.exact or votes == 1 or isinstance(given[0], TrackerFailure):
        return False
    undecided = len(given) >= _MOST * votes and any(
        _lead(given, slot) <= 0 for slot in _slots(given)
    )
    return undecided or _no_two_alike(given, votes, folding)


def variant_wanted(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    *,
    votes: int,
    lead: int,
    expected: Expected = UNCHANGED,
    folding: Folding = AS_GIVEN,
) -> list[Context]:
    """Return what to ask next about a variant, or a second pass, that first broke the relation.

    Repetitions of the context, and of the ``clean`` one where a change stands; nothing once all
    is decided. A change must be ahead by ``lead`` answers to stand, the clean value by two more,
    as all variants of the turn hang on it. Where something is to change, "change" is what is not as
    ``expected``, the clean value of a slot that was to move among it.
    """
    before = settled_clean(clean, answers, folding)
    expected = expected.against(before)
    given = _as_clean(clean, context, answers, before, folding, expected)
    slots = sorted({*_slots(given), *before, *(delta.slot for delta in expected.deltas)})
    leads = {slot: _changed_lead(given, slot, before, expected) for slot in slots}
    # A change that may stand or fall is asked until it can do either.
    needed = [min(lead - ahead, ahead + votes) for ahead in leads.values() if -votes < ahead < lead]
    wanted = _more(context, given, max(needed, default=0), votes)
    if not wanted and (standing := [slot for slot in leads if leads[slot] > 0]):
        clean_given = folding.alike(all_answers(clean, answers), clean)
        behind = max(lead + 2 - _lead(clean_given, slot) for slot in standing)
        wanted = _more(clean, clean_given, behind, votes)
    return wanted


def settled_clean(
    context: Context, answers: Mapping[Context, Answer], folding: Folding = AS_GIVEN
) -> Outcome:
    """Return the state of a clean turn: of each slot by majority, or else the first answer's."""
    votes = folding.alike(all_answers(context, answers), context)
    first = votes[0]
    assert isinstance(first, Prediction)  # noqa: S101 - else there is nothing to compare with
    if len(votes) == 1:
        return first.state
    return _changed(first.state, _majority(votes, _slots(votes)))


def _as_clean(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    before: Outcome,
    folding: Folding,
    expected: Expected,
) -> Sequence[Answer]:
    """Return all answers to a variant, those that say what clean ones say as ``before``."""
    given = all_answers(context, answers)
    return folding.to_clean(given, all_answers(clean, answers), before, clean, expected, context)


def settled(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    expected: Expected = UNCHANGED,
    folding: Folding = AS_GIVEN,
) -> tuple[Outcome, Answer]:
    """Return the two sides that a relation compares: belief state of the clean turn, answer.

    By majority, where the context was put to the vote, and otherwise its only answer. A slot on
    which one side has no majority did not change, or became what was ``expected`` of it. Where the
    clean side failed, that is the answer: of a clean turn it is known before.
    """
    if isinstance(failed := answers[clean], TrackerFailure):
        return Outcome(), failed
    before = settled_clean(clean, answers, folding)
    expected = expected.against(before)
    votes = _as_clean(clean, context, answers, before, folding, expected)
    first, clean_votes = votes[0], folding.alike(all_answers(clean, answers), clean)
    if isinstance(first, TrackerFailure) or len(votes) == 1:
        return before, first
    # A slot that one side alone ever names is absent from the other by all of its votes.
    slots = _slots([*votes, *clean_votes])
    slots = sorted({*slots, *(delta.slot for delta in expected.deltas)})
    firm = _majority(clean_votes, slots)
    agreed = {slot: v for slot, v in _majority(votes, slots).items() if slot in firm}
    doubtful = [delta for delta in expected.deltas if delta.slot not in agreed]
    agreed.update((delta.slot, _as_wanted(delta, votes)) for delta in doubtful)
    return before, Prediction(_changed(before, agreed), first.impurities)


def count_votes(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    changes: Sequence[ChangedSlot],
    expected: Expected = UNCHANGED,
    folding: Folding = AS_GIVEN,
) -> Votes | None:
    """Return how answers voted on the slot whose change they confirm best; ``None`` of only one."""
    if len(all_answers(context, answers)) < 2 or isinstance(answers[clean], TrackerFailure):
        return None
    before = settled_clean(clean, answers, folding)
    expected = expected.against(before)
    given = _as_clean(clean, context, answers, before, folding, expected)
    slots = [change.slot for change in faults(changes)] or sorted({*_slots(given), *before})
    states = [one.state for one in given if isinstance(one, Prediction)]
    same = sum(expected.judge(before, state).kind == "held" for state in states)
    if not slots:
        return Votes(len(given), 0, same, same, len(all_answers(clean, answers)), 0)
    leads = {slot: _changed_lead(given, slot, before, expected) for slot in slots}
    # Of equal ones the first by name.
    slot = min(leads, key=lambda name: (-leads[name], name))
    counted, clean_value = _values(given, slot), before.get(slot)
    wanted = _admissible(slot, before, expected)
    others = [(count, value) for value, count in counted.items() if value not in wanted]
    changed, value = max(others, key=lambda pair: pair[0]) if others else (0, clean_value)
    kept = sum(count for one, count in counted.items() if one in wanted)
    clean_counted = _values(folding.alike(all_answers(clean, answers), clean), slot)
    # The value of the clean turn, where that was to move, is not against it.
    against = clean_counted[value] if others and value != clean_value else 0
    return Votes(len(given), changed, kept, same, clean_counted[clean_value], against)


def _more(context: Context, given: Sequence[Answer], count: int, votes: int) -> list[Context]:
    """Return the next repetitions of a context, as far as it may be asked."""
    end = min(len(given) + count, _MOST * votes)
    return [context.again(number) for number in range(len(given), end)]


def _values(votes: Iterable[Answer], slot: str) -> Counter[str | None]:
    """Return value -> answers that have it, ``None`` = absent. A failure is no vote."""
    return Counter(vote.state.get(slot) for vote in votes if isinstance(vote, Prediction))


def _lead(votes: Sequence[Answer], slot: str) -> int:
    """Return by how many answers the most frequent value of a slot is ahead of all the rest."""
    return 2 * max(_values(votes, slot).values()) - len(votes)


def _changed_lead(votes: Sequence[Answer], slot: str, before: Outcome, expected: Expected) -> int:
    """Return by how many the most frequent value that is not as expected is ahead."""
    wanted = _admissible(slot, before, expected)
    counted = [count for value, count in _values(votes, slot).items() if value not in wanted]
    return 2 * max(counted, default=0) - len(votes)


def _admissible(slot: str, before: Outcome, expected: Expected) -> Admissible:
    """Return the values of which a slot may have one: where it is to stay, the clean one."""
    delta = expected.of(slot)
    return Admissible((before.get(slot),)) if delta is None else delta.after


def _as_wanted(delta: Delta, votes: Sequence[Answer]) -> str | None:
    """Return what a slot in doubt counts as: of the values it may have, the most frequent one.

    A failure of it is what a majority agrees on.
    """
    counted = _values(votes, delta.slot).most_common()
    given = [value for value, _ in counted if value in delta.after]
    named = () if delta.after.anything_but else delta.after.values
    # Absence is admissible where no answer has any such value and none is named: or else nothing.
    return [*given, *named, None][0]


def _majority(votes: Sequence[Answer], slots: Iterable[str]) -> dict[str, str | None]:
    """Return slot -> the value in more than half of a vote's answers; ``None`` = absent.

    A failure is no vote for anything. Slots without such a value are left out.
    """
    most = {slot: _values(votes, slot).most_common(1)[0] for slot in slots}
    return {slot: value for slot, (value, count) in most.items() if 2 * count > len(votes)}


def _slots(votes: Iterable[Answer]) -> list[str]:
    """Return the slots that some answers name, sorted."""
    return sorted({slot for vote in votes if isinstance(vote, Prediction) for slot in vote.state})


def _changed(state: Outcome, values: Mapping[str, str | None]) -> Outcome:
    """Return a state with the values of some slots; one that nothing changes, as it is."""
    new = {slot: value for slot, value in {**state, **values}.items() if value is not None}
    return state if new == state else type(state)(new)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A variant of a turn that is asked for again, with its clean turn."""

    #: Place of the turn in its dialogue, and number of the variant.
    place: int
    number: int
    #: Contexts of the clean turn and of the variant.
    contexts: tuple[Context, Context]
    folding: Folding = AS_GIVEN

    @property
    def wanted(self) -> list[Again]:
        """What to ask for: no answer of a vote, which are numbered from 1."""
        return [context.again(-1) for context in self.contexts]

    def same(self, answers: Mapping[Context, Answer]) -> bool | None:
        """Whether both had the same answers again; ``None`` = one has no second answer."""
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
    judged: Sequence[Sequence[_Judged]],
    seed: int,
    dialogue: str,
) -> list[Repeat]:
    """Choose violations of a dialogue and variants that held, see `SHARES`."""
    chosen = []
    for (place, items), outcome in product(enumerate(judged), SHARES):
        found = [item.result.index for item in items if item.result.outcome == outcome]
        rng = stream(seed, "repeat", dialogue, place, outcome)
        if found and rng.random() < SHARES[outcome]:
            number, turn = found[int(rng.integers(len(found)))], turns[place]
            attempt = turn.attempts[number]
            contexts = turn.reference(attempt), attempt.context
            chosen.append(Repeat(place, number, contexts, turn.rules.folding))
    return chosen


@dataclass(frozen=True, slots=True)
class Repeats:
    """What came of asking again."""

    #: Violations that were asked for again, and those of them with other answers than before.
    violations: int
    violations_changed: int
    #: Likewise variants that held.
    held: int
    held_changed: int

    @property
    def changed(self) -> int:
        """How many had other answers than before."""
        return self.violations_changed + self.held_changed


class RepetitionTally:
    """Says whether a bot repeats itself, as far as a run asked it anything more than once."""

    def __init__(self) -> None:
        self.same = True

    def add(self, turn: TurnResult) -> None:
        """Take in the answers to a turn."""
        answered = {kind for kind in turn.clean_votes if kind >= 0}
        self.same = (
            self.same
            and len(answered) <= 1
            and turn.reason != UNSTABLE
            and all(map(_repeated, turn.variants))
        )


def _repeated(variant: VariantResult) -> bool:
    """Whether no second answer to a variant, or to its clean turn, was another one."""
    votes = variant.votes
    voted = votes is None or (votes.against == 0 and votes.changed in (0, votes.asked))
    return voted and variant.outcome != "unstable" and variant.repeated is not False


class RepeatsTally:
    """Counts what was asked again, one turn after the other."""

    def __init__(self) -> None:
        #: (whether it had been a violation, whether the answers were the same) -> variants.
        self._asked: Counter[tuple[bool, bool]] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Take in what was asked again at a turn."""
        for item in turn.variants:
            if item.repeated is not None:
                self._asked[item.outcome == "violation", item.repeated] += 1

    @property
    def repeats(self) -> Repeats | None:
        """What came of it; ``None`` where nothing was asked again."""
        asked = self._asked
        if not asked:
            return None
        return Repeats(
            violations=asked[True, True] + asked[True, False],
            violations_changed=asked[True, False],
            held=asked[False, True] + asked[False, False],
            held_changed=asked[False, False],
        )
