"""Whether what a tracker returned is one prediction for each context."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real

from pytest_dstfuzz.dialogue.types import BeliefState
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.protocol import Prediction

#: Characters of a wrong value that a message shows.
_SHOWN = 60


def check_predictions(answer: object, count: int) -> list[Prediction]:
    """Return ``answer`` as a list when it holds ``count`` sound predictions.

    Args:
        answer: what ``Tracker.predict`` returned.
        count: how many contexts it was given.

    Raises:
        TrackerError: the answer is not a sequence of ``count`` predictions, or one of
            them holds something that is no belief state or no impurity.
    """
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise TrackerError(f"predict() must return a list of predictions, not {describe(answer)}")
    predictions = list(answer)
    if len(predictions) != count:
        raise TrackerError(
            f"predict() returned {len(predictions)} predictions "
            f"for {count} context{'' if count == 1 else 's'}"
        )
    return [_sound(prediction) for prediction in predictions]


def _sound(prediction: object) -> Prediction:
    if isinstance(prediction, Mapping):
        prediction = Prediction(BeliefState(prediction))
    if not isinstance(prediction, Prediction):
        raise TrackerError(
            "predict() must return Prediction objects (or mappings slot -> value), "
            f"not {describe(prediction)}"
        )
    if not isinstance(prediction.state, BeliefState):
        raise TrackerError(
            f"the state of a Prediction must be a BeliefState, not {describe(prediction.state)}"
        )
    for slot, value in prediction.state.items():
        if not isinstance(slot, str) or not isinstance(value, str):
            raise TrackerError(
                f"a belief state maps strings to strings, not {describe(slot)} to {describe(value)}"
            )
    for slot, impurity in (prediction.impurities or {}).items():
        # A NaN compares false with everything, so the range alone would not catch it.
        if not isinstance(impurity, Real) or not math.isfinite(impurity):
            raise TrackerError(f"the impurity of slot {slot!r} is {describe(impurity)}")
        if not -1e-6 <= impurity <= 1.0:
            raise TrackerError(f"the impurity of slot {slot!r} is {impurity}, outside [0, 1]")
    return prediction


def describe(value: object) -> str:
    """Return type and beginning of a value that is not what it should be."""
    text = repr(value)
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return shown if value is None else f"{type(value).__name__} {shown}"
