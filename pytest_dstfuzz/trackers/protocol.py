"""What a tracker is: a batch of contexts in, one prediction each out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_dstfuzz.dialogue.types import BeliefState, Context


def gini_impurity(distribution: Sequence[float]) -> float:
    """Gini impurity ``1 - sum p_i^2`` of a probability distribution, in [0, 1).

    Public, for trackers that build their own `Prediction.impurities`.
    """
    return 1.0 - sum(p * p for p in distribution)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a tracker believes after a context."""

    state: BeliefState
    #: Slot -> Gini impurity, averaged over the slot's distributions (gate, tokens);
    #: ``None`` where the tracker has no probabilities.
    impurities: Mapping[str, float] | None = None

    @classmethod
    def from_distributions(
        cls, state: BeliefState, distributions: Mapping[str, Sequence[Sequence[float]]]
    ) -> Prediction:
        """Build a prediction from each slot's probability distributions.

        Public, for the adapter of a tracker that has probabilities (TRADE computes its
        impurities on its device).
        Only the impurity is kept: a campaign holds many thousand predictions, and
        a distribution over a vocabulary is large.
        """
        impurities = {
            slot: sum(gini_impurity(d) for d in parts) / len(parts)
            for slot, parts in sorted(distributions.items())
            if parts
        }
        return cls(state, impurities)


@runtime_checkable
class Tracker(Protocol):
    """A dialogue state tracker."""

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        """Return one prediction for each context, in their order.

        Must be deterministic, and independent of what else is in the batch and of what
        was asked before. A mapping slot -> value is a prediction without probabilities.
        States need no care with spellings: whoever asks brings them to the normalisation
        of the data, which leaves out ``none`` and its like.
        """
        ...


@runtime_checkable
class StatefulTracker(Protocol):
    """A tracker that keeps its state from turn to turn."""

    def reset(self) -> None:
        """Forget the dialogue."""
        ...

    def update(self, system: str, user: str) -> Mapping[str, str]:
        """Take in one exchange and return the belief state after it."""
        ...
