"""``dstfuzz promote``: a plain pytest test of a remembered violation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.cli.corpora import add_folder, find_ids, read_corpora
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from pytest_dstfuzz.regressions.regression import Regression

SUMMARY = "write a plain pytest test of a remembered violation"
KEPT = "files that were there are as they were"

_EXAMPLES = """\
  dstfuzz promote 3f2a9c0b1d                             prints the test
  dstfuzz promote 3f2a 77aa -o tests/test_students.py    adds two tests to a file, or makes it"""


def run(arguments: Sequence[str]) -> int:
    """Write the tests, to the terminal where no file is named.

    Raises:
        UserError: there is no such violation, the file has its test already, is no Python or
            cannot be written.
    """
    parser = Parser("dstfuzz promote", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("ids", metavar="ID", nargs="+", help="of a violation, or its start")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="add it to this file, or make the file"
    )
    add_folder(parser)
    given = parser.parse_all(arguments)
    # The lines of a corpus, and of other JSON Lines, are Python too.
    if given.output is not None and given.output.suffix != ".py":
        raise UserError(f"{given.output}: it is no Python file: the name must end in .py")
    corpora = read_corpora(given.regressions)
    found = find_ids(corpora, given.ids)
    # One violation may be remembered of several data sets; its test is the same.
    chosen = {name: corpora[path][name] for path, names in found.items() for name in names}
    if given.output is None:
        # Imported late: help and mistakes in the command line should not wait for numpy.
        from pytest_dstfuzz.regressions.promote import promoted_all  # noqa: PLC0415

        sys.stdout.write(promoted_all(chosen.values()))
        return 0
    _add(given.output, list(chosen.values()))
    print(printable(str(given.output)))
    return 0


def _add(output: Path, chosen: Sequence[Regression]) -> None:
    """Add tests to a file that other commands may be adding to as well."""
    # Imported late, as above.
    from pytest_dstfuzz.files import locked, write_text  # noqa: PLC0415
    from pytest_dstfuzz.regressions.promote import promoted_all  # noqa: PLC0415

    with locked(output):
        try:
            existing = output.read_text(encoding="utf-8") if output.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {output}: {error}") from None
        try:
            text = promoted_all(chosen, existing)
        except UserError as error:
            raise UserError(f"{output}: {error}") from None
        write_text(output, text)
