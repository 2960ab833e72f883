"""A policy of the agent for the comparisons that need one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_dstfuzz.agents.policies import (
    COUNT,
    PASS_SIZE,
    SPACE,
    STATE_SIZE,
    PolicyAbout,
    save_policy,
)


@pytest.fixture
def untrained() -> Callable[..., Path]:
    """Writes a policy of the agent that has learned nothing."""

    def write(path: Path, **about: Any) -> Path:
        rng = np.random.default_rng(0)
        weights = {}
        ends = {"parameters": (STATE_SIZE, SPACE.dimension), "critic": (PASS_SIZE, COUNT)}
        for name, (before, after) in ends.items():
            for number, (one, other) in enumerate([(before, 4), (4, after)]):
                weight = rng.normal(size=(other, one)) / 10
                weights[f"{name}.{number}.weight"] = weight.astype(np.float32)
                weights[f"{name}.{number}.bias"] = np.zeros(other, np.float32)
        values: dict[str, Any] = {"tracker": "memory_bot:track", "tracker_fingerprint": "0"}
        values |= {"data": "sample test", "held_out": (), "order": "distance"}
        values |= {"validity": "strict", "attack": "hybrid", "reward": "broken", "ks": (1,)}
        values |= {"attempts": 2, "seed": 5, "calls": 1234, **about}
        save_policy(path, weights, PolicyAbout(**values))
        return path

    return write
