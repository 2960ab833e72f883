"""Trackers that disagree with themselves: most of three answers have to differ.

A service may answer one question now so and now so. Where the preflight saw that, a variant
whose first answer breaks the relation, and its clean turn, are asked again until there are
three answers to each, and what most of them say, slot by slot, is compared. A variant whose
first answer kept the relation is not asked again. Likewise for the second passes that tell what
caused a violation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.campaign.answers import Answer, Failure
from pytest_dstfuzz.dialogue.types import BeliefState, Context
from pytest_dstfuzz.trackers.protocol import Prediction

#: Answers that a vote takes, the first one included.
ANSWERS: Final = 3


@dataclass(frozen=True, slots=True)
class Again(Context):
    """A context that is asked for once more; its answer is kept beside that to the context."""

    #: Which repetition it is, from 1.
    repetition: int


def repetitions(contexts: Iterable[Context]) -> list[Context]:
    """Return what has to be asked besides some contexts for a vote on each, in their order."""
    return [
        Again(context.exchanges, number)
        for context in dict.fromkeys(contexts)
        for number in range(1, ANSWERS)
    ]


def settled_clean(context: Context, answers: Mapping[Context, Answer]) -> BeliefState:
    """Return the belief state of a clean turn: by majority, where there was a vote.

    Where no value of a slot has a majority, the first answer counts.

    Args:
        context: of the clean turn; the tracker answered it.
        answers: those to it and to its repetitions.
    """
    votes = _all_answers(context, answers)
    slots = sorted({slot for vote in votes for slot in _slots(vote)})
    return _changed(_state_of(votes[0]), _majority(votes, slots))


def settled(
    clean: Context, context: Context, answers: Mapping[Context, Answer]
) -> tuple[BeliefState, Answer]:
    """Return the two sides that a relation compares: belief state of the clean turn, answer.

    By majority, where the context was put to the vote, and otherwise the first answers to both.
    A slot on which one side has no majority did not change.

    Args:
        clean: context of the clean turn; the tracker answered it.
        context: of the variant, or of a second pass.
        answers: those to both and to their repetitions.
    """
    first, votes = answers[context], _all_answers(context, answers)
    if isinstance(first, Failure) or len(votes) < ANSWERS:
        return _state_of(answers[clean]), first
    before = settled_clean(clean, answers)
    clean_votes = _all_answers(clean, answers)
    # A slot that one side alone ever names is absent from the other by all of its votes.
    slots = sorted({slot for vote in (*votes, *clean_votes) for slot in _slots(vote)})
    firm = _majority(clean_votes, slots)
    agreed = {slot: v for slot, v in _majority(votes, slots).items() if slot in firm}
    return before, Prediction(_changed(before, agreed), first.impurities)


def _all_answers(context: Context, answers: Mapping[Context, Answer]) -> list[Answer]:
    """Return all answers to a context: as many as a vote takes, or the first one alone."""
    again = (one for one in repetitions([context]) if one in answers)
    return [answers[context], *(answers[one] for one in again)]


def _majority(votes: Sequence[Answer], slots: Iterable[str]) -> dict[str, str | None]:
    """Return slot -> the value in more than half of a vote's answers; ``None`` = absent.

    A failure is no vote for anything. Slots without such a value are left out.
    """
    states = [vote.state for vote in votes if isinstance(vote, Prediction)]
    counted = {slot: Counter(state.get(slot) for state in states) for slot in slots}
    most = {slot: count.most_common(1)[0] for slot, count in counted.items()}
    return {slot: value for slot, (value, count) in most.items() if 2 * count > ANSWERS}


def _slots(answer: Answer) -> Iterable[str]:
    return answer.state if isinstance(answer, Prediction) else ()


def _state_of(answer: Answer) -> BeliefState:
    assert isinstance(answer, Prediction)  # noqa: S101 - else there is nothing to compare with
    return answer.state


def _changed(state: BeliefState, values: Mapping[str, str | None]) -> BeliefState:
    """Return a state with the values of some slots; one that nothing changes, as it is."""
    new = {slot: value for slot, value in {**state, **values}.items() if value is not None}
    return state if new == state else BeliefState(new)
