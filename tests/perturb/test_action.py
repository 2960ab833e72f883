"""Laws of the action vector."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import GRID, ActionSpace, ActionStep, inertia
from pytest_dstfuzz.perturb.words import Action
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
    with pytest.raises(ValueError, match=r"takes|needs|decodes"):
        SPACE.encode([step])


def test_repetitions_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ActionSpace(repetitions=0)


@given(ACTIONS, ONLY)
def test_what_has_no_effect_is_set_alike(action: Action, only: list[str]) -> None:
    space = ActionSpace(select(tuple(only)))
    found = space.effective(action)
    assert space.decode(found) == space.decode(action)
    assert space.effective(found) == found
    # Whatever a search has there, the action is the same.
    kept = [one == other for one, other in zip(found.vector, action.vector, strict=True)]
    other = [
        value if keep else 1.0 - value / 2 for keep, value in zip(kept, action.vector, strict=True)
    ]
    changed = Action(tuple(other), action.k)
    if space.decode(changed) == space.decode(action):
        assert space.effective(changed) == found


def test_what_has_an_effect_by_hand() -> None:
    vector = [0.25] * 50
    vector[0], vector[9] = 1.0, 0.75
    vector[5] = 0.5
    found = SPACE.effective(Action(tuple(vector), 2)).vector
    # Its importance; no first trigger, three parameters; the second trigger, three parameters.
    assert found[:9] == (1.0, 0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25)
    # Where the second repetition is not triggered, its trigger alone counts.
    assert found[9:18] == (0.75, 0.5, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5)
    # Of what is not associated the importance does.
    assert found[18:25] == (0.25, *[0.5] * 6)


@pytest.mark.parametrize("k", range(1, 7))
def test_inertia_of_uniform_samples(k: int) -> None:
    rng = np.random.default_rng(0)
    actions = [SPACE.sample(rng, k) for _ in range(3000)]
    expected = SPACE.uniform_inertia(k)
    assert expected == pytest.approx((6 + 5 * k) / 12)
    assert inertia(SPACE, actions) == pytest.approx(expected, rel=0.03)


def test_inertia_of_few_actions() -> None:
    action = SPACE.sample(np.random.default_rng(0), 3)
    assert inertia(SPACE, []) == 0
    assert inertia(SPACE, [action]) == 0
    # Those of a search that draws edits one by one are none.
    assert inertia(SPACE, [action, Action((), 0)]) == 0
