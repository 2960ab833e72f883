"""The replay memory: the last so many steps, drawn from uniformly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.features import STATE_SIZE, Floats
from pytest_dstfuzz.agents.policy import COUNT, SPACE


class ReplayBatch(NamedTuple):
    """Steps drawn from the memory; B rows each."""

    state: Floats  #: [B, STATE_SIZE].
    vector: Floats  #: [B, D], the action.
    available: Floats  #: [B, 6], transformations that had a place to go to.
    chosen: Floats  #: [B, 6], which transformations were associated.
    k: npt.NDArray[np.int64]  #: [B], how many were to be.
    reward: Floats  #: [B].
    next_state: Floats  #: [B, STATE_SIZE].
    next_available: Floats  #: [B, 6], as ``available``, in the next state.
    terminated: Floats  #: [B], whether there was no next state.


class Replay:
    """A ring of steps, so many as its capacity."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: Steps so far, also those that are no longer kept.
        self.added = 0
        #: By the name of a field of `ReplayBatch`, [capacity, ...] each.
        self.columns: dict[str, npt.NDArray[Any]] = {
            "state": np.zeros((capacity, STATE_SIZE), np.float32),
            "vector": np.zeros((capacity, SPACE.dimension), np.float32),
            "available": np.zeros((capacity, COUNT), np.float32),
            "chosen": np.zeros((capacity, COUNT), np.float32),
            "k": np.zeros(capacity, np.int64),
            "reward": np.zeros(capacity, np.float32),
            "next_state": np.zeros((capacity, STATE_SIZE), np.float32),
            "next_available": np.zeros((capacity, COUNT), np.float32),
            "terminated": np.zeros(capacity, np.float32),
        }

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, step: ReplayBatch) -> None:
        """Add one step, a batch of no first dimension; the oldest goes."""
        place = self.added % self.capacity
        for name, value in step._asdict().items():
            self.columns[name][place] = value
        self.added += 1

    def draw(self, rng: np.random.Generator, size: int) -> ReplayBatch:
        """Return ``size`` steps, with replacement."""
        places = rng.integers(0, len(self), size)
        return ReplayBatch(**{name: column[places] for name, column in self.columns.items()})
