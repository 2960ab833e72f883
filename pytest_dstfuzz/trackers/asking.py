"""Asking a tracker outside a campaign: whatever goes wrong is one kind of error.

The preflight, the conformance kit and ``dstfuzz evaluate`` ask here. (A campaign asks by
itself: it halves a batch that fails, and keeps the answers of an interrupted one.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_dstfuzz.dialogue.dialogues import Context, diff_states
from pytest_dstfuzz.errors import GivenUpError, TrackerError, UserError
from pytest_dstfuzz.trackers.checks import (
    as_list,
    check_predictions,
    describe_error,
    passes_through,
)
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, declared

#: Impurities may differ by so much: padding changes the order of float additions.
_TOLERANCE = 1e-3
#: Where trackers keep the module that has a training mode; adapters, what they adapt.
_INNER = ("model", "module", "network", "net", "wrapped")


class TrackerRaisedError(TrackerError):
    """The tracker raised something of its own, which is the cause of this error."""


def ask_raw(tracker: Tracker, batch: Sequence[Context]) -> list[object]:
    """Return what a tracker answers to a batch, one unchecked answer for each context.

    It is given the batch itself, and may take contexts off it or sort it.

    Raises:
        TrackerRaisedError: it raised.
        GivenUpError: it is not waited for any more.
        TrackerError: it said itself that it failed, or returned no sequence of so many.
        UserError: it cannot work as it was set up.
    """
    # Counted before: a tracker may take contexts off the list.
    expected = len(batch)
    try:
        answers = as_list(tracker.predict(batch), expected)
    except (UserError, TrackerError):
        raise
    except BaseException as error:
        if passes_through(error):
            raise
        raise TrackerRaisedError(f"the tracker raised {describe_error(error)}") from error
    for answer in answers:
        if isinstance(answer, GivenUpError):
            raise answer
    return answers


def ask(
    tracker: Tracker, batch: Sequence[Context], normalisation: str = "plain"
) -> list[Prediction]:
    """Return one sound prediction for each context, in the normalisation of the data.

    Raises:
        TrackerError: see `ask_raw`; or one of the answers is no prediction.
        UserError: see `ask_raw`.
    """
    answers = ask_raw(tracker, list(batch))
    return check_predictions(answers, len(answers), normalisation)


def in_training_mode(tracker: object) -> bool:
    """Whether the tracker, what it adapts, or a module they keep says that it is training."""
    things = (tracker, declared(tracker, "wrapped"))
    inner = (declared(thing, name) for thing in things for name in _INNER)
    # Compared by identity: a method called ``training`` is no mode.
    return any(declared(thing, "training") is True for thing in (*things, *inner))


def difference(
    one: Sequence[Prediction], other: Sequence[Prediction], names: Iterable[str] | None = None
) -> str:
    """Describe the first difference between two lists of predictions, or return ``""``.

    Args:
        one: the predictions.
        other: those of the same contexts.
        names: what the contexts are called; ``context 1`` and so on by default.
    """
    called = names if names is not None else (f"context {at + 1}" for at in range(len(one)))
    for name, left, right in zip(called, one, other, strict=True):
        changes = diff_states(left.state, right.state)
        if changes:
            return f"{name}: {changes[0]}"
        before, after = left.impurities or {}, right.impurities or {}
        if slot := _moved(before, after):
            return (
                f"{name}, impurity of {slot}: "
                f"{before.get(slot, 0.0):.4f} and {after.get(slot, 0.0):.4f}"
            )
    return ""


def _moved(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Return the first slot whose impurities differ by more than rounding, or ``""``."""
    slots = sorted({*before, *after})
    moved = (s for s in slots if abs(before.get(s, 0.0) - after.get(s, 0.0)) > _TOLERANCE)
    return next(moved, "")
