"""``dstfuzz promote``: a plain pytest test of a remembered violation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.cli.corpora import add_folder, find_ids, read_corpora
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.experiments.arguments import Parser

SUMMARY = "write a plain pytest test of a remembered violation"
KEPT = "files that were there are as they were"

_EXAMPLES = """\
  dstfuzz promote 3f2a9c0b1d                             prints the test
  dstfuzz promote 3f2a9c0b1d -o tests/test_students.py   writes it to a new file"""


def run(arguments: Sequence[str]) -> int:
    """Write the test, to the terminal where no file is named.

    Raises:
        UserError: there is no such violation, the file is there already or cannot be written.
    """
    parser = Parser("dstfuzz promote", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("id", metavar="ID", help="of the violation, or its start")
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help="write it to a new file")
    add_folder(parser)
    given = parser.parse_all(arguments)
    if given.output is not None and given.output.exists():
        raise UserError(f"{given.output} is there already: a test is written to a new file")
    corpora = read_corpora(given.regressions)
    path, names = next(iter(find_ids(corpora, [given.id]).items()))
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.memory.promote import promoted  # noqa: PLC0415
    from pytest_dstfuzz.report.files import write_text  # noqa: PLC0415

    text = promoted(corpora[path][names[0]])
    if given.output is None:
        sys.stdout.write(text)
    else:
        write_text(given.output, text)
        print(given.output)
    return 0
