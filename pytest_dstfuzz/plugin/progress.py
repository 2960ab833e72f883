"""Signs of life while a window of many turns is computed and no test can end."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from pytest_dstfuzz.campaign.events import BatchDone, BudgetReached, Event, WindowStarted
from pytest_dstfuzz.printable import printable

#: Seconds without a sign of life after which one is given.
PATIENCE = 20.0


class Progress:
    """Listens to campaigns; says something on the terminal when it has been silent for long.

    pytest prints a dot for each test, but the test that opens a window waits for all of
    it. In a worker of xdist there is no terminal, and the other workers' dots go on.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._last_sign = time.monotonic()
        self._wanted = self._done = 0

    def __call__(self, event: Event) -> None:
        """Take in one event of a campaign."""
        if isinstance(event, WindowStarted):
            self._wanted += event.contexts
        elif isinstance(event, BudgetReached):
            self._say(f"{event.reason}: what is left is skipped")
        elif isinstance(event, BatchDone):
            self._done += event.contexts
            if time.monotonic() - self._last_sign >= PATIENCE:
                # The second passes, which tell what caused a violation, come on top.
                most = max(self._wanted, self._done)
                self._say(f"{self._done} of about {most} contexts predicted")

    def sign_of_life(self) -> None:
        """Note that something was printed."""
        self._last_sign = time.monotonic()

    def _say(self, text: str) -> None:
        self.sign_of_life()
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.get_verbosity() < 0:
            return
        with self._uncaptured():
            reporter.ensure_newline()
            reporter.write_line(printable(f"dstfuzz: {text}"))
            reporter.flush()

    def _uncaptured(self) -> AbstractContextManager[None]:
        # A campaign runs inside a test, whose output pytest captures.
        manager: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if manager is None:
            return nullcontext()
        captured: AbstractContextManager[None] = manager.global_and_fixture_disabled()
        return captured
