"""Scorers that nobody trained."""

from __future__ import annotations

import numpy as np

from pytest_dstfuzz.agents.policies import Floats
from pytest_dstfuzz.agents.scorers import ScorerAbout, shapes

ABOUT = ScorerAbout(
    tracker="bakery:track",
    data="bakery val",
    dialogues=7,
    validity="natural",
    seed=5,
    attempts=84,
    calls=91,
)


def random_weights(seed: int = 0, spread: float = 0.3) -> dict[str, Floats]:
    """Return weights of a small scorer, each drawn from a normal distribution."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, spread, shape).astype(np.float32)
        for name, shape in shapes(8, 4).items()
    }
