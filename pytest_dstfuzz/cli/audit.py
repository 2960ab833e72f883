"""``dstfuzz audit``: let people judge whether the violations of a report keep the meaning."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.config.command_line import Parser, whole_number
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from pytest_dstfuzz.audit.record import Audit

SUMMARY = "judge whether violations keep the meaning; precision and agreement"
KEPT = "every answer is kept, and the same command goes on from there"

_DRAW = ("violations", "per_dialogue", "decoys", "seed")
_EXAMPLES = """\
  dstfuzz audit report.json                              judge 200 violations, a key each
  dstfuzz audit report.json --decoys 40 --judge anna     changes of meaning hidden among them
  dstfuzz audit report.json --judge ben                  a second judge: the same, in another order
  dstfuzz audit report.json --judge ben --sheet ben.csv  to fill in elsewhere
  dstfuzz audit report.json --judge ben --judgements ben.csv
Verdicts and figures are written to report.audit.json, beside the report."""


def run(arguments: Sequence[str]) -> int:
    """Draw the sample, or go on with it, and do with it what is asked for."""
    parser = Parser("dstfuzz audit", f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", _EXAMPLES)
    parser.add_argument("report", type=Path, metavar="REPORT", help="the file of --dst-report")
    number = whole_number
    parser.value("--violations", number(1), "N", help="to judge, at most (default: 200)")
    parser.value(
        "--per-dialogue", number(1), "N", help="violations of one dialogue, at most (default: 1)"
    )
    parser.value("--decoys", number(0), "N", help="changes of meaning among them (default: 0)")
    parser.value("--seed", number(0), "N", help="seed of the sample (default: 0)")
    parser.option("--judge", metavar="NAME", default="judge", help="who judges (default: judge)")
    parser.option("--sheet", type=Path, metavar="PATH", help="write a sheet, .csv or .jsonl")
    parser.option("--html", type=Path, metavar="PATH", help="write a page to judge in")
    parser.option(
        "--judgements", type=Path, metavar="PATH", help="take in a sheet, or what the page exported"
    )
    given = parser.parse_all(arguments)
    if not given.judge.strip():
        parser.error("--judge needs a name")
    _do(given)
    return 0


def _do(given: Namespace) -> None:
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.audit.record import open_audit  # noqa: PLC0415
    from pytest_dstfuzz.audit.sheets import read_judgements, write_sheet  # noqa: PLC0415
    from pytest_dstfuzz.files import check_apart  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report, report_turns  # noqa: PLC0415

    record = given.report.with_suffix(".audit.json")
    named = {"--sheet": given.sheet, "--html": given.html}
    read = {"the report": given.report, "--judgements": given.judgements}
    check_apart(
        {name: path for name, path in named.items() if path is not None}
        | {"the file of the audit": record},
        {name: path for name, path in read.items() if path is not None},
    )
    draw = {name: value for name in _DRAW if (value := getattr(given, name)) is not None}
    report = read_report(given.report)
    if report["settings"].get("redact"):
        raise UserError(f"{given.report} was written with --dst-redact: there is nothing to read")
    turns = report_turns(report)
    audit = open_audit(record, turns, draw)
    audit.save()
    sample = audit.sample
    decoys = len(sample.rows) - sample.violations
    hidden = f" and {decoys} decoys" if decoys else ""
    said = f"{sample.violations} violations{hidden}, seed {sample.draw.seed}; {audit.path}"
    print(printable(said))
    if given.judgements is not None:
        audit.say(given.judge, read_judgements(given.judgements, sample))
    if given.sheet is not None:
        write_sheet(given.sheet, sample, given.judge)
        print(printable(str(given.sheet)))
    if given.html is not None:
        from pytest_dstfuzz.audit.page import write_page  # noqa: PLC0415 - needs jinja2

        write_page(given.html, audit, given.judge)
        print(printable(str(given.html)))
    elsewhere = (given.judgements, given.sheet, given.html) != (None, None, None)
    if not elsewhere:
        _ask(audit, given.judge)
    if not elsewhere or given.judgements is not None:
        print(printable("\n".join(audit.lines(given.judge))))


def _ask(audit: Audit, judge: str) -> None:
    from pytest_dstfuzz.audit.session import judge_rows, key_reader  # noqa: PLC0415 - as above

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    judge_rows(audit, judge, sys.stdout, key_reader(sys.stdin), colour=colour)
