"""Chooses the distance up to which two replies say the same, so that rewordings are accepted.

A false alarm costs more than a missed change, because numbers, names, yes or no and refusals are
also compared separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pytest_dstfuzz.comparisons.embedding import TextVectors, apart
from tools.similarity.pairs import Utterances
from tools.similarity.sources import ActTurn

PAIRS = 4000
#: Share of the pairs that say the same and may be told apart.
APART = 0.005
#: Points of the curve of the card.
CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Calibrated(NamedTuple):
    """Distances between system utterances of held-out dialogues, by kind of pair."""

    eps: float
    distances: dict[str, list[float]]

    def above(self, kind: str, eps: float) -> float:
        """Return the share of pairs of a kind whose distance is above ``eps``."""
        return float(np.mean(np.array(self.distances[kind]) > eps))

    def table(self) -> list[str]:
        """Return the lines of the card: the errors at the threshold, then the curve."""
        lines = [
            "| distance | same, told apart | taken for the same: other acts | values | turns |"
        ]
        lines += ["| --- | --- | --- | --- | --- |"]
        for eps in sorted({*CURVE, self.eps}):
            shares = [self.above("same", eps)]
            shares += [1 - self.above(kind, eps) for kind in ("acts", "values", "turns")]
            mark = "**" if eps == self.eps else ""
            cells = (f"{mark}{eps:.2f}{mark}", *(f"{share:.1%}" for share in shares))
            lines.append(f"| {' | '.join(cells)} |")
        return lines


def calibrated(
    turns: Sequence[ActTurn], parts: Callable[[str], TextVectors], seed: int
) -> Calibrated:
    """Draw pairs, and return their distances and a threshold that accepts rewordings."""
    said = [turn for turn in turns if turn.system]
    utterances = Utterances(said)
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {"same": [], "acts": [], "values": [], "turns": []}

    def far(one: str, other: str) -> float:
        return apart(parts(one), parts(other)).distance

    for number in range(PAIRS):
        triple = utterances.drawn(rng, acts=bool(number % 2))
        found["same"].append(far(triple.text, triple.same))
        found["acts" if number % 2 else "values"].append(far(triple.text, triple.other))
        one, other = (said[place] for place in rng.integers(len(said), size=2))
        if one.signature != other.signature:
            found["turns"].append(far(one.text, other.text))
    eps = math.ceil(100 * float(np.quantile(found["same"], 1 - APART))) / 100
    return Calibrated(eps, found)
