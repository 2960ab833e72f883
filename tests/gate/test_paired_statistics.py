"""The difference of two builds: by hand, by law, and against known truth."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gate_simulation import ADVISED, Campaigns, decided, verdicts
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_dstfuzz.gate.baseline import Tally
from pytest_dstfuzz.gate.pairing import (
    POWER,
    RESAMPLES,
    PairedViolations,
    dialogues_needed,
    fewest_dialogues,
    interval,
    permutation_test,
)
from pytest_dstfuzz.seeding import stream

#: Violations before and after, and variants compared, of one dialogue.
ROW = st.integers(1, 9).flatmap(
    lambda count: st.tuples(st.integers(0, count), st.integers(0, count), st.just(count))
)
ROWS = st.lists(ROW, min_size=2, max_size=9)
FEW = st.lists(ROW, min_size=6, max_size=9)


def paired(rows: list[tuple[int, int, int]]) -> PairedViolations:
    return PairedViolations.of(Tally(count, before, after) for before, after, count in rows)


def rng() -> np.random.Generator:
    return stream(0, "test")


def test_the_difference_is_one_of_sums() -> None:
    # 1 of 2 and 0 of 8 are 10 %; 2 of 2 and 1 of 8 are 30 %.
    assert paired([(1, 2, 2), (0, 1, 8)]).difference == pytest.approx(0.2)


def test_the_interval_of_six_dialogues_is_the_widest_that_there_is() -> None:
    # 63 subsets; 2.5 % of 64 are 1.6, so one is left out at each end: the bounds are the
    # smallest and the largest change of any subset, which are those of single dialogues.
    rows = [(0, number, 10) for number in (1, 2, 3, 4, 5, 6)]
    assert interval(paired(rows), rng()) == pytest.approx((0.1, 0.6))


def test_all_subsets_of_seven_dialogues_are_taken() -> None:
    rows = [(0, number, 10) for number in range(7)]
    values = sorted(
        sum(subset) / (10 * len(subset))
        for size in range(1, 8)
        for subset in itertools.combinations(range(7), size)
    )
    # 2.5 % of 128 are 3.2: the third from each end.
    assert interval(paired(rows), rng()) == pytest.approx((values[2], values[-3]))


@pytest.mark.parametrize(("level", "dialogues"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.995, 9)])
def test_an_interval_needs_dialogues(level: float, dialogues: int) -> None:
    assert fewest_dialogues(level) == dialogues
    rows = [(0, 1, 5)] * dialogues
    assert interval(paired(rows[1:]), rng(), level) is None
    assert interval(paired(rows), rng(), level) == pytest.approx((0.2, 0.2))


def test_the_test_of_six_dialogues_that_all_got_worse() -> None:
    # Two of the 64 ways to swap the builds are as extreme as none and all.
    assert permutation_test(paired([(0, 1, 5)] * 6), rng()) == pytest.approx(2 / 64)


def test_drawn_subsets_agree_with_the_normal_theory() -> None:
    generator = np.random.default_rng(3)
    rows = [(int(b), int(a), 20) for b, a in generator.binomial(20, 0.3, size=(200, 2))]
    low, high = interval(paired(rows), rng()) or (0.0, 0.0)
    changes = np.array([(after - before) / 20 for before, after, _ in rows])
    error = changes.std(ddof=1) / np.sqrt(len(rows))
    assert (low, high) == pytest.approx(
        (changes.mean() - 1.96 * error, changes.mean() + 1.96 * error), abs=error / 10
    )
    p_value = permutation_test(paired(rows), rng())
    assert p_value == pytest.approx(2 * stats.norm.sf(abs(changes.mean()) / error), abs=0.02)


@pytest.mark.nightly
@given(ROWS, st.randoms())
def test_the_order_of_dialogues_changes_nothing(
    rows: list[tuple[int, int, int]], random: object
) -> None:
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # a random.Random
    for one, other in ((paired(rows), paired(mixed)),):
        assert interval(one, rng()) == pytest.approx(interval(other, rng()))
        assert permutation_test(one, rng()) == pytest.approx(permutation_test(other, rng()))
        assert dialogues_needed(one, 0.02) == dialogues_needed(other, 0.02)


@pytest.mark.nightly
@given(FEW)
def test_swapping_the_builds_negates_the_difference(rows: list[tuple[int, int, int]]) -> None:
    one = paired(rows)
    other = paired([(after, before, count) for before, after, count in rows])
    assert other.difference == -one.difference
    low, high = interval(one, rng()) or (np.nan, np.nan)
    assert interval(other, rng()) == pytest.approx((-high, -low))
    assert permutation_test(one, rng()) == pytest.approx(permutation_test(other, rng()))


@given(FEW)
def test_a_build_is_never_worse_than_itself(rows: list[tuple[int, int, int]]) -> None:
    same = paired([(before, before, count) for before, _, count in rows])
    assert interval(same, rng()) == (0.0, 0.0)
    assert permutation_test(same, rng()) == 1.0


@given(FEW)
def test_the_interval_holds_the_difference_that_was_seen(rows: list[tuple[int, int, int]]) -> None:
    low, high = interval(paired(rows), rng()) or (np.nan, np.nan)
    assert low - 1e-12 <= paired(rows).difference <= high + 1e-12


def test_the_same_seed_gives_the_same_figures() -> None:
    rows = [(number % 3, (number * 7) % 5, 5) for number in range(60)]
    assert RESAMPLES < 2**60
    one, other = (interval(paired(rows), stream(4, "gate")) for _ in range(2))
    assert one == other
    assert one != interval(paired(rows), stream(5, "gate"))


def test_dialogues_needed_by_hand() -> None:
    # Changes of +10 and -6 of 20 variants by turns: 0.1 in the mean, residuals of 8 each.
    rows = [(0, 10, 20), (6, 0, 20)] * 10
    # Error per dialogue 0.4 * sqrt(20 / 19); with the normal distribution's quantiles of 97.5
    # and 85 % ((1.9600 + 1.0364) * 0.4104 / 0.1) ** 2 = 151.2, and those of t ask for two more.
    assert dialogues_needed(paired(rows), 0.02) == 154
    # Below a margin of 0.3 it is twice as far from it as it is from 0: a quarter, and two more.
    assert dialogues_needed(paired(rows), 0.3) == 40
    # Just above the margin it is seen above it half of the time: (1.0364 * 0.4104 / 0.02) ** 2.
    assert dialogues_needed(paired(rows), 0.08) == 453
    assert dialogues_needed(paired(rows), paired(rows).difference) is None
    assert dialogues_needed(paired([(0, 0, 5)] * 3), 0.02) == fewest_dialogues()


@pytest.fixture(scope="module")
def campaigns() -> Campaigns:
    path = Path(__file__).with_name("trade_turns.json")
    return Campaigns(json.loads(path.read_text(encoding="utf-8"))["dialogues"])


@pytest.mark.nightly
@pytest.mark.parametrize(("turns", "margin"), [(100, 0.0), (100, 0.02), (600, 0.0)])
def test_equal_builds_are_seldom_called_worse(
    campaigns: Campaigns, turns: int, margin: float
) -> None:
    found = verdicts(campaigns, 200, turns=turns, shift=0.0, seed=1, margin=margin)
    assert found["regression"] <= 0.05


def test_a_build_that_is_worse_by_five_points_is_caught(campaigns: Campaigns) -> None:
    found = verdicts(campaigns, 60, turns=2_000, shift=0.05, seed=2)
    assert found["regression"] >= 0.8


@pytest.mark.nightly
@pytest.mark.parametrize(("shift", "margin"), ADVISED)
def test_as_many_dialogues_as_are_advised_decide_as_often_as_promised(
    campaigns: Campaigns, shift: float, margin: float
) -> None:
    _, share = decided(campaigns, 150, shift=shift, seed=3, margin=margin)
    # 150 campaigns: the simulation itself errs by 3 points.
    assert POWER - 0.06 <= share <= 0.96


def test_the_simulated_shift_is_the_one_that_was_asked_for(campaigns: Campaigns) -> None:
    rates: npt.NDArray[np.float64] = np.array(
        [pair.difference for pair in campaigns.draw(40, 2_000, 0.05, np.random.default_rng(0))]
    )
    assert rates.mean() == pytest.approx(0.05, abs=0.005)
