"""Rates, ratios and their paired intervals, by hand on two dialogues."""

from __future__ import annotations

import math

import pytest

from pytest_dstfuzz.papers.formatting import Rate, Resamples


@pytest.fixture(scope="module")
def two() -> Resamples:
    """Resamples of two dialogues: both of them half of the time, either twice a quarter each."""
    return Resamples(["a", "b"], seed=0)


def test_a_rate_of_one_run(two: Resamples) -> None:
    assert two.rate([{"a": (2, 10), "b": (0, 10)}]) == Rate(0.1, (0.0, 0.2))


def test_the_mean_over_runs(two: Resamples) -> None:
    runs = [{"a": (2, 10), "b": (0, 10)}, {"a": (0, 10), "b": (5, 10)}]
    value, interval = two.rate(runs)
    assert value == pytest.approx((0.1 + 0.25) / 2)
    # Twice a: 0.2 and 0; twice b: 0 and 0.5.
    assert interval == pytest.approx((0.1, 0.25))


def test_rates_are_weighted_by_calls_and_not_by_dialogues(two: Resamples) -> None:
    assert two.rate([{"a": (1, 1), "b": (0, 3)}]) == Rate(0.25, (0.0, 1.0))


def test_a_ratio_is_paired(two: Resamples) -> None:
    # Alone, the rates go from 0.2 to 0.4 and from 0.1 to 0.2: unpaired 1 to 4.
    one, other = {"a": (4, 10), "b": (2, 10)}, {"a": (2, 10), "b": (1, 10)}
    value, interval = two.ratio([one], [other])
    assert value == pytest.approx(2.0)
    assert interval == pytest.approx((2.0, 2.0))


def test_a_ratio_of_means_of_runs(two: Resamples) -> None:
    ones = [{"a": (4, 10), "b": (2, 10)}, {"a": (0, 10), "b": (6, 10)}]
    value, interval = two.ratio(ones, [{"a": (1, 10), "b": (1, 10)}])
    assert value == pytest.approx(3.0)
    assert interval == pytest.approx((2.0, 4.0))


def test_a_ratio_to_nothing(two: Resamples) -> None:
    one = {"a": (1, 10), "b": (1, 10)}
    value, interval = two.ratio([one], [{"a": (0, 10), "b": (1, 10)}])
    assert value == pytest.approx(2.0)
    assert interval == (pytest.approx(1.0), math.inf)
    assert two.ratio([one], [{"a": (0, 10), "b": (0, 10)}]) == Rate(None)
    assert two.ratio([], [one]) == Rate(None)
    # One dialogue says nothing about another.
    assert two.ratio([one], [{"a": (1, 5)}]) == Rate(0.5)


def test_what_says_nothing(two: Resamples) -> None:
    assert two.rate([]) == Rate(None)
    assert two.rate([{"a": (0, 0)}]) == Rate(None)
    assert two.rate([{"a": (1, 2)}]) == Rate(0.5)
    # A run without any count is left out of the mean.
    assert two.rate([{"a": (2, 10), "b": (0, 10)}, {}]) == Rate(0.1, (0.0, 0.2))


def test_nothing_and_everything_are_not_certain(two: Resamples) -> None:
    bound = 1 - 0.025**0.5
    assert two.rate([{"a": (0, 4), "b": (0, 4)}]) == Rate(0.0, (0.0, pytest.approx(bound)))
    assert two.rate([{"a": (4, 4), "b": (4, 4)}]) == Rate(1.0, (pytest.approx(1 - bound), 1.0))


def test_scaled() -> None:
    assert Rate(0.5, (0.25, 1.0)).scaled(1000) == Rate(500.0, (250.0, 1000.0))
    assert Rate(0.5).scaled(2) == Rate(1.0)
    assert Rate(None).scaled(2) == Rate(None)


def test_the_same_seed_draws_the_same() -> None:
    run = {name: (place, 10) for place, name in enumerate("abcdefgh")}
    first, again, other = (Resamples("abcdefgh", seed).rate([run]) for seed in (1, 1, 2))
    assert first == again
    assert first.interval != other.interval
