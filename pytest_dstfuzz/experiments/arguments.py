"""Command lines of experiments: the shared options, and errors of one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pytest_dstfuzz.config import option, parse_option
from pytest_dstfuzz.errors import UserError


class ExperimentParser(argparse.ArgumentParser):
    """A parser whose mistakes are errors of the user, for the command to print.

    Args:
        name: of the experiment, as the user types it.
        description: what it does.
    """

    def __init__(self, name: str, description: str) -> None:
        super().__init__(
            prog=f"dstfuzz experiment {name}",
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Raise ``message``."""
        raise UserError(f"{message} (see {self.prog} --help)")

    def value(
        self, flag: str, parse: Callable[[str], Any], metavar: str, what: str, **how: Any
    ) -> None:
        """Add an option of this experiment alone; a ``ValueError`` of ``parse`` is shown."""

        def parsed(text: str) -> Any:
            try:
                return parse(text)
            except ValueError as error:
                raise UserError(f"{flag}: {text!r} {error}") from None

        self.add_argument(flag, type=parsed, metavar=metavar, help=what.replace("%", "%%"), **how)

    def shared(self, *names: str, required: Sequence[str] = ()) -> None:
        """Add options of the table that pytest shares, the same name without ``dst-``."""
        for name in names:
            item = option(name)
            self.add_argument(
                f"--{item.flag}",
                dest=name,
                type=_shared_type(name, f"--{item.flag}"),
                required=name in required,
                metavar=item.metavar,
                help=item.help.replace("%", "%%"),
            )


def whole_number(low: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least ``low``."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise ValueError(f"must be a whole number of at least {low}")
        return int(text)

    return parse


def _shared_type(name: str, flag: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        return parse_option(name, text, flag)

    return parse
