"""The replay memory: a ring, drawn from uniformly."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import settings as laws
from hypothesis import strategies as st

from pytest_dstfuzz.agents.policies import COUNT, SPACE, STATE_SIZE
from pytest_dstfuzz.agents.training.memory import Replay, ReplayBatch


def step(number: int) -> ReplayBatch:
    """Return a step in which everything is ``number``."""
    wide = np.full
    return ReplayBatch(
        state=wide(STATE_SIZE, number, np.float32),
        vector=wide(SPACE.dimension, number, np.float32),
        available=wide(COUNT, number, np.float32),
        chosen=wide(COUNT, number, np.float32),
        k=np.asarray(number),
        reward=np.asarray(number, np.float32),
        next_state=wide(STATE_SIZE, number, np.float32),
        next_available=wide(COUNT, number, np.float32),
        terminated=np.asarray(number, np.float32),
    )


@laws(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 99))
def test_it_keeps_the_last_steps_and_draws_no_others(capacity: int, count: int, seed: int) -> None:
    replay = Replay(capacity)
    assert len(replay) == 0
    for number in range(1, count + 1):
        replay.add(step(number))
        assert len(replay) == min(number, capacity)
    drawn = replay.draw(np.random.default_rng(seed), 400)
    kept = set(range(max(1, count - capacity + 1), count + 1))
    assert set(drawn.reward.astype(int).tolist()) == kept
    for column in drawn:
        assert len(column) == 400
        # The parts of a step stay together.
        assert (column.reshape(400, -1) == drawn.reward[:, None]).all()


def test_shapes_and_types() -> None:
    replay = Replay(4)
    replay.add(step(1))
    batch = replay.draw(np.random.default_rng(0), 3)
    assert batch.state.shape == batch.next_state.shape == (3, STATE_SIZE)
    assert batch.vector.shape == (3, SPACE.dimension)
    assert batch.available.shape == batch.chosen.shape == batch.next_available.shape == (3, COUNT)
    assert batch.k.shape == batch.reward.shape == batch.terminated.shape == (3,)
    assert batch.k.dtype == np.int64
    assert {column.dtype for column in batch[:4]} == {np.dtype(np.float32)}


def test_draws_are_uniform_and_repeat_with_the_stream() -> None:
    replay = Replay(8)
    for number in range(20):
        replay.add(step(number))
    one, other = (replay.draw(np.random.default_rng(5), 8000).reward for _ in range(2))
    assert (one == other).all()
    counts = np.unique(one, return_counts=True)[1]
    assert len(counts) == 8
    assert counts.min() > 850
    assert counts.max() < 1150


def test_a_batch_is_a_copy() -> None:
    replay = Replay(2)
    replay.add(step(1))
    batch = replay.draw(np.random.default_rng(0), 2)
    replay.add(step(2))
    replay.add(step(3))
    assert (batch.state == 1).all()
