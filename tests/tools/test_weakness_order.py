"""Rank correlations of weaknesses, and the coverage of estimates, on runs made by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tools.weaknesses.order import correlation, coverage_table


def run(**weaknesses: tuple[float, int]) -> dict[str, Any]:
    rows = [
        {"id": name, "rate": rate, "turns": turns, "own": turns}
        for name, (rate, turns) in weaknesses.items()
    ]
    return {"weaknesses": rows}


def test_only_weaknesses_of_both_runs_have_an_order_in_both():
    one = run(a=(3.0, 1), b=(2.0, 1), c=(1.0, 1))
    two = run(a=(3.0, 1), b=(2.0, 1), d=(9.0, 1))
    assert correlation(one, two, "estimated rate", common=True) == pytest.approx(1.0)
    # Over all: a, b, c, d have the ranks 4, 3, 2, 1 and 3, 2, 1, 4.
    assert correlation(one, two, "estimated rate", common=False) == pytest.approx(-0.2)


def test_ties_share_the_mean_rank_and_one_tie_is_no_order():
    one, two = run(a=(0.0, 4), b=(0.0, 2), c=(0.0, 2)), run(a=(0.0, 9), b=(0.0, 1), c=(0.0, 3))
    assert correlation(one, two, "turns broken", common=True) == pytest.approx(math.sqrt(3) / 2)
    assert math.isnan(correlation(one, two, "estimated rate", common=True))


def test_an_interval_is_held_against_the_turns_of_its_run():
    figures = {"variants": 5, "sampled": 2, "vacuous": 0, "per_1000": 20.0}
    runs = [
        {**figures, "interval": (10.0, 30.0), "turns": turns} for turns in (["a", "b"], ["b", "c"])
    ]
    *_, first, second, held = coverage_table(runs, {"a": 0.0, "b": 0.04, "c": 0.08})
    assert first.endswith("| 20.00 | yes |")
    assert second.endswith("| 60.00 | no |")
    assert held.endswith("in 1 of 2 seeds.")
