"""The fixture ``dst_game``, and what the end of a session says of its games.

Every run of pytest loads this, and a run without games nothing else of it: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pytest_dstfuzz.games.fixture import DstGame

#: What the games of a test came to.
_TEXTS: Final = pytest.StashKey[list[str]]()
_HOOKS: Final = pytest.StashKey["GameHooks"]()


def pytest_configure(config: pytest.Config) -> None:
    """Listen for games of tests in other processes."""
    config.pluginmanager.register(_GameReports(config), "dstfuzz-game-reports")


@pytest.fixture
def dst_game(request: pytest.FixtureRequest) -> DstGame:
    """Plays against an agent with a goal: ``dst_game.play(agent, game)`` gives a report.

    ``report.assert_advantage_below(0)`` fails a test. It needs neither a tracker nor dialogues.
    """
    _hooks(request.config)
    from pytest_dstfuzz.games.fixture import DstGame  # noqa: PLC0415 - few runs need it

    texts = request.node.stash.setdefault(_TEXTS, [])
    return DstGame(request.node, texts.append)


class _GameReports:
    """Takes in what the games of tests came to, from their reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the texts that came with the report of a test."""
        texts = getattr(report, "dstfuzz_games", None)
        if texts is not None:
            _hooks(self._config).add(report.nodeid, texts)


class GameHooks:
    """Carries what games came to from tests to the end of the session."""

    def __init__(self) -> None:
        self._texts: dict[str, Sequence[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report of a test carry what its games came to, also to another process."""
        report = yield
        if call.when == "call" and (texts := item.stash.get(_TEXTS, None)):
            report.dstfuzz_games = texts  # type: ignore[attr-defined]  # any will do
        return report

    def add(self, node: str, texts: Sequence[str]) -> None:
        """Take in what the games of a test came to."""
        self._texts[node] = texts

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show all games, in the order of the tests' names: workers end in any order."""
        if self._texts:
            terminalreporter.section("dstfuzz games")
        for node in sorted(self._texts):
            for text in self._texts[node]:
                terminalreporter.write_line(f"{node}:")
                terminalreporter.write_line(text)


def _hooks(config: pytest.Config) -> GameHooks:
    """Return the session's, which are registered when the first is asked for."""
    found = config.stash.get(_HOOKS, None)
    if found is None:
        found = config.stash[_HOOKS] = GameHooks()
        config.pluginmanager.register(found, "dstfuzz-games-session")
    return found
