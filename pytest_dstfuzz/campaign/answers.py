"""Answers to a context: a prediction, or why there is none; where a tracker varies, several.

A service may answer one question now so and now so. Of such a tracker each clean turn is asked
several times before anything else (``votes``, three by default), and again until one value of each
slot leads by as many answers. A variant whose first answer breaks the relation is asked again until
the change leads by ``2 * votes - 1`` answers, or is ``votes`` behind: a sequential probability
ratio test (Wald, 1945). Where the change stands, the clean value must lead by two more. Where
answers are wrong with chance w and always in the same way, a lead of d comes about by accident with
odds of ``(w / (1 - w)) ** d``. A variant whose first answer kept the relation is not asked again.
What is left of the noise is estimated, see `noise`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_dstfuzz.campaign.results import ChangedSlot, Votes
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Ontology
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import check_prediction


@dataclass(frozen=True, slots=True)
class TrackerFailure:
    """What stands in the place of a prediction where the tracker failed."""

    #: What it did, in one line, the same in every process.
    reason: str
    #: ``False`` where the tracker was not even asked, because it never answers.
    asked: bool = True


Answer = Prediction | TrackerFailure


def count_asked(contexts: Collection[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many of some distinct contexts the tracker was asked for."""
    found = (answers.get(context) for context in contexts)
    return sum(answer is not None and getattr(answer, "asked", True) for answer in found)


def check_answer(
    answered: object, ontology: Ontology | None, normalisation: str = "plain"
) -> Answer:
    """Return the prediction, or why it is none; see `check_prediction`."""
    try:
        found = check_prediction(answered, ontology, normalisation=normalisation)
    except TrackerError as error:
        return TrackerFailure(str(error))
    impurities = found.impurities or {}
    if all(type(value) is float for value in impurities.values()):
        return found
    # What another process or run is given is a Python float, and results must not differ.
    return replace(found, impurities={slot: float(value) for slot, value in impurities.items()})


#: One context is asked at most so many times ``votes``, however its answers go.
_MOST: Final = 11


@dataclass(frozen=True, slots=True)
class Again(Context):
    """A context that is asked for once more; its answer is kept beside that to the context."""

    #: Which repetition it is: from 1 for a vote, below 0 for anything else.
    repetition: int


def all_answers(context: Context, answers: Mapping[Context, Answer]) -> list[Answer]:
    """Return all answers to a context, in the order in which they were asked for."""
    return [answers[one] for one in all_asked([context], answers)]


def all_asked(contexts: Iterable[Context], answers: Mapping[Context, Answer]) -> list[Context]:
    """Return contexts and their repetitions, as far as they were answered."""
    found = []
    for context in contexts:
        one, number = context, 0
        while one in answers:
            found.append(one)
            number += 1
            one = Again(context.exchanges, number)
    return found


def clean_wanted(context: Context, answers: Mapping[Context, Answer], votes: int) -> list[Context]:
    """Return what to ask next about a clean turn; nothing once each of its slots is decided.

    A vote takes at least ``votes`` answers, and a value must be ahead of others by as many.
    """
    given = all_answers(context, answers)
    if isinstance(given[0], TrackerFailure) or len(given) >= _MOST * votes:
        return []
    behind = [votes - _lead(given, slot) for slot in _slots(given)]
    return _more(context, given, max([*behind, votes - len(given)]), votes)


def variant_wanted(
    clean: Context, context: Context, answers: Mapping[Context, Answer], votes: int, lead: int
) -> list[Context]:
    """Return what to ask next about a variant, or a second pass, that first broke the relation.

    Repetitions of the context, and of the ``clean`` one where a change stands; nothing once all
    is decided. A change must be ahead by ``lead`` answers to stand, the clean value by two more,
    as all variants of the turn hang on it.
    """
    given = all_answers(context, answers)
    before = settled_clean(clean, answers)
    slots = sorted({*_slots(given), *before})
    leads = {slot: _changed_lead(given, slot, before) for slot in slots}
    # A change that may stand or fall is asked until it can do either.
    needed = [min(lead - ahead, ahead + votes) for ahead in leads.values() if -votes < ahead < lead]
    wanted = _more(context, given, max(needed, default=0), votes)
    if not wanted and (standing := [slot for slot in leads if leads[slot] > 0]):
        clean_given = all_answers(clean, answers)
        behind = max(lead + 2 - _lead(clean_given, slot) for slot in standing)
        wanted = _more(clean, clean_given, behind, votes)
    return wanted


def settled_clean(context: Context, answers: Mapping[Context, Answer]) -> BeliefState:
    """Return the state of a clean turn: of each slot by majority, or else the first answer's."""
    votes = all_answers(context, answers)
    first = votes[0]
    assert isinstance(first, Prediction)  # noqa: S101 - else there is nothing to compare with
    return _changed(first.state, _majority(votes, _slots(votes)))


