"""What many games come to: scores, advantage, positive advantage rate, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_dstfuzz.games.game import GameScores
from pytest_dstfuzz.seeding import stream

_RESAMPLES: Final = 2_000
_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class GameInterval:
    """A figure and its approximate 95 % interval, with the game as unit."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Return the figure and its interval as reports write them."""
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True)
class GameFigures:
    """What some games came to; scores are from 0 to the game's highest."""

    games: int
    adversary: float  #: Mean score.
    target: float  #: Mean score.
    advantage: GameInterval  #: Of the adversary over the target.
    positive: GameInterval  #: Share of games in which the adversary has more.
    agreement: float  #: Share of games that ended with one selection that both take.

    @classmethod
    def of(cls, scores: Sequence[GameScores], agreed: int | None = None) -> GameFigures:
        """Count some games, one at least; by default all of them were agreed on.

        Where two agents select for themselves, those that do not agree have no score.
        """
        count = len(scores)
        own, other = (np.array(part, dtype=np.float64) for part in zip(*scores, strict=True))
        positive = int((own > other).sum())
        return cls(
            count,
            float(own.mean()),
            float(other.mean()),
            mean_interval(own - other),
            share_interval(positive, count),
            (count if agreed is None else agreed) / count,
        )


def mean_interval(values: np.ndarray) -> GameInterval:
    """Return a mean with percentiles of means of games drawn again, with replacement.

    The draws hang on the number of games alone, so that the same games give the same bounds.
    """
    count = len(values)
    rng = stream(0, "games", count)
    means = np.array([values[rng.integers(0, count, count)].mean() for _ in range(_RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return GameInterval(float(values.mean()), float(low), float(high))


def share_interval(positive: int, count: int) -> GameInterval:
    """Return a share with Wilson's interval."""
    share = positive / count
    scale = 1 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    # At either end the bound is the end itself, which rounding would miss.
    low = 0.0 if positive == 0 else middle - half
    high = 1.0 if positive == count else middle + half
    return GameInterval(share, low, high)
