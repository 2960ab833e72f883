"""The object that the fixture ``dst_game`` returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.games.attack import GameAttack, GameReport, ReplayedGame, replay
from pytest_dstfuzz.games.game import Game, GoalAgent, name_of
from pytest_dstfuzz.games.playing import AdversarySide
from pytest_dstfuzz.plugin.options import read_settings


class DstGame:
    """Runs adversaries against an agent with a goal.

    ``play`` returns a report with figures and intervals. ``replay`` repeats games that a report has
    stored.
    """

    def __init__(self, item: pytest.Item, record: Callable[[str], None]) -> None:
        """Store the test, and a function that records the text of each report."""
        self._item = item
        self._record = record

    def play(
        self,
        agent: GoalAgent,
        game: Game,
        *,
        games: int = GameAttack.games,
        budget: int = GameAttack.budget,
        seed: int | None = None,
        adversaries: Sequence[str] | None = None,
        side: AdversarySide | None = None,
    ) -> GameReport:
        """Let adversaries play against an agent, and return a report.

        Args:
            agent: the agent under test, see `GoalAgent`.
            game: the rules and scores, see `Game`.
            games: the number of reported scenarios. Each adversary plays one game per scenario.
            budget: the number of unreported games that each adversary plays before. Half are for
                learning in other scenarios, half for searching in the reported scenarios.
            seed: the seed of scenarios and adversaries. By default the seed of --dst-seed.
            adversaries: the names of the adversaries. By default all that can play against this
                agent.
            side: optional resources of the adversaries: an agent that speaks for them, a language
                model that measures perplexity, and a maximum perplexity of their utterances.
        """
        __tracebackhide__ = True
        try:
            chosen = read_settings(self._item.config).variant.seed if seed is None else seed
            if isinstance(adversaries, str):
                raise UserError(f"adversaries must be a list of names, such as [{adversaries!r}]")
            names = None if adversaries is None else tuple(adversaries)
            how = GameAttack(games, budget, chosen, names)
            report = GameReport(name_of(agent), game.name, how, how.run(agent, game, side))
        except DstFuzzError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self._record(str(report))
        return report

    def replay(self, agent: GoalAgent, game: Game, path: str | Path) -> tuple[ReplayedGame, ...]:
        """Repeat the games that `GameReport.remember` wrote to a file."""
        __tracebackhide__ = True
        try:
            return replay(agent, game, path)
        except DstFuzzError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
