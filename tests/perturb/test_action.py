"""Laws of the action vector."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.action import (
    GRID,
    ActionSpace,
    ActionStep,
    inertia,
    uniform_inertia,
)
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.selection import select
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SPACE = ActionSpace()
ACTIONS = st.builds(
    lambda seed, k: SPACE.sample(np.random.default_rng(seed), k),
    st.integers(0, 10_000),
    st.integers(1, 6),
)
ONLY = st.lists(st.sampled_from(TRANSFORMATIONS), max_size=6)


@pytest.mark.parametrize(("repetitions", "dimension"), [(1, 28), (2, 50), (3, 72)])
def test_the_dimension_follows_from_the_repetitions(repetitions: int, dimension: int) -> None:
    assert ActionSpace(repetitions=repetitions).dimension == dimension


@given(ACTIONS)
def test_samples_lie_on_the_grid(action: Action) -> None:
    assert len(action.vector) == SPACE.dimension
    assert all(0 <= value <= 1 and (value * GRID).is_integer() for value in action.vector)


@given(ACTIONS, ONLY)
def test_decode_takes_the_most_important_in_the_fixed_order(
    action: Action, only: list[str]
) -> None:
    steps = ActionSpace(select(tuple(only))).decode(action)
    names = [step.transformation for step in steps]
    allowed = only or TRANSFORMATIONS
    assert len(names) == min(action.k, len(set(allowed)))
    assert names == [name for name in TRANSFORMATIONS if name in names]
    everything = ActionSpace(select(tuple(only))).decode(replace(action, k=6))
    left_out = [step.importance for step in everything if step.transformation not in names]
    assert min(step.importance for step in steps) >= max(left_out, default=0)


@given(ACTIONS, ONLY)
def test_encode_is_the_inverse_of_decode(action: Action, only: list[str]) -> None:
    steps = ActionSpace(select(tuple(only))).decode(action)
    if all(step.importance > 0 for step in steps):
        assert SPACE.decode(SPACE.encode(steps)) == steps


@given(ACTIONS, st.integers(0, 100))
def test_repetitions_are_bounded_by_importance_and_words(action: Action, words: int) -> None:
    for step in SPACE.decode(action):
        cap = max(1, words // 4)
        limit = max(1, round(step.importance * min(SPACE.repetitions, cap)))
        assert 1 <= len(step.active(words)) <= limit


def test_further_repetitions_need_a_trigger_of_one_half() -> None:
    vector = [0.0] * 50
    vector[0] = 1.0
    for trigger, count in ((511 / 1024, 1), (0.5, 2)):
        vector[5] = trigger
        (step,) = SPACE.decode(Action(tuple(vector), 1))
        assert len(step.repetitions) == count


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ((0.5,) * 49, "50 coordinates, not 49"),
        ((math.nan,) + (0.5,) * 49, "number in"),
        ((1.5,) + (0.5,) * 49, "number in"),
        ((-0.1,) + (0.5,) * 49, "number in"),
    ],
)
def test_a_vector_outside_the_cube_is_refused(vector: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPACE.decode(Action(vector, 1))


@pytest.mark.parametrize("k", [0, 7])
def test_k_out_of_range_is_a_users_mistake(k: int) -> None:
    with pytest.raises(UserError, match="from 1 to 6"):
        SPACE.sample(np.random.default_rng(0), k)


def test_unknown_names_are_a_users_mistake() -> None:
    with pytest.raises(UserError, match="Did you mean 'char_drop'"):
        select(("char_dorp",))


@pytest.mark.parametrize(
    "step",
    [
        ActionStep("char_drop", 0.5, (), 2),
        ActionStep("char_drop", 0.5, ((0.5, 0.5, 0.5),), 2),
        ActionStep("char_drop", 0.0, ((0.5, 0.5),), 2),
        ActionStep("char_drop", 0.5, ((0.3, 0.5),), 2),
    ],
    ids=["no repetition", "parameters", "importance", "off the grid"],
)
def test_steps_that_no_action_has_are_refused(step: ActionStep) -> None:
    with pytest.raises(ValueError, match=r"takes|decodes"):
        SPACE.encode([step])


def test_repetitions_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ActionSpace(repetitions=0)


def test_inertia_of_uniform_samples_is_a_twelfth_of_the_dimension() -> None:
    rng = np.random.default_rng(0)
    actions = [SPACE.sample(rng, 3) for _ in range(4000)]
    assert inertia(actions) == pytest.approx(uniform_inertia(50), rel=0.02)
    assert inertia([]) == 0
    assert inertia(actions[:1]) == 0
