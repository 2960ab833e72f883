"""Parts that all commands share: arguments, pages and progress."""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.config import Settings, build_settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.files import check_apart

if TYPE_CHECKING:
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet
    from pytest_dstfuzz.report.page import TerminalPage

__all__ = [
    "Command",
    "EstimateLine",
    "ProgressLine",
    "build_given_settings",
    "check_output",
    "load_data",
    "print_page",
    "say",
    "terminal_page",
    "wants_colour",
]

#: Seconds between progress lines if the stream is not a terminal.
_PAUSE = 10.0
#: Style of a line -> its colour on a terminal.
_ANSI = {"good": "32", "bad": "1;31", "warning": "33", "dim": "2"}


@dataclass
class Command:
    """A command of ``dstfuzz``. ``run`` raises a `UserError` for errors of the user."""

    name: str
    #: Summary of the command, and the message after an interrupt, which says what was saved.
    summary: str
    kept: str
    examples: str
    #: Adds the arguments of the command to the parser.
    options: Callable[[Parser], None]
    #: Runs the command, and may return an exit status.
    work: Callable[[Namespace], int | None]
    #: First lines of the help. By default, these are the summary.
    about: str = ""
    #: Whether the first argument selects a subcommand, which parses all other arguments, ``rest``.
    chooses: bool = False

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with the arguments after its name."""
        about = self.about or f"{self.summary[0].upper()}{self.summary[1:]}."
        parser = Parser(f"dstfuzz {self.name}", about, self.examples)
        self.options(parser)
        own = arguments[:1] if self.chooses else arguments
        given = parser.parse_all(own)
        if self.chooses:
            given.rest = arguments[1:]
        return self.work(given) or 0


def build_given_settings(given: Namespace, names: Sequence[str]) -> Settings:
    """Return the settings with the given values of the shared options."""
    values = {name: getattr(given, name) for name in names}
    return build_settings(
        {name: value for name, value in values.items() if value is not None or name in given.named}
    )


def check_output(
    written: Mapping[str, str | Path | None],
    read: Mapping[str, str | Path | None],
    data: Mapping[str, str | Path | None],
) -> None:
    """Raise an error if a file to write is an input or a file of the dialogues.

    Each mapping gives the path for the name of a file in messages, see `check_apart`. Those of
    ``data`` may also be folders or names of data sets.

    Raises:
        UserError: the file would overwrite an input.
    """
    # Imported late, as below.
    from pytest_dstfuzz.dialogue.load import check_apart_of_data  # noqa: PLC0415

    check_apart(written, {**read, **data})
    check_apart_of_data(written, data)


def load_data(
    settings: Settings, *, layout: str | None = None, normalisation: str | None = None
) -> DialogueSet:
    """Return the dialogues that the options name, with the named slots.

    Raises:
        UserError: the data cannot be read, or a named slot is missing.
    """
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.ontology import with_slots  # noqa: PLC0415

    data, outcome = settings.data, settings.reply.outcome
    read = load_dialogues(
        data.data,
        data.split,
        layout=layout,
        normalisation=normalisation,
        outcome=outcome,
        tools=data.tools,
    )
    return with_slots(read, data.slots)


def terminal_page() -> TerminalPage:
    """Return an empty page with the width of the terminal."""
    from pytest_dstfuzz.report.page import TerminalPage  # noqa: PLC0415 - keeps help fast

    width = shutil.get_terminal_size((100, 24)).columns
    return TerminalPage(width, sys.stdout.encoding or "utf-8")


def print_page(page: TerminalPage) -> None:
    """Print a page, in colour if the terminal supports it."""
    for line in page.lines:
        code = _ANSI.get(line.style) if wants_colour() else None
        print(f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text)


def wants_colour() -> bool:
    """Return whether the output is a terminal and ``NO_COLOR`` is not set."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(line: str) -> None:
    """Print a line of progress and flush it."""
    print(line, flush=True)


class ProgressLine:
    """Progress of a command on the error stream.

    On a terminal, it rewrites one line. Otherwise it prints a line from time to time.
    """

    def __init__(self, what: str) -> None:
        #: The noun for the counted objects.
        self.what = what
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Show ``done`` of ``total`` if it is time for an update."""
        now = time.monotonic()
        if not self._terminal and now - self._last < _PAUSE:
            return
        self._last = now
        share = f" of {total:,} ({percent(done / total, 0)})" if total else ""
        text = f"{done:,}{share} {self.what}"
        print(f"\r{text}\x1b[K" if self._terminal else text, end="", file=sys.stderr)
        print(end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the line on the terminal."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class EstimateLine(ProgressLine):
    """Progress with an estimate of the time left, from the speed so far."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._plain = what
        #: Progress and time of the first call.
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show ``done`` of ``total`` and the estimated time left."""
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
