"""Parsing of command lines: errors of one line, with the name that was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pytest_dstfuzz.config import option, parse_option
from pytest_dstfuzz.errors import UserError, nearest


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors instead of printing its usage and ending the process.

    Args:
        prog: the command as the user types it.
        description: what it does.
        examples: command lines, one a line.
    """

    def __init__(self, prog: str, description: str, examples: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._flags: list[str] = []

    def error(self, message: str) -> NoReturn:
        """Raise ``message`` as a mistake of the user."""
        raise UserError(f"{message} (see {self.prog} --help)")

    def option(self, flag: str, **how: Any) -> None:
        """Add an option; as `add_argument`, but it is also a name to guess."""
        self._flags.append(flag)
        self.add_argument(flag, **how)

    def shared_option(self, name: str, *, required: bool = False) -> None:
        """Add an option of the table that pytest shares: the same name without ``dst-``."""
        item = option(name)
        flag = f"--{item.flag}"
        self.option(
            flag,
            dest=name,
            metavar=item.metavar,
            required=required,
            help=item.help.replace("%", "%%"),
            type=_shared_type(name, flag),
        )

    def parse_all(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse ``arguments``.

        Raises:
            UserError: one of them is unknown, missing, or has a value it does not take.
        """
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            flag = unknown[0].partition("=")[0]
            guess = nearest(flag, self._flags) if flag.startswith("-") else None
            hint = f"; did you mean {guess}?" if guess else ""
            self.error(f"unknown argument {flag!r}{hint}")
        return namespace


def _shared_type(name: str, flag: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        return parse_option(name, text, flag)

    return parse
