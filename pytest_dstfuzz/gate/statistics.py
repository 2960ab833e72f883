"""Chance or regression: the difference of two failure rates on identical variants.

Likewise that of the expected failures of two builds on the same turns, whatever their variants.

The dialogue is the unit. If neither build is worse, the two outcomes of a dialogue are as
likely the other way round, whatever its variants have in common; so the test swaps the
builds within dialogues (paired permutation). The interval holds the differences that such
a test does not reject: its bounds are quantiles of the difference on random subsets of the
dialogues, each in or out with probability one half (Hartigan's typical values, JASA 64,
1969, pages 1303 to 1317). Unlike a bootstrap's it covers what it claims with 8 dialogues
as with 400: ``tests/gate/gate_simulation.md`` has both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from scipy.stats import permutation_test as permuted

from pytest_dstfuzz.gate.asked import Tally

#: Permutations, and subsets of the dialogues; all there are, where there are no more.
RESAMPLES: Final = 9_999
#: Probability with which a difference that is there is to be found.
POWER: Final = 0.8
#: What is aimed at for that: changes are skewed, and aiming at `POWER` itself finds 75 to 80 %.
_AIM: Final = 0.85
_AIM_QUANTILE: Final = NormalDist().inv_cdf(_AIM)
LEVEL: Final = 0.95
#: Rows of random draws that are held in memory at once.
_SLICE: Final = 1_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Paired:
    """Violations of two builds on the same variants; one entry a dialogue.

    Or their expected failures on the same turns: then the turns stand for variants.
    """

    #: Violations in the baseline and in the run.
    before: Floats
    after: Floats
    #: Variants compared, each above 0.
    variants: Floats

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Paired:
        """Take the tallies of the dialogues, each with a variant."""
        return cls.of_rows((tally.before, tally.after, tally.variants) for tally in tallies)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[float, float, int]]) -> Paired:
        """Take violations before and after, and variants, of each dialogue."""
        columns = np.array(list(rows), dtype=np.float64).reshape(-1, 3).T
        return cls(*columns)

    @property
    def difference(self) -> float:
        """Failure rate of the run, less that of the baseline."""
        return float((self.after - self.before).sum() / self.variants.sum())


def fewest_dialogues(level: float = LEVEL) -> int:
    """Return how many dialogues an interval needs: 6 for 95 %.

    Of n dialogues there are 2 to the power of n subsets, and each end leaves out one.
    """
    return math.ceil(math.log2(2 / (1 - level)))


def interval(
    paired: Paired, rng: np.random.Generator, level: float = LEVEL
) -> tuple[float, float] | None:
    """Return the interval of the difference; ``None`` with too few dialogues for one."""
    count = len(paired.variants)
    if count < fewest_dialogues(level):
        return None
    changes = paired.after - paired.before
    columns = np.stack([changes, paired.variants], axis=1)
    sums = np.concatenate([drawn @ columns for drawn in _subsets(count, rng)])
    # An empty subset says nothing.
    values = np.sort(np.divide(*sums[sums[:, 1] > 0].T))
    left_out = max(1, math.floor((1 - level) / 2 * (len(values) + 1)))
    return float(values[left_out - 1]), float(values[-left_out])


def permutation_test(paired: Paired, rng: np.random.Generator) -> float:
    """Return the two-sided p-value of builds swapped within dialogues; needs two dialogues."""

    def difference(after: Floats, before: Floats, axis: int) -> Floats:
        found: Floats = (after - before).sum(axis=axis)
        return found

    test = permuted(
        (paired.after, paired.before),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_SLICE,
        rng=rng,
    )
    return float(test.pvalue)


def dialogues_needed(paired: Paired, margin: float, level: float = LEVEL) -> int | None:
    """Return how many dialogues like these would decide, with a probability of `POWER`.

    A difference above the margin is decided once its interval lies above 0 and the difference
    seen is above the margin, any other once its interval lies below the margin. The number
    takes the difference that was seen as the true one. That the spread of few dialogues (two at
    least) is itself uncertain is taken into account by the noncentral t distribution, as
    Abramowitz and Stegun 26.7.10 approximate it; and that changes are skewed by aiming at `_AIM`.
    How often the numbers advised decide: ``tests/gate/gate_simulation.md``. ``None`` where the
    difference is the margin, which no number of dialogues decides.
    """
    seen = paired.difference
    if seen == margin:
        return None
    count, fewest = len(paired.variants), fewest_dialogues(level)
    residuals = paired.after - paired.before - seen * paired.variants
    # Of one dialogue: that of n is less by the root of n.
    error = math.sqrt(float(residuals @ residuals) / (count - 1)) / float(paired.variants.mean())
    if not error:
        return fewest
    distance = (seen if seen > margin else margin - seen) / error
    # Half of all campaigns see less than the truth: one just above the margin, less than that.
    above = (seen - margin) / error if seen > margin else math.inf

    def enough(number: int) -> bool:
        freedom, root = number - 1, math.sqrt(number)
        edge = float(stdtrit(freedom, (1 + level) / 2))
        excess = distance * root - edge * (1 - 1 / (4 * freedom))
        reached = min(excess / math.sqrt(1 + edge**2 / (2 * freedom)), above * root)
        return reached >= _AIM_QUANTILE

    high = fewest
    while not enough(high):
        high *= 2
    return bisect.bisect_left(range(high), True, lo=fewest, key=enough)


def _subsets(count: int, rng: np.random.Generator) -> Iterable[Floats]:
    """Yield rows of ones and zeros, [subsets, dialogues] each."""
    if 2**count - 1 <= RESAMPLES:
        numbers = np.arange(1, 2**count)[:, None]
        yield (numbers >> np.arange(count) & 1).astype(np.float64)
        return
    for start in range(0, RESAMPLES, _SLICE):
        rows = min(_SLICE, RESAMPLES - start)
        yield rng.integers(0, 2, size=(rows, count), dtype=np.int8).astype(np.float64)
