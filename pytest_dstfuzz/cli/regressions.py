"""``dstfuzz regressions``: what is remembered, and what became of it."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dstfuzz.cli.corpora import add_folder, find_ids, read_corpora
from pytest_dstfuzz.config.command_line import Parser

if TYPE_CHECKING:
    from pytest_dstfuzz.regressions.regression import Regression
    from pytest_dstfuzz.report.page import TerminalPage

SUMMARY = "list the remembered violations, or show some of them"
KEPT = "nothing is written"

_EXAMPLES = """\
  dstfuzz regressions                                    all of them, a line each
  dstfuzz regressions --status open                      those that fail the build
  dstfuzz regressions 3f2a                               what was said at one, and what changed"""
_STATES = ("open", "accepted")


def run(arguments: Sequence[str]) -> int:
    """Print the list, or what is asked for.

    Raises:
        UserError: there is no such violation, or a file is broken.
    """
    parser = Parser("dstfuzz regressions", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("ids", metavar="ID", nargs="*", help="of a violation, or its start")
    parser.option("--status", choices=_STATES, help="only those that are open, or accepted")
    add_folder(parser)
    for line in _lines(parser.parse_all(arguments)):
        print(line)
    return 0


def _lines(given: Namespace) -> list[str]:
    # Imported late: help and mistakes in the command line should not wait for it.
    from pytest_dstfuzz.report.page import TerminalPage  # noqa: PLC0415

    page = TerminalPage(shutil.get_terminal_size((100, 24)).columns, sys.stdout.encoding or "utf-8")
    corpora = read_corpora(given.regressions)
    wanted = (
        find_ids(corpora, given.ids)
        if given.ids
        else {path: list(corpora[path]) for path in corpora}
    )
    for path, names in wanted.items():
        entries = [corpora[path][name] for name in names]
        shown = [entry for entry in entries if given.status in (None, entry.status)]
        page.gap()
        accepted = sum(entry.status == "accepted" for entry in entries)
        page.line(f"{path}: {len(entries) - accepted} open, {accepted} accepted")
        for entry in shown:
            _show(page, entry, whole=bool(given.ids))
    return [line.text for line in page.lines]


def _show(page: TerminalPage, entry: Regression, *, whole: bool) -> None:
    if whole:
        page.gap()
    page.field(f"{entry.id}  {entry.status:<8}  ", f"{entry.turn}  {', '.join(entry.edits)}")
    for change in entry.changed:
        page.field(" " * 22, str(change))
    if entry.reason:
        page.field(" " * 22, f"accepted: {entry.reason}")
    for said in entry.exchanges if whole else ():
        if said.system:
            page.field("  system:  ", said.system)
        page.field("  user:    ", said.user)
        if said.seen != said.user:
            page.field("  seen as: ", said.seen)
