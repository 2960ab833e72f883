"""``dstfuzz retire``: let go of violations that are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pytest_dstfuzz.cli.corpora import add_folder, find_ids, read_corpora
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.printable import printable

SUMMARY = "let go of remembered violations, those that are fixed"
KEPT = "those named before are retired, the others are as they were"

_EXAMPLES = """\
  dstfuzz retire 3f2a9c0b1d 77aa01c2de                   as pytest names those that are fixed"""


def run(arguments: Sequence[str]) -> int:
    """Take the violations out of their files and print which.

    Raises:
        UserError: there is no such violation, or a file cannot be written.
    """
    parser = Parser("dstfuzz retire", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("ids", metavar="ID", nargs="+", help="of a violation, or its start")
    add_folder(parser)
    given = parser.parse_all(arguments)
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.regressions.corpus import update_corpus, without  # noqa: PLC0415

    for path, names in find_ids(read_corpora(given.regressions), given.ids).items():
        update_corpus(path, partial(without, names=names))
        for name in names:
            print(printable(f"retired {name} from {path}"))
    return 0
