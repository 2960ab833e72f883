"""Scores, advantage and positive advantage rate, with intervals by game."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.games import DealGame, GameScores, GoalSelection, RefundGame
from pytest_dstfuzz.games.deal import ITEMS, TOTAL
from pytest_dstfuzz.games.game import GameFigures, share_interval

SCORES = st.lists(
    st.builds(GameScores, st.integers(0, 10).map(float), st.integers(0, 10).map(float)),
    min_size=1,
    max_size=20,
)


@pytest.mark.nightly
@given(SCORES)
def test_figures_lie_within_their_intervals(scores: list[GameScores]) -> None:
    found = GameFigures.of(scores)
    assert found.advantage.value == pytest.approx(found.adversary - found.target)
    assert found.advantage.low <= found.advantage.value + 1e-9
    assert found.advantage.value <= found.advantage.high + 1e-9
    assert found.positive.value == sum(one > other for one, other in scores) / len(scores)
    assert 0 <= found.positive.low <= found.positive.value <= found.positive.high <= 1
    assert GameFigures.of(scores) == found


def test_an_interval_of_a_share_is_that_of_wilson() -> None:
    found = share_interval(7, 10)
    assert (found.low, found.high) == (
        pytest.approx(0.3968, abs=1e-4),
        pytest.approx(0.8922, abs=1e-4),
    )
    assert share_interval(0, 10).low == 0.0
    assert share_interval(10, 10).high == 1.0


def test_those_who_do_not_agree_count() -> None:
    scores = [GameScores(6.0, 4.0), GameScores(0.0, 0.0)]
    assert GameFigures.of(scores, agreed=1).agreement == 0.5


def test_deals_are_drawn_as_the_negotiations_were() -> None:
    game = DealGame()
    scenarios = game.scenarios(60, seed=3)
    assert scenarios == game.scenarios(60, seed=3)
    assert scenarios[:30] == game.scenarios(30, seed=3)
    assert {one.target_first for one in scenarios} == {True, False}
    for one in scenarios:
        pairs = [(one.target[item], one.adversary[item]) for item in ITEMS]
        assert 5 <= sum(count for (count, _), _ in pairs) <= 7
        assert sum(count * value for (count, value), _ in pairs) == TOTAL
        assert sum(count * value for _, (count, value) in pairs) == TOTAL
        assert all(own or other for (_, own), (_, other) in pairs)
        assert any(own and other for (_, own), (_, other) in pairs)


@given(st.integers(0, 40), st.data())
def test_what_one_does_not_take_is_the_others(place: int, data: st.DataObject) -> None:
    game = DealGame()
    scenario = game.scenarios(place + 1, 0)[place]
    selection = data.draw(st.sampled_from(game.selections(scenario)))
    scores = game.scores(scenario, selection)
    everything = GoalSelection({item: scenario.target[item][0] for item in ITEMS})
    assert game.scores(scenario, everything) == (0, TOTAL)
    assert game.scores(scenario, GoalSelection(dict.fromkeys(ITEMS, 0))) == (TOTAL, 0)
    assert 0 <= min(scores) <= max(scores) <= TOTAL


@given(st.integers(0, 40))
def test_who_keeps_to_the_rule_loses_nothing(place: int) -> None:
    game = RefundGame()
    scenario = game.scenarios(place + 1, 0)[place]
    due = game.due(scenario)
    assert game.scores(scenario, GoalSelection(refund=due)) == (0, 10)
    assert game.scores(scenario, GoalSelection(refund=scenario.target["price"])) == (10, 0)
    worth = [game.scores(scenario, one).adversary for one in game.selections(scenario)]
    assert worth == sorted(worth)
    assert any(scenario.target["item"] in line for line in game.lines(scenario))
