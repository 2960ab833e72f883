"""What the commands share: how a line of one is read, its page, its progress."""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dstfuzz.config import Settings, build_settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import percent

if TYPE_CHECKING:
    from pytest_dstfuzz.report.page import TerminalPage

__all__ = [
    "Command",
    "EstimateLine",
    "ProgressLine",
    "given_settings",
    "print_page",
    "say",
    "terminal_page",
    "wants_colour",
]

#: Seconds between lines where the stream is no terminal.
_PAUSE = 10.0
#: Style of a line -> its colour on a terminal.
_ANSI = {"good": "32", "bad": "1;31", "warning": "33", "dim": "2"}


@dataclass
class Command:
    """One of the commands; each mistake of the user is a `UserError` of ``run``."""

    name: str
    #: What it does, and what an interrupt leaves.
    summary: str
    kept: str
    examples: str
    #: Adds what its line may hold to the parser.
    options: Callable[[Parser], None]
    #: Does it, and may return an exit status.
    work: Callable[[Namespace], int | None]
    #: What its help begins with; by default the summary.
    about: str = ""
    #: Whether its first word chooses what the others, ``rest``, are for.
    chooses: bool = False

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with the arguments that follow its name."""
        about = self.about or f"{self.summary[0].upper()}{self.summary[1:]}."
        parser = Parser(f"dstfuzz {self.name}", about, self.examples)
        self.options(parser)
        own = arguments[:1] if self.chooses else arguments
        given = parser.parse_all(own)
        if self.chooses:
            given.rest = arguments[1:]
        return self.work(given) or 0


def given_settings(given: Namespace, names: Sequence[str]) -> Settings:
    """Return settings of those of the shared options that have a value."""
    values = {name: getattr(given, name) for name in names}
    return build_settings(
        {name: value for name, value in values.items() if value is not None or name in given.named}
    )


def terminal_page() -> TerminalPage:
    """Return an empty page of the width of the terminal."""
    from pytest_dstfuzz.report.page import TerminalPage  # noqa: PLC0415 - help should not wait for it

    width = shutil.get_terminal_size((100, 24)).columns
    return TerminalPage(width, sys.stdout.encoding or "utf-8")


def print_page(page: TerminalPage) -> None:
    """Print a page, in colours where the terminal has them."""
    for line in page.lines:
        code = _ANSI.get(line.style) if wants_colour() else None
        print(f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text)


def wants_colour() -> bool:
    """Whether the output is a terminal whose user did not ask for none."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(line: str) -> None:
    """Print a line of progress at once."""
    print(line, flush=True)


class ProgressLine:
    """Shows on the error stream how far a command is, without a trace in its output.

    It is one line that is rewritten, or a line now and then where that is no terminal.
    """

    def __init__(self, what: str) -> None:
        #: What is counted.
        self.what = what
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Show ``done`` of ``total``, when it is time to."""
        now = time.monotonic()
        if not self._terminal and now - self._last < _PAUSE:
            return
        self._last = now
        share = f" of {total:,} ({percent(done / total, 0)})" if total else ""
        text = f"{done:,}{share} {self.what}"
        print(f"\r{text}\x1b[K" if self._terminal else text, end="", file=sys.stderr)
        print(end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal's line clean."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class EstimateLine(ProgressLine):
    """Shows when a command will be done, too, by how fast it was since the line was begun."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._plain = what
        #: How much was done when it was first told, and when that was.
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show ``done`` of ``total``, and how long the rest will take."""
        now = time.monotonic()
        first, since = self._first = self._first or (done, now)
        self.what = self._plain
        if total is not None and done > first:
            left = (now - since) * (total - done) / (done - first)
            self.what = f"{self._plain}; about {_duration(left)} left"
        super().__call__(done, total)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
