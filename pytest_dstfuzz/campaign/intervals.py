"""The interval of a rate over dialogues, whose variants are not independent.

Clopper and Pearson's interval of a share of independent trials, for as many trials as the
dialogues are worth: their number is what makes the binomial variance that of the rate
between dialogues (Korn and Graubard, Survey Methodology 24, 1998, pages 193 to 201). The
variance is the jackknife's over dialogues. How far it can be trusted itself, its degrees of
freedom, depends on how many dialogues it comes from: where two of fifty hold all violations,
it is known no better than from a handful (Satterthwaite's rule, with the fourth moment of
the dialogues' influences; Pan and Wall, Statistics in Medicine 21, 2002, pages 1429 to 1441,
have the same for generalised estimating equations).

How often such intervals hold the true rate, beside a percentile bootstrap, a studentised
one and others: ``tests/campaign/interval_simulation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

__all__ = ["FEWEST_DIALOGUES", "binomial_interval", "interval_name", "ratio_interval"]

#: With fewer dialogues there is no interval: no method holds what it says. A comparison with
#: a baseline needs as many.
FEWEST_DIALOGUES: Final = 6
#: With fewer an interval is called approximate.
FEW_DIALOGUES: Final = 20


def ratio_interval(
    pairs: Sequence[tuple[int, int]], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a ratio of sums over dialogues.

    Where no dialogue has any part, the upper bound is Clopper and Pearson's for 0 of n
    dialogues, ``1 - ((1 - level) / 2) ** (1 / n)``: about 3.7 / n for 95 %. Likewise below 1
    where every dialogue is all part. ``pairs`` are numerator and denominator of each dialogue;
    where fewer than `FEWEST_DIALOGUES` have a denominator above 0 there is no interval.
    """
    # Sorted, as sums of floats depend on their order.
    tested = sorted(pair for pair in pairs if pair[1])
    if len(tested) < FEWEST_DIALOGUES:
        return None
    part, whole = (sum(column) for column in zip(*tested, strict=True))
    trials = float(len(tested)) if part in (0, whole) else _trials_worth(tested, level)
    return binomial_interval(trials * part / whole, trials, level)


def mean_interval(
    pairs: Sequence[tuple[float, float]], most: float, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a mean of estimated probabilities over dialogues.

    As `ratio_interval`, of a rate that may be known better than from as many trials as there are
    turns. So n dialogues are worth ``n ** 2 / 4`` trials at the most: few that are alike by chance
    would say too much of all others. How often it holds: ``tests/campaign/expected_simulation.md``.

    Args:
        pairs: sum of the estimates of each dialogue, and how many they are.
        most: what the mean would be if all failed that can; above 0.
        level: of the interval.

    Returns:
        ``None`` with fewer than `FEWEST_DIALOGUES` dialogues.
    """
    tested = sorted((part / most, whole) for part, whole in pairs if whole)
    if len(tested) < FEWEST_DIALOGUES:
        return None
    part, whole = (math.fsum(column) for column in zip(*tested, strict=True))
    rate = min(part / whole, 1.0)
    trials = float(len(tested))
    if 0.0 < rate < 1.0:
        trials = _trials_worth(tested, level, most=len(tested) ** 2 / 4)
    low, high = binomial_interval(trials * rate, trials, level)
    return most * low, most * high


def interval_name(dialogues: int) -> str:
    """Return what a 95 % interval over so many dialogues may be called.

    >>> interval_name(12), interval_name(20)
    ('approximate 95 % interval', '95 % interval')
    """
    return f"{'approximate ' if dialogues < FEW_DIALOGUES else ''}95 % interval"


def _trials_worth(
    pairs: Sequence[tuple[float, float]], level: float, most: float | None = None
) -> float:
    """Return how many independent trials dialogues are worth, for an interval of ``level``.

    They are worth ``most`` at the most: as many as there are, where nobody says.
    """
    parts, wholes = np.array(pairs, dtype=np.float64).T
    count, total = len(parts), float(wholes.sum())
    rate = float(parts.sum()) / total
    # What the rate changes by when a dialogue is left out.
    influences = (parts - rate * wholes) / (total - wholes)
    squares = influences**2
    variance = (count - 1) / count * float(squares.sum())
    trials = rate * (1 - rate) / variance if variance else total
    trials = min(trials, total if most is None else most)
    freedom = float(count - 1)
    # 1 / count where all dialogues add alike to the variance, 1 where it is one's alone.
    share = float((squares**2).sum() / squares.sum() ** 2) if variance else 0.0
    if share > 1 / count:
        freedom = min(freedom, 2 / (share - 1 / count))
    return trials * (NormalDist().inv_cdf((1 + level) / 2) / _t_quantile(freedom, level)) ** 2


def binomial_interval(part: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's interval (Biometrika 26, 1934, pages 404 to 413).

    Neither ``part``, of 0 to ``trials``, nor these, above 0, need be whole numbers.
    """
    # Loads scipy, which a run of few dialogues does without.
    from scipy.special import betaincinv  # noqa: PLC0415

    tail, rest = (1 - level) / 2, trials - part
    low = 0.0 if part <= 0 else float(betaincinv(part, rest + 1, tail))
    high = 1.0 if rest <= 0 else float(betaincinv(part + 1, rest, 1 - tail))
    return low, high


def _t_quantile(freedom: float, level: float) -> float:
    """Return what Student's t stays within, either way, with probability ``level``."""
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    return float(stdtrit(freedom, (1 + level) / 2))
