"""Internal: The command ``dstfuzz``: accuracy, data sets, training and experiments.

Commands import their dependencies when they run, so that help and usage errors are fast.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

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

#: A `DstFuzzError`, such as a usage error.
EXIT_ERROR = 2
#: A bug in this package, with the same code as in pytest.
EXIT_FAULT = 3
#: By convention, 128 + the number of the signal.
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
    kept = "nothing was started"
    try:
        command = _command(words)
        kept = command.kept
        status = command.run(words[1:])
        sys.stdout.flush()
    except DstFuzzError as error:
        print(f"dstfuzz: error: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print(f"\ndstfuzz: interrupted; {kept}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        return _end_output(error)
    except Exception:  # noqa: BLE001 - shown in full, with advice
        return _tell_bug()
    return status


def _end_output(error: OSError) -> int:
    """Discard the rest of the output if it cannot be written, and return the exit status."""
    full = error.errno in _FULL
    if not full and not isinstance(error, BrokenPipeError):
        return _tell_bug()
    if full:
        print(f"dstfuzz: error: cannot write the output: {error.strerror}", file=sys.stderr)
    # Otherwise Python complains when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # Without an error if the reader has closed the pipe.
    return EXIT_ERROR if full else 0


def _tell_bug() -> int:
    """Print the current exception with advice, and return the exit status."""
    traceback.print_exc()
    print(
        "\n"
        "dstfuzz: this is a bug in dstfuzz. Please report it with the lines above and the "
        "output of `dstfuzz doctor`",
        file=sys.stderr,
    )
    return EXIT_FAULT


def _command(words: Sequence[str]) -> Command:
    """Return the command named first. Handle ``--help`` and ``--version``."""
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
