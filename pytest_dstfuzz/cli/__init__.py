"""Internal: the command ``dstfuzz``: accuracy, data sets, training and experiments.

Commands import their dependencies when they run, so that help and usage errors are fast.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, TextIO

from pytest_dstfuzz import __version__
from pytest_dstfuzz.cli import (
    calibrate,
    check_data,
    convert,
    doctor,
    fit_noise,
    freeze,
    regressions,
    relations,
    tools,
    trackers,
)
from pytest_dstfuzz.cli.command import Command
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import DstFuzzError, unknown_name
from pytest_dstfuzz.registry import Registry

#: Exit status of a `DstFuzzError`, such as a usage error.
EXIT_ERROR = 2
#: Exit status of a bug in this package, as in pytest.
EXIT_FAULT = 3
#: Exit status after Ctrl-C. By convention, it is 128 + the number of the signal.
EXIT_INTERRUPTED = 130
#: Errors of a disk that is full.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

_MODULES = (
    trackers,
    calibrate,
    check_data,
    convert,
    tools,
    fit_noise,
    relations,
    freeze,
    regressions,
    doctor,
)
#: Commands of the core, and those of wings and other packages through this entry point group.
COMMANDS: Final[Registry[Command]] = Registry(
    "command",
    "pytest_dstfuzz.commands",
    {one.name: one for module in _MODULES for one in module.COMMANDS},
    expects="a Command",
    fits=lambda found: isinstance(found, Command),
)
_EXAMPLES = """\
  dstfuzz evaluate --model trade                         accuracy on the shipped dialogues
  dstfuzz fetch multiwoz21                               real dialogues to test with
  pytest --dst-model=trade --dst-data=multiwoz21         the robustness test itself
Each command has its own --help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of the process, and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    status = 0
    # Python has no stream for an output that the shell has closed (`>&-`): nobody wants to read it.
    sys.stdout = sys.stdout or _null()
    sys.stderr = sys.stderr or _null()
    try:
        try:
            status = _run(words)
        finally:
            # Otherwise Python flushes at exit. If that fails, Python returns another status.
            sys.stdout.flush()
    except OSError as error:
        # Discard the rest, so that Python does not try to write it again at exit.
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return status  # It is no error if the reader of a pipe ends first.
        _complain(f"dstfuzz: error: cannot write the output: {error.strerror}")
        return EXIT_ERROR
    return status


def _run(words: Sequence[str]) -> int:
    """Run one command line. Raise an error only if the output cannot be written."""
    kept = "nothing was started"
    try:
        command = _command(words)
        kept = command.kept
        return command.run(words[1:])
    except DstFuzzError as error:
        _complain(f"dstfuzz: error: {error}")
        return EXIT_ERROR
    except KeyboardInterrupt:
        _complain(f"\ndstfuzz: interrupted; {kept}")
        return EXIT_INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) or getattr(error, "errno", None) in _FULL:
            raise
        _complain(
            f"{traceback.format_exc()}\n"
            "dstfuzz: this is a bug in dstfuzz. Please report it with the lines above and the "
            "output of `dstfuzz doctor`"
        )
        return EXIT_FAULT


def _complain(text: str) -> None:
    """Print an error. If the error stream is closed, only the exit status shows the error."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _null() -> TextIO:
    """Return a stream that discards its text. It stays open until the end of the process."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - a stream of a name of the system


def _discard(stream: TextIO) -> None:
    """Discard the rest of a stream of this process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _command(words: Sequence[str]) -> Command:
    """Return the command that the first word names. Handle ``--help`` and ``--version``."""
    if words and words[0] in COMMANDS.names:
        return COMMANDS.find(words[0])
    listed = "\n".join(f"  {name:<14} {_summary(name)}" for name in COMMANDS.names)
    parser = Parser(
        "dstfuzz",
        "Tools for robustness tests of dialogue systems. The tests themselves are run by pytest.\n"
        "\n"
        "commands:\n"
        f"{listed}",
        _EXAMPLES,
    )
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="one of the commands above")
    parser.option(
        "--version",
        action="version",
        version=f"dstfuzz {__version__}",
        help="show the version and exit",
    )
    name = parser.parse_all(words[:1]).command
    if name is None:
        parser.error(f"no command was given: choose one of {', '.join(COMMANDS.names)}")
    raise unknown_name("command", name, COMMANDS.names)


def _summary(name: str) -> str:
    """Return the summary of a command, or the error if its package cannot be loaded."""
    try:
        return COMMANDS.find(name).summary
    except DstFuzzError as error:
        return f"({error})"
