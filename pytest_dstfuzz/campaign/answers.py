"""What stands for the answer to a context: a prediction, or why there is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pytest_dstfuzz.dialogue.dialogues import Context, Ontology
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
