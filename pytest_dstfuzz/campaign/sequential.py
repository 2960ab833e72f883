r"""A sequential test in the place of a fixed vote: whether a variant is answered otherwise.

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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, all_answers
from pytest_dstfuzz.campaign.folding import Folding
from pytest_dstfuzz.campaign.results import Votes
from pytest_dstfuzz.config import TrackerSettings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.relations.rewrite import UNCHANGED, Expected
from pytest_dstfuzz.trackers.tracker import Prediction

Answers = Mapping[Context, Answer]
#: Whether an answer breaks the relation: of the clean outcome, and of what was found.
Breaks = Callable[[Outcome, Outcome], bool]
#: One context is asked at most so many times.
MOST: Final = 32
#: Times that a clean turn is asked, and rates of both errors, where nothing else is said.
FLOOR: Final = 5
ERROR_RATE: Final = 0.05
#: By how many answers more than a variant its clean turn must be sure.
_AHEAD: Final = 2


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

    def wanted(self, clean: Context, context: Context, ruling: Ruling) -> list[Context]:
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


def sequential_test(settings: TrackerSettings) -> SequentialTest | None:
    """Return the test that some settings ask for; ``None`` = none."""
    if settings.noise_floor is None and settings.error_rate is None:
        return None
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
