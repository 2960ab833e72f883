"""The comparison of the adaptive search: equal calls, weaknesses, and the prior without a bot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_dstfuzz.campaign.figures import count
from pytest_dstfuzz.papers.comparison import TurnFigures, Violation
from pytest_dstfuzz.search.adaptive import FEATURES, shipped_prior
from tools.agents.adaptive import Found, belief_of, cut, measure, measure_cost, prior_of


def violation(number: int, key: str) -> Violation:
    return Violation("turn", (), False, False, number, key, "area", 0.0, ())


def turn(dialogue: str, calls: tuple[int, ...], *found: Violation) -> TurnFigures:
    first = found[0].number if found else None
    return TurnFigures(dialogue, 0, calls[-1], calls, first, count(()), 0, 0.0, 0.0, found)


TURNS = (
    turn("a", (1, 2, 3, 4), violation(1, "lost"), violation(3, "copied")),
    turn("b", (1, 2, 3, 4), violation(2, "lost")),
)


@pytest.mark.parametrize(
    ("calls", "broken", "weak"),
    [(4, 1.0, 1.0), (5, 1.5, 1.0), (6, 2.0, 1.0), (7, 2.0, 1.5), (8, 2.0, 2.0), (99, 2.0, 2.0)],
)
def test_a_search_is_cut_where_its_calls_end(calls: int, broken: float, weak: float) -> None:
    assert measure([cut(TURNS, calls)], ["a", "b"]) == (broken, weak)


def test_a_dialogue_drawn_twice_has_its_turns_twice_and_its_weaknesses_once() -> None:
    found = cut(TURNS, 8)
    assert measure([found], ["a", "a"]) == (2.0, 2.0)
    assert measure([found, Found({}, {})], ["b"]) == (0.5, 0.5)


def test_the_prior_leaves_the_bot_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, place in (("one-rules", 3), ("two-rules", 5)):
        rows = rng.integers(0, 2, (400, len(FEATURES))).astype(float)
        labels = rows[:, place]
        np.savez(tmp_path / f"{name}.npz", rows=rows, labels=labels, weights=np.ones(400))
    both, one = prior_of(tmp_path), prior_of(tmp_path, "two (rules)")
    assert both["mean"][FEATURES[3]] > 1 < both["mean"][FEATURES[5]]
    assert one["mean"][FEATURES[3]] > 1 > one["mean"][FEATURES[5]]
    assert belief_of(both).mean.tolist() == [*both["mean"].values()]


def test_the_shipped_prior_knows_every_feature() -> None:
    prior = shipped_prior()
    assert np.count_nonzero(prior.mean) > len(FEATURES) - 3
    assert prior.mean[FEATURES.index("past: word")] > 0
    assert prior.mean[FEATURES.index("tried edit")] < 0


def test_the_cost_of_a_search_is_a_part_of_the_run() -> None:
    rows = [*measure_cost("clinic (rules, states)", 6, 3, 0)]
    assert [row[1] for row in rows] == ["timed-adaptive", "timed-random"]
    for *_, calls, _, _, share in rows:
        assert int(calls) > 6
        assert 0 < float(share.rstrip("%")) < 100
