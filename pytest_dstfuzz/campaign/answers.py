"""Answers to a context: a prediction, or why there is none; if a tracker varies, several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pytest_dstfuzz.campaign.folding import AS_GIVEN, Folding
from pytest_dstfuzz.dialogue.dialogues import Again, Context, Ontology
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import TrackerError
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
