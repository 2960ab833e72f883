"""The interval of a rate: by hand, by law, and against known truth."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_simulation import Campaigns, coverage
from scipy import special, stats

from pytest_dstfuzz.campaign.figures import (
    FEWEST_DIALOGUES,
    binomial_interval,
    interval_name,
    ratio_interval,
)

PAIR = st.integers(1, 40).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole)))
PAIRS = st.lists(PAIR, min_size=FEWEST_DIALOGUES, max_size=30)


@pytest.mark.parametrize(
    ("dialogues", "level", "bound"),
    # By hand: 1 - 0.025 ** (1 / 6) = 1 - 0.5407, 1 - 0.25 ** (1 / 6) = 1 - 0.7937; and the
    # tables of Clopper and Pearson for 0 of 10 (30.8 %) and 0 of 100 (3.62 %).
    [(6, 0.95, 0.4593), (6, 0.5, 0.2063), (10, 0.95, 0.3085), (100, 0.95, 0.0362)],
)
def test_nothing_found_is_no_certainty(dialogues: int, level: float, bound: float) -> None:
    # However many variants each dialogue gave: they are not independent.
    for wholes in ([1] * dialogues, range(1, dialogues + 1)):
        low, high = ratio_interval([(0, whole) for whole in wholes], level) or (1.0, 0.0)
        assert (low, round(high, 4)) == (0.0, bound)
        low, high = ratio_interval([(whole, whole) for whole in wholes], level) or (1.0, 0.0)
        assert (round(1 - low, 4), high) == (bound, 1.0)


def test_too_few_dialogues_give_none() -> None:
    few = [(1, 5)] * (FEWEST_DIALOGUES - 1)
    assert ratio_interval(few) is None
    # One without a valid variant is no dialogue more.
    assert ratio_interval([*few, (0, 0)]) is None
    assert ratio_interval([*few, (0, 1)]) is not None


def test_below_twenty_dialogues_it_is_called_approximate() -> None:
    assert interval_name(19) == "approximate 95 % interval"
    assert interval_name(20) == "95 % interval"


def test_single_variants_are_nearly_the_binomial_interval() -> None:
    low, high = ratio_interval([(1, 1)] * 30 + [(0, 1)] * 70) or (1.0, 0.0)
    exact = stats.binomtest(30, 100).proportion_ci(0.95)
    assert (low, high) == (
        pytest.approx(exact.low, abs=0.005),
        pytest.approx(exact.high, abs=0.005),
    )
    narrow = ratio_interval([(1, 1)] * 30 + [(0, 1)] * 70, level=0.5) or (1.0, 0.0)
    assert low < narrow[0] < narrow[1] < high


def test_violations_of_few_dialogues_tell_less() -> None:
    spread = ratio_interval([(1, 10)] * 20 + [(0, 10)] * 30) or (0.0, 0.0)
    together = ratio_interval([(10, 10)] * 2 + [(0, 10)] * 48) or (0.0, 0.0)
    # 20 of 500 both times.
    assert together[0] < spread[0] < 0.04 < spread[1] < together[1] / 2


@given(PAIRS, st.randoms())
def test_it_holds_the_rate_whatever_the_order(pairs: list[tuple[int, int]], random: object) -> None:
    low, high = ratio_interval(pairs) or (1.0, 0.0)
    rate = sum(part for part, _ in pairs) / sum(whole for _, whole in pairs)
    assert 0.0 <= low <= rate + 1e-9
    assert rate - 1e-9 <= high <= 1.0
    mixed = list(pairs)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # a random.Random
    assert ratio_interval(mixed) == (low, high)


@given(PAIRS)
def test_what_is_no_part_is_the_rest(pairs: list[tuple[int, int]]) -> None:
    low, high = ratio_interval(pairs) or (1.0, 0.0)
    other = ratio_interval([(whole - part, whole) for part, whole in pairs]) or (1.0, 0.0)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("part", [0.3, 4.0, 11.7])
def test_bounds_leave_out_what_the_level_says(part: float) -> None:
    low, high = binomial_interval(part, 12.0, 0.9)
    assert special.betainc(part, 13 - part, low) == pytest.approx(0.05)
    assert special.betainc(part + 1, 12 - part, high) == pytest.approx(0.95)


@pytest.mark.parametrize("dialogues", [6, 12, 50])
def test_it_holds_the_truth_as_often_as_it_says(dialogues: int) -> None:
    campaigns = [Campaigns("unequal", rate, 0.3) for rate in (0.01, 0.1, 0.3)]
    found = [coverage(each, 200, dialogues, seed=1, only="adopted") for each in campaigns]
    held = float(np.mean([row["adopted"].held for row in found]))
    # 600 campaigns: the simulation itself errs by 0.9 points.
    assert held >= 0.92, held


def test_too_few_dialogues_for_an_interval_load_no_scipy() -> None:
    code = (
        "import sys\n"
        "from pytest_dstfuzz.campaign.figures import ratio_interval\n"
        "assert ratio_interval([(1, 2)] * 5) is None\n"
        "assert 'scipy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
