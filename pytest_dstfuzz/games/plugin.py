"""The fixture ``dst_game``, and what the end of a session tells about its games."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.games.attack import GameAttack
from pytest_dstfuzz.games.game import Game, GoalAgent, name_of
from pytest_dstfuzz.games.playing import AdversarySide
from pytest_dstfuzz.games.report import GameReport, ReplayedGame, replay
from pytest_dstfuzz.plugin.options import read_settings

_HOOKS: pytest.StashKey[GameHooks] = pytest.StashKey()
#: What the games of a test came to, as texts.
_TOLD: pytest.StashKey[list[str]] = pytest.StashKey()


class DstGame:
    """Plays against an agent with a goal, and says what adversaries talk it into.

    ``play`` gives a report with figures and intervals; ``replay`` plays remembered games again.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

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
        """Let adversaries play against an agent.

        Args:
            agent: who is tested, see `GoalAgent`.
            game: what is at stake, see `Game`.
            games: scenarios that are reported; each adversary plays one game in each.
            budget: games of each adversary before those, half to learn in other scenarios and
                half to search in these.
            seed: of scenarios and adversaries; by default that of --dst-seed.
            adversaries: their names; by default all that can play against this agent.
            side: what they are given: a voice, a language model, a bound of the perplexity.
        """
        __tracebackhide__ = True
        try:
            chosen = read_settings(self._item.config).variant.seed if seed is None else seed
            if isinstance(adversaries, str):
                raise UserError(f"adversaries would be a list of names: [{adversaries!r}]")
            names = None if adversaries is None else tuple(adversaries)
            how = GameAttack(games, budget, chosen, names)
            report = GameReport(name_of(agent), game.name, how, how.run(agent, game, side))
        except DstFuzzError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self._item.stash.setdefault(_TOLD, []).append(str(report))
        return report

    def replay(self, agent: GoalAgent, game: Game, path: str | Path) -> tuple[ReplayedGame, ...]:
        """Play the games of a file again that `GameReport.remember` wrote."""
        __tracebackhide__ = True
        try:
            return replay(agent, game, path)
        except DstFuzzError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None


class GameHooks:
    """Carries what games came to from tests to the end of the session."""

    def __init__(self) -> None:
        self._told: dict[str, list[str]] = {}

    @staticmethod
    def fixture(item: pytest.Item) -> DstGame:
        """Return what the fixture ``dst_game`` gives to a test."""
        return DstGame(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report of a test carry what its games came to, also to another process."""
        report = yield
        if call.when == "call" and _TOLD in item.stash:
            report.dstfuzz_games = item.stash[_TOLD]  # type: ignore[attr-defined]  # any will do
        return report

    def add(self, node: str, told: list[str]) -> None:
        """Take in what the games of a test came to."""
        self._told[node] = told

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell of all games, in the order of the tests' names: workers end as they like."""
        if self._told:
            terminalreporter.section("dstfuzz games")
        for node in sorted(self._told):
            for text in self._told[node]:
                terminalreporter.write_line(f"{node}:")
                terminalreporter.write_line(text)


def game_hooks(config: pytest.Config) -> GameHooks:
    """Return the session's, which are registered when the first is asked for."""
    found = config.stash.get(_HOOKS, None)
    if found is None:
        found = config.stash[_HOOKS] = GameHooks()
        config.pluginmanager.register(found, "dstfuzz-games")
    return found
