"""Agents of users that learn against an attacker, and the attacker against them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from refund_bots import CoinGame, SayingBot

from pytest_dstfuzz import UserError
from pytest_dstfuzz.games import GoalSelection, LearningAgent, Scenario, TalkLine, harden_agent
from pytest_dstfuzz.games.game import Goal
from pytest_dstfuzz.games.hardening import LearnedGame


class CoinKeeper:
    """Keeps no coin after a line that it has not learned to refuse, and ten after others."""

    name = "keeper"

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.rewards: list[float] = []
        self.goals: list[Goal] = []

    def start(self, goal: Goal) -> None:
        self.goal = goal

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        said = [line.text for line in history if not line.mine and line.text]
        if not said:
            return GoalSelection(coins=10) if history else "well"
        return GoalSelection(coins=10 if said[-1] in self.refused else 0)

    def learn(self, games: Sequence[LearnedGame]) -> None:
        self.rewards += [game.reward for game in games]
        self.goals += [game.goal for game in games]
        self.refused |= {
            line.text for game in games if game.reward < 0 for line in game.talk if not line.mine
        }


class CoinAsker:
    """Says one of its lines, and leaves out those that have failed."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.rewards: list[float] = []

    def start(self, goal: Goal) -> None:
        self.goal = goal

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:  # noqa: ARG002 - insists
        return self.lines[0]

    def learn(self, games: Sequence[LearnedGame]) -> None:
        self.rewards += [game.reward for game in games]
        said = {line.text for game in games if game.reward < 0 for line in game.talk if line.mine}
        self.lines = [line for line in self.lines if line not in said] or self.lines


def test_both_sides_learn_in_turn() -> None:
    agent, attacker = CoinKeeper(), CoinAsker("give it", "now", "please")
    assert isinstance(agent, LearningAgent)
    found = harden_agent(CoinGame(), agent, attacker, rounds=4, games=3, judged=5)
    # In each round the agent refuses one more line, and the attacker goes on to the next.
    assert [one.attack.advantage.value for one in found] == [10.0, 10.0, -10.0, -10.0]
    assert agent.refused == {"give it", "now", "please"}
    assert agent.rewards[:3] == [-10.0, -10.0, -10.0]
    assert attacker.rewards[-3:] == [-10.0, -10.0, -10.0]
    assert [one.games for one in found] == [6, 12, 18, 24]
    assert all(one.partner is None for one in found)
    assert all(goal["seed"] > 0 for goal in agent.goals)  # Not the scenarios of the figures.


def test_the_agent_also_learns_from_its_partner() -> None:
    agent = CoinKeeper()
    partner = SayingBot("fair shares ?")
    (found,) = harden_agent(
        CoinGame(), agent, CoinAsker("now"), partner=partner, rounds=1, games=2, judged=3
    )
    assert agent.rewards == [-10.0, -10.0, 0.0, 0.0]  # Its own score against the partner.
    assert found.partner is not None
    assert found.partner.target == 0.0
    assert found.games == 6


def test_mistakes_are_told() -> None:
    keeper, asker = CoinKeeper(), CoinAsker("now")
    with pytest.raises(UserError, match="attacker 'saying' cannot learn"):
        harden_agent(CoinGame(), keeper, SayingBot("now"))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UserError, match="rounds must be at least 1, not 0"):
        harden_agent(CoinGame(), keeper, asker, rounds=0)

    class OneGoal(CoinGame):
        def scenarios(self, count: int, seed: int) -> list[Scenario]:
            del seed
            return super().scenarios(count, 0)

    with pytest.raises(UserError, match="no scenario for the training"):
        harden_agent(OneGoal(), keeper, asker)