def settled(
    clean: Context, context: Context, answers: Mapping[Context, Answer]
) -> tuple[BeliefState, Answer]:
    """Return the two sides that a relation compares: belief state of the clean turn, answer.

    By majority, where the context was put to the vote, and otherwise its only answer. A slot on
    which one side has no majority did not change.
    """
    first, before = answers[context], settled_clean(clean, answers)
    votes, clean_votes = all_answers(context, answers), all_answers(clean, answers)
    if isinstance(first, TrackerFailure) or len(votes) == 1:
        return before, first
    # A slot that one side alone ever names is absent from the other by all of its votes.
    slots = _slots([*votes, *clean_votes])
    firm = _majority(clean_votes, slots)
    agreed = {slot: v for slot, v in _majority(votes, slots).items() if slot in firm}
    return before, Prediction(_changed(before, agreed), first.impurities)


def kinds_of_answers(context: Context, answers: Mapping[Context, Answer]) -> tuple[int, ...]:
    """Return for each answer to a context which of its different states it was, by appearance.

    Numbers from 0, and -1 for a failure; nothing for a context that was asked once.
    """
    given = all_answers(context, answers)
    numbers: dict[BeliefState, int] = {}
    kinds = [
        numbers.setdefault(one.state, len(numbers)) if isinstance(one, Prediction) else -1
        for one in given
    ]
    return tuple(kinds) if len(kinds) > 1 else ()


def count_votes(
    clean: Context,
    context: Context,
    answers: Mapping[Context, Answer],
    changes: Sequence[ChangedSlot],
) -> Votes | None:
    """Return how answers voted on the slot whose change they confirm best; ``None`` of only one."""
    given = all_answers(context, answers)
    if len(given) < 2:
        return None
    before = settled_clean(clean, answers)
    anew = [change.slot for change in changes if not change.carried]
    slots = anew or [change.slot for change in changes] or sorted({*_slots(given), *before})
    same = sum(isinstance(one, Prediction) and one.state == before for one in given)
    if not slots:
        return Votes(len(given), 0, same, same, len(all_answers(clean, answers)), 0)
    leads = {slot: _changed_lead(given, slot, before) for slot in slots}
    # Of equal ones the first by name.
    slot = min(leads, key=lambda name: (-leads[name], name))
    counted, kept = _values(given, slot), before.get(slot)
    others = [(count, value) for value, count in counted.items() if value != kept]
    changed, value = max(others, key=lambda pair: pair[0]) if others else (0, kept)
    clean_counted = _values(all_answers(clean, answers), slot)
    against = clean_counted[value] if others else 0
    return Votes(len(given), changed, counted[kept], same, clean_counted[kept], against)


def _more(context: Context, given: Sequence[Answer], count: int, votes: int) -> list[Context]:
    """Return the next repetitions of a context, as far as it may be asked."""
    end = min(len(given) + count, _MOST * votes)
    return [Again(context.exchanges, number) for number in range(len(given), end)]


def _values(votes: Iterable[Answer], slot: str) -> Counter[str | None]:
    """Return value -> answers that have it, ``None`` = absent. A failure is no vote."""
    return Counter(vote.state.get(slot) for vote in votes if isinstance(vote, Prediction))


def _lead(votes: Sequence[Answer], slot: str) -> int:
    """Return by how many answers the most frequent value of a slot is ahead of all the rest."""
    return 2 * max(_values(votes, slot).values()) - len(votes)


def _changed_lead(votes: Sequence[Answer], slot: str, before: BeliefState) -> int:
    """Return by how many the most frequent value other than the clean one is ahead."""
    counted = _values(votes, slot)
    counted.pop(before.get(slot), None)
    return 2 * max(counted.values(), default=0) - len(votes)


def _majority(votes: Sequence[Answer], slots: Iterable[str]) -> dict[str, str | None]:
    """Return slot -> the value in more than half of a vote's answers; ``None`` = absent.

    A failure is no vote for anything. Slots without such a value are left out.
    """
    most = {slot: _values(votes, slot).most_common(1)[0] for slot in slots}
    return {slot: value for slot, (value, count) in most.items() if 2 * count > len(votes)}


def _slots(votes: Iterable[Answer]) -> list[str]:
    """Return the slots that some answers name, sorted."""
    return sorted({slot for vote in votes if isinstance(vote, Prediction) for slot in vote.state})


def _changed(state: BeliefState, values: Mapping[str, str | None]) -> BeliefState:
    """Return a state with the values of some slots; one that nothing changes, as it is."""
    new = {slot: value for slot, value in {**state, **values}.items() if value is not None}
    return state if new == state else BeliefState(new)
