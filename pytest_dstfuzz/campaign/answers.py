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

from pytest_dstfuzz.campaign.folding import AS_GIVEN, Folding
from pytest_dstfuzz.campaign.results import ChangedSlot, Votes, faults
from pytest_dstfuzz.dialogue.dialogues import Again, Context, Ontology
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.relations.rewrite import UNCHANGED, Admissible, Delta, Expected
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import check_prediction

__all__ = ["Answer", "TrackerFailure"]


@dataclass(frozen=True, slots=True)
class TrackerFailure:
    """What stands in the place of a prediction where the tracker failed."""

    #: What it did, in one line, the same in every process.
    reason: str
    #: ``False`` where the tracker was not even asked, because it never answers.
    asked: bool = True
    #: How often it answered with something that cannot be read.
    malformed: int = 0


Answer = Prediction | TrackerFailure


def count_asked(contexts: Collection[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many of some distinct contexts the tracker was asked for."""
    found = (answers.get(context) for context in contexts)
    return sum(answer is not None and getattr(answer, "asked", True) for answer in found)


def malformed_answers(asked: Iterable[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many answers to some contexts could not be read, those asked for again among them.

    What came from a cache had none.
    """
    return sum(answers[context].malformed for context in asked if context in answers)


def check_answer(
    answered: object,
    ontology: Ontology | None,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> Answer:
    """Return the prediction, or why it is none; see `check_prediction`."""
    try:
        found = check_prediction(answered, ontology, normalisation=normalisation, outcome=outcome)
    except TrackerError as error:
        return TrackerFailure(str(error))
    impurities = found.impurities or {}
    if all(type(value) is float for value in impurities.values()):
        return found
    # What another process or run is given is a Python float, and results must not differ.
    return replace(found, impurities={slot: float(value) for slot, value in impurities.items()})


#: Why a turn to which a system replies something else each time is not tested.
UNSTABLE: Final = "unstable: its replies to the very same messages agree in no two"
#: One context is asked at most so many times ``votes``, however its answers go.
_MOST: Final = 11


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
            if isinstance(context, Again):  # No votes are taken on a repetition.
                break
            number += 1
            one = context.again(number)
    return found


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


def kinds_of_answers(
    context: Context, answers: Mapping[Context, Answer], folding: Folding = AS_GIVEN
) -> tuple[int, ...]:
    """Return for each answer to a context which of its different states it was, by appearance.

    Numbers from 0, and -1 for a failure; nothing for a context that was asked once.
    """
    given = folding.alike(all_answers(context, answers), context)
    numbers: dict[Outcome, int] = {}
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
