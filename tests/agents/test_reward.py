"""Rewards: the formula of the thesis, and what pays for turns broken."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.agents.training.environment import (
    EDIT_PRICE,
    REWARDS,
    WASTE_PRICE,
    AttemptOutcome,
    gini,
    score_attempt,
)
from pytest_dstfuzz.errors import UserError

RATES = st.sampled_from([0.0, 0.25]) | st.floats(0, 1)
OUTCOMES = st.builds(AttemptOutcome, st.just(True), st.booleans(), st.floats(-1, 1), RATES, RATES)


@given(OUTCOMES)
def test_gini_is_the_formula(outcome: AttemptOutcome) -> None:
    size = math.sqrt(outcome.edit_w**2 + outcome.edit_c**2)
    beta = -100 if max(outcome.edit_w, outcome.edit_c) > 0.25 else 0
    expected = (math.exp(outcome.impurity) / size if size > 1e-150 else None, beta)
    if expected[0] is not None:
        assert gini(outcome) == pytest.approx(expected[0] + beta)
    if (outcome.edit_w, outcome.edit_c) == (0, 0):
        assert gini(outcome) == 0


def test_gini_by_hand() -> None:
    assert gini(AttemptOutcome(True, False, 0.0, 0.15, 0.2)) == pytest.approx(4.0)
    assert gini(AttemptOutcome(True, True, math.log(2), 0.15, 0.2)) == pytest.approx(8.0)
    assert gini(AttemptOutcome(True, False, 0.01, 0.0, 0.005)) == pytest.approx(
        200 * math.exp(0.01)
    )
    # At the limit nothing is taken off, above it 100, by either rate.
    assert gini(AttemptOutcome(True, False, 0.0, 0.25, 0.0)) == pytest.approx(4.0)
    assert gini(AttemptOutcome(True, False, 0.0, 0.5, 0.0)) == pytest.approx(2 - 100)
    assert gini(AttemptOutcome(True, False, 0.0, 0.0, 0.5)) == pytest.approx(2 - 100)
    assert gini(AttemptOutcome(False, False, 0.0, 0.0, 0.0)) == 0
    # It does not ask whether the turn was broken.
    assert gini(AttemptOutcome(True, True, 0.0, 0.1, 0.1)) == gini(
        AttemptOutcome(True, False, 0.0, 0.1, 0.1)
    )


@given(OUTCOMES)
def test_what_is_not_carried_out_earns_nothing_of_gini(outcome: AttemptOutcome) -> None:
    """A copy of an earlier variant, and what cannot be run; edits beyond the limit still cost."""
    over = max(outcome.edit_w, outcome.edit_c) > 0.25
    assert gini(outcome._replace(valid=False)) == (-100 if over else 0)


@given(OUTCOMES)
def test_zero_edits_are_the_least_that_gini_gives_within_the_rates(outcome: AttemptOutcome) -> None:
    if max(outcome.edit_w, outcome.edit_c) <= 0.25:
        assert gini(outcome) >= 0


@given(OUTCOMES, OUTCOMES)
def test_a_turn_broken_is_worth_more_than_any_that_is_not(
    one: AttemptOutcome, other: AttemptOutcome
) -> None:
    assert score_attempt(one._replace(broken=True)) > score_attempt(other._replace(broken=False))


@given(OUTCOMES)
def test_edits_cost_a_little_and_impurity_pays_a_little(outcome: AttemptOutcome) -> None:
    assert score_attempt(outcome) - score_attempt(
        outcome._replace(edit_w=0.0, edit_c=0.0)
    ) == pytest.approx(-EDIT_PRICE * (outcome.edit_w + outcome.edit_c))
    warmer = outcome._replace(impurity=outcome.impurity + 0.01)
    assert score_attempt(warmer) >= score_attempt(outcome)
    near = outcome._replace(impurity=0.0)
    assert (
        score_attempt(near._replace(impurity=0.01))
        > score_attempt(near)
        > score_attempt(near._replace(impurity=-0.01))
    )


@given(OUTCOMES)
def test_what_cannot_be_run_is_a_waste_whatever_it_is(outcome: AttemptOutcome) -> None:
    assert score_attempt(outcome._replace(valid=False)) == -WASTE_PRICE


def test_names() -> None:
    assert {"gini": gini, "broken": score_attempt} == REWARDS
    trainer = pytest.importorskip("pytest_dstfuzz.agents.training.trainer", exc_type=ImportError)
    with pytest.raises(UserError, match=r"unknown reward 'ginny'.*'gini'"):
        trainer.TrainingConfig(reward="ginny")
