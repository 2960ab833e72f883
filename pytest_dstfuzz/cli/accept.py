"""``dstfuzz accept``: keep a known violation from failing the build."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pytest_dstfuzz.cli.corpora import add_folder, find_ids, read_corpora
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.printable import printable

SUMMARY = "keep a remembered violation from failing the build, for a reason"
KEPT = "the regressions are as they were"

_EXAMPLES = """\
  dstfuzz accept 3f2a9c0b1d --reason 'nobody types this to our bot'"""


def run(arguments: Sequence[str]) -> int:
    """Mark the violation and print where.

    Raises:
        UserError: there is no such violation, no reason, or the file cannot be written.
    """
    parser = Parser("dstfuzz accept", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("id", metavar="ID", help="of the violation, or its start")
    parser.option("--reason", metavar="TEXT", required=True, help="why it may stay")
    add_folder(parser)
    given = parser.parse_all(arguments)
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.regressions.corpus import accepted, update_corpus  # noqa: PLC0415

    for path, names in find_ids(read_corpora(given.regressions), [given.id]).items():
        update_corpus(path, partial(accepted, name=names[0], reason=given.reason))
        print(printable(f"accepted {names[0]} in {path}"))
    return 0
