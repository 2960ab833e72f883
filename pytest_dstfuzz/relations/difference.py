"""How far two predictions are apart, for searches that look for the way to a violation."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import diff_states
from pytest_dstfuzz.trackers.tracker import Prediction


def impurity_difference(clean: Prediction, perturbed: Prediction) -> float:
    """Return how much less sure the tracker is of the variant than of the clean turn.

    The mean impurity over slots of the one minus that of the other, in (-1, 1); positive
    where the variant is closer to a change of mind (``gini_dif`` of the thesis). Where the
    tracker has no probabilities, the share of slots in which the states disagree, in [0, 1].
    """
    before, after = _mean_impurity(clean), _mean_impurity(perturbed)
    if before is not None and after is not None:
        return after - before
    slots = {*clean.state, *perturbed.state}
    return len(diff_states(clean.state, perturbed.state)) / len(slots) if slots else 0.0


def _mean_impurity(prediction: Prediction) -> float | None:
    values = prediction.impurities
    return sum(values.values()) / len(values) if values else None
