"""Factors from coarse to fine: counts against what the coarser factors expect, drawn towards 1."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

#: Factors nearer to 1 are left out: natural logarithm.
_NEGLIGIBLE: Final = 0.03

Features = tuple[str, ...]


class Fitted(NamedTuple):
    """Factors of one kind."""

    factors: dict[str, float]
    #: Mean, over all words, of the sum of the products of the factors.
    per_word: float


def fit_factors(
    exposure: Mapping[Features, float],
    seen: Mapping[Features, float],
    kappa: float,
    words: float,
    prior: Mapping[str, float] | None = None,
) -> Fitted:
    """Fit a factor for each feature, level by level.

    A feature seen ``n`` times where the coarser factors expect ``e`` gets the factor
    ``(n + kappa) / (e + kappa)``: the mean of a gamma posterior whose prior has the mean 1 and
    weighs as much as ``kappa`` slips. What is never seen goes back to the coarser levels.

    Args:
        exposure: features -> how often there was an occasion; all have the same levels.
        seen: features -> how often it happened.
        kappa: above 0.
        words: words that the exposure was counted on.
        prior: factors to start from.
    """
    start = prior or {}
    factors: dict[str, float] = dict(start)
    current = {
        cell: count * math.prod(start.get(feature, 1.0) for feature in cell)
        for cell, count in exposure.items()
    }
    total_seen = math.fsum(seen.values())
    levels = max(map(len, exposure), default=0)
    for level in range(levels):
        total = math.fsum(current.values())
        if not total or not total_seen:
            break
        expected: defaultdict[str, float] = defaultdict(float)
        for cell, value in current.items():
            expected[cell[level]] += value * total_seen / total
        found: defaultdict[str, float] = defaultdict(float)
        for cell, count in seen.items():
            found[cell[level]] += count
        step = {name: (found[name] + kappa) / (e + kappa) for name, e in expected.items()}
        step = {name: f for name, f in step.items() if abs(math.log(f)) > _NEGLIGIBLE}
        for name, factor in step.items():
            factors[name] = factors.get(name, 1.0) * factor
        current = {cell: value * step.get(cell[level], 1.0) for cell, value in current.items()}
    return Fitted(dict(sorted(factors.items())), math.fsum(current.values()) / max(words, 1.0))
