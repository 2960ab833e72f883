"""How likely a tracker changes its mind about a slot where an edit is made: a small network.

For every slot and every candidate edit of a turn the network gives the probability that the edit
alone changes the slot. Several edits are taken to work apart from each other, so that the
probability that a variant changes a slot is ``1 - product of (1 - p)`` over its edits (noisy-or),
and likewise over slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from pytest_dstfuzz.agents.features import Floats
from pytest_dstfuzz.agents.slot_view import EDIT_SIZE, PAIR_SIZE, SLOT_SIZE, SlotView, Tried

#: Highest probability of a slot and an edit: nothing is certain.
_MOST: Final = 0.999
#: Lowest logit that is told from others: with lower ones the exponential leaves 32 bits.
_LOWEST: Final = -80.0
#: Tensors whose lengths are the sizes of the two hidden layers.
HIDDEN: Final = ("slot", "hidden.weight")


def shapes(wide: int, narrow: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors of a scorer with hidden layers of these sizes."""
    return {
        "slot": (wide, SLOT_SIZE),
        "slot.bias": (wide,),
        "edit": (wide, EDIT_SIZE),
        "pair": (wide, PAIR_SIZE),
        "hidden.weight": (narrow, wide),
        "hidden.bias": (narrow,),
        "out.weight": (1, narrow),
        "out.bias": (1,),
    }


class Scorer:
    """The network, in numpy: three inputs that are added up, two hidden layers, ReLU.

    Its weights are named and shaped as `shapes` says.
    """

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights

    def chances(self, view: SlotView, attempts: Iterable[Tried]) -> Floats:
        """Return how likely each edit changes each slot: [slots, candidates], in [0, 1)."""
        weights = self._weights
        slots = view.of_slots @ weights["slot"].T + weights["slot.bias"]
        edits = view.of_edits @ weights["edit"].T
        both = view.pairs(attempts) @ weights["pair"].T
        hidden = np.maximum(slots[:, None, :] + edits[None, :, :] + both, 0.0)
        hidden = np.maximum(hidden @ weights["hidden.weight"].T + weights["hidden.bias"], 0.0)
        logits = (hidden @ weights["out.weight"].T + weights["out.bias"])[:, :, 0]
        logits = np.maximum(logits, _LOWEST)
        found: Floats = np.minimum(1.0 / (1.0 + np.exp(-logits)), _MOST).astype(np.float32)
        return found


def chance_of_any(chances: Floats) -> Floats:
    """Return how likely an edit changes any slot: [candidates], of [slots, candidates]; 0 to 1."""
    found: Floats = 1.0 - np.prod(1.0 - chances, axis=0)
    return found


def chance_of_variant(single: Floats, chosen: Sequence[int]) -> float:
    """Return how likely a variant of the candidates at some places changes any slot, 0 to 1.

    ``single`` is what `chance_of_any` returns: [candidates].
    """
    return float(1.0 - np.prod(1.0 - single[list(chosen)]))
