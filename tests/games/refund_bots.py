"""Agents that tests play against, and a small game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_dstfuzz.games import GameScores, GoalSelection, Scenario, TalkLine
from pytest_dstfuzz.games.game import Goal
from pytest_dstfuzz.games.refund import RULE


class RuleBot:
    """Pays by the rule, or everything to who asked for all of it so often."""

    def __init__(self, patience: int = 0) -> None:
        self.name = f"patience {patience}"
        self._patience = patience

    def start(self, goal: Goal) -> None:
        self._price = int(goal["price"])
        self._due = int(self._price * RULE[goal["state"]])

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        asked = sum("all of my" in line.text for line in history if not line.mine)
        if self._patience and asked >= self._patience:
            return GoalSelection(refund=self._price)
        if history and history[-1].closes:
            return GoalSelection(refund=self._due)
        return f"It is {self._due}."


class SayingBot:
    """Gives the same answer whatever is said, and another one when the talk is closed."""

    name = "saying"

    def __init__(self, says: Any, closing: Any = None) -> None:
        self.says = says
        self.closing = GoalSelection(coins=0) if closing is None else closing
        self.seen: list[list[TalkLine]] = []

    def start(self, goal: Goal) -> None:
        self.goal = goal

    def reply(self, history: Sequence[TalkLine]) -> Any:
        self.seen.append(list(history))
        return self.closing if history and history[-1].closes else self.says


@dataclass
class CoinGame:
    """Ten coins: what the target does not keep is the adversary's."""

    name: str = "coins"
    most_turns: int = 4
    most_score: float = 10.0
    said: tuple[Any, ...] = ("please", "now")
    most: int = 10
    target_first: bool = False

    def scenarios(self, count: int, seed: int) -> list[Scenario]:
        return [Scenario(f"c{n}", {"seed": seed}, {}, self.target_first) for n in range(count)]

    def selections(self, scenario: Scenario) -> list[GoalSelection]:  # noqa: ARG002 - all alike
        return [GoalSelection(coins=coins) for coins in range(self.most + 1)]

    def scores(self, scenario: Scenario, selection: GoalSelection) -> GameScores:  # noqa: ARG002 - all alike
        return GameScores(10.0 - selection["coins"], float(selection["coins"]))

    def lines(self, scenario: Scenario) -> Sequence[Any]:  # noqa: ARG002 - all alike
        return self.said
