"""Checks of what a tracker answers: predictions go on, nonsense becomes a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real

from pytest_dstfuzz.dialogue.types import BeliefState, Ontology
from pytest_dstfuzz.errors import TrackerError, nearest
from pytest_dstfuzz.trackers.protocol import Prediction

_LONGEST_REASON = 300
#: How far below 0 the impurity of a certain slot may come out in single precision.
_ROUNDING = 1e-6
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")


@dataclass(frozen=True, slots=True)
class Failure:
    """What stands in the place of a prediction where the tracker failed."""

    #: What it did, in one line, the same in every process.
    reason: str


Answer = Prediction | Failure


def describe(error: Exception) -> str:
    """Return type and message of an exception in one line that is the same in every run."""
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    # An address is another one in the next run, and reports are compared byte by byte.
    text = _ADDRESS.sub("0x...", text)
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def as_list(answered: object, expected: int) -> list[object]:
    """Return the predictions of a batch as a list.

    Raises:
        TrackerError: it is no sequence, or does not have ``expected`` entries.
    """
    if isinstance(answered, str | bytes | Mapping) or not isinstance(answered, Iterable):
        raise TrackerError(
            f"the tracker returned {_kind(answered)} where a sequence of predictions is expected"
        )
    answers = list(answered)
    if len(answers) != expected:
        raise TrackerError(
            f"the tracker returned {_count(len(answers), 'prediction')} "
            f"for {_count(expected, 'context')}"
        )
    return answers


def check_answer(answered: object, ontology: Ontology | None) -> Answer:
    """Return the prediction, or why it is none.

    Args:
        answered: what the tracker returned for one context; a mapping ``slot -> value``
            is taken for a prediction without probabilities.
        ontology: the slots which the data knows; ``None`` = any slot will do.
    """
    if isinstance(answered, Prediction):
        prediction = answered
        state: object = answered.state
    elif isinstance(answered, Mapping):
        prediction = None
        state = answered
    else:
        return Failure(f"the tracker returned {_kind(answered)} where a prediction is expected")
    problem = _state_problem(state, ontology)
    if not problem and prediction is not None:
        problem = _impurity_problem(prediction.impurities)
    if problem:
        return Failure(f"the tracker returned {problem}")
    if prediction is not None and isinstance(prediction.state, BeliefState):
        return prediction
    values = BeliefState(state)  # type: ignore[arg-type]  # checked by _state_problem
    return Prediction(values, None if prediction is None else prediction.impurities)


def _state_problem(state: object, ontology: Ontology | None) -> str:
    """Return what is wrong with a belief state, or ``""``."""
    if not isinstance(state, Mapping):
        return f"{_kind(state)} where a belief state is expected"
    for slot, value in state.items():
        if not isinstance(slot, str):
            return f"the slot {slot!r}, which is {_kind(slot)}; slots are strings"
        if not isinstance(value, str):
            return f"{_kind(value)} as the value of {slot!r}; values are strings"
        if ontology is not None and slot not in ontology.values:
            guess = nearest(slot, ontology.slots)
            hint = f"; did you mean {guess!r}?" if guess else ""
            return f"the slot {slot!r}, which the ontology of the data does not have{hint}"
    return ""


def _impurity_problem(impurities: object) -> str:
    """Return what is wrong with the impurities of a prediction, or ``""``."""
    if impurities is None:
        return ""
    if not isinstance(impurities, Mapping):
        return f"{_kind(impurities)} where impurities by slot are expected"
    for slot, value in impurities.items():
        # numpy's scalars are numbers too, and no tracker should have to convert them.
        if not isinstance(value, Real) or not -_ROUNDING <= float(value) <= 1.0:
            return f"{value!r} as the impurity of {slot!r}; impurities are from 0 to 1"
    return ""


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
