"""A few predictions before a run: refuse a tracker whose results would mean nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.dialogue.types import Context, Ontology, diff_states
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.checks import (
    check_predictions,
    describe_error,
    passes_through,
    raised_at,
    unknown_slot,
)
from pytest_dstfuzz.trackers.protocol import Prediction, Tracker

#: How many contexts the preflight predicts; enough to fill a batch of mixed lengths.
PREFLIGHT_CONTEXTS = 8
#: The order in which contexts are predicted one by one: neither forwards nor backwards,
#: however many of the eight there are (of two, backwards).
_MIXED = (1, 6, 3, 0, 5, 2, 7, 4)
#: Impurities may differ by so much: padding changes the order of float additions.
_TOLERANCE = 1e-3
#: Where trackers keep the module that has a training mode.
_INNER = ("model", "module", "network", "net", "wrapped")


def preflight(
    tracker: Tracker, contexts: Sequence[Context], *, ontology: Ontology | None = None
) -> None:
    """Predict a small batch twice and one by one, and refuse a tracker that cannot be tested.

    Each time in another order, none of them but the first that of the dialogue: a run asks
    in the order of length, where state that is left from the turn before does harm.

    Args:
        tracker: the tracker of the run.
        contexts: contexts of the run; the first eight are used.
        ontology: the slots of the data, where it has any, and their normalisation.

    Raises:
        UserError: the tracker is in training mode, raises, returns nonsense, is not
            deterministic, or answers differently in another order or batch.
    """
    _refuse_training_mode(tracker)
    normalisation = "plain" if ontology is None else ontology.normalisation
    batch, singles = _answered_alone(tracker, contexts[:PREFLIGHT_CONTEXTS], normalisation)
    if not batch:
        return
    first = _predict(tracker, batch, normalisation)
    _refuse_unknown_slots(first, ontology)
    backwards = _predict(tracker, batch[::-1], normalisation)[::-1]
    if moved := _difference(first, backwards):
        difference = _difference(first, _predict(tracker, batch, normalisation))
        if not difference:
            raise UserError(
                "the tracker's answer depends on what it was asked before: the same batch "
                f"backwards gave different answers ({moved}). Keep nothing from one context to "
                "the next; an object with reset() and update(system, user) may keep state."
            )
        raise UserError(
            "the tracker is not deterministic: the same batch predicted twice gave different "
            f"answers ({difference}). Switch off dropout and sampling, and seed what is random."
        )
    difference = _difference(first, singles)
    if difference:
        raise UserError(
            "the tracker's answer depends on the batch: a context alone and the same context "
            f"among {len(batch)} gave different answers ({difference}). Mask the padding, and "
            "keep nothing from one context to the next."
        )


def in_training_mode(tracker: object) -> bool:
    """Whether the tracker, or a module it keeps, says that it is training."""
    inner = (getattr(tracker, name, None) for name in _INNER)
    # Compared by identity: a method called ``training`` is no mode.
    return any(getattr(thing, "training", None) is True for thing in (tracker, *inner))


def _refuse_training_mode(tracker: Tracker) -> None:
    wrapped = getattr(tracker, "wrapped", tracker)
    if in_training_mode(tracker) or in_training_mode(wrapped):
        raise UserError(
            "the tracker is in training mode (dropout changes its answers): call .eval() first"
        )


def _answered_alone(
    tracker: Tracker, contexts: Sequence[Context], normalisation: str
) -> tuple[list[Context], list[Prediction]]:
    """Return the contexts that the tracker has an answer to, and the answers.

    They are asked for in a mixed order, and returned in their own. A tracker that fails
    on some contexts can be tested: the campaign reports those. One that fails on every
    one of them cannot.
    """
    answers: dict[int, Prediction] = {}
    failure: UserError | None = None
    for place in (place for place in _MIXED if place < len(contexts)):
        try:
            (answers[place],) = _predict(tracker, [contexts[place]], normalisation)
        except UserError as error:
            failure = failure or error
    if failure is not None and not answers:
        raise failure
    return [contexts[place] for place in sorted(answers)], [answers[p] for p in sorted(answers)]


def _predict(tracker: Tracker, batch: list[Context], normalisation: str) -> list[Prediction]:
    try:
        return check_predictions(tracker.predict(batch), len(batch), normalisation)
    except (UserError, TrackerError) as error:
        raise UserError(f"the tracker cannot be tested: {error}") from error
    except BaseException as error:
        if passes_through(error):
            raise
        some = "a clean context" if len(batch) == 1 else f"a batch of {len(batch)} clean contexts"
        what = f"{describe_error(error)}{raised_at(error)}"
        raise UserError(f"the tracker raised on {some}: {what}") from error


def _refuse_unknown_slots(predictions: list[Prediction], ontology: Ontology | None) -> None:
    for prediction in predictions:
        if problem := unknown_slot(prediction.state, ontology):
            raise UserError(f"the tracker cannot be tested: it returned {problem}")


def _difference(one: list[Prediction], other: list[Prediction]) -> str:
    """Describe the first difference between two lists of predictions, or return ``""``."""
    for index, (left, right) in enumerate(zip(one, other, strict=True)):
        changes = diff_states(left.state, right.state)
        if changes:
            return f"context {index + 1}: {changes[0]}"
        before, after = left.impurities or {}, right.impurities or {}
        for slot in sorted({*before, *after}):
            if abs(before.get(slot, 0.0) - after.get(slot, 0.0)) > _TOLERANCE:
                return (
                    f"context {index + 1}, impurity of {slot}: "
                    f"{before.get(slot, 0.0):.4f} and {after.get(slot, 0.0):.4f}"
                )
    return ""
