"""The fixture ``dst_game``, and the summary of games at the end of a session.

Every run of pytest imports this module. Other modules of ``games`` are imported only when needed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pytest_dstfuzz.games.fixture import DstGame

#: The report texts of a test.
_TEXTS: Final = pytest.StashKey[list[str]]()
_HOOKS: Final = pytest.StashKey["GameHooks"]()


def pytest_configure(config: pytest.Config) -> None:
    """Register a listener for the reports of games that other processes played."""
    config.pluginmanager.register(_GameReports(config), "dstfuzz-game-reports")


@pytest.fixture
def dst_game(request: pytest.FixtureRequest) -> DstGame:
    """Play against an agent with a goal: ``dst_game.play(agent, game)`` returns a report.

    ``report.assert_advantage_below(0)`` makes a test fail. The fixture needs neither a tracker nor
    dialogues.
    """
    _hooks(request.config)
    from pytest_dstfuzz.games.fixture import DstGame  # noqa: PLC0415 - few runs need it

    texts = request.node.stash.setdefault(_TEXTS, [])
    return DstGame(request.node, texts.append)


class _GameReports:
    """Receives the texts about games that arrive with the reports of tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the texts about games that are in the report of a test."""
        texts = getattr(report, "dstfuzz_games", None)
        if texts is not None:
            _hooks(self._config).add(report.nodeid, texts)


class GameHooks:
    """Passes the texts about games from the tests to the end of the session."""

    def __init__(self) -> None:
        self._texts: dict[str, Sequence[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the texts about games to a test's report, which may go to another process."""
        report = yield
        if call.when == "call" and (texts := item.stash.get(_TEXTS, None)):
            report.dstfuzz_games = texts  # type: ignore[attr-defined]  # allows any attribute
        return report

    def add(self, node: str, texts: Sequence[str]) -> None:
        """Store the texts about the games of a test."""
        self._texts[node] = texts

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the texts in the order of test names, because workers end in any order."""
        if self._texts:
            terminalreporter.section("dstfuzz games")
        for node in sorted(self._texts):
            for text in self._texts[node]:
                terminalreporter.write_line(f"{node}:")
                terminalreporter.write_line(text)


def _hooks(config: pytest.Config) -> GameHooks:
    """Return the hooks of the session. Register them if this is the first use."""
    found = config.stash.get(_HOOKS, None)
    if found is None:
        found = config.stash[_HOOKS] = GameHooks()
        config.pluginmanager.register(found, "dstfuzz-games-session")
    return found
