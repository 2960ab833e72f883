"""The ``audit`` command, which lets people judge violations."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from pytest_dstfuzz.cli.command import Command, wants_colour
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable

_DRAW = ("violations", "per_dialogue", "decoys", "fine_decoys", "seed", "relation")


def _audit_options(parser: Parser) -> None:
    parser.add_argument(
        "report", type=Path, metavar="REPORT", help="JSON report, as written by pytest --dst-report"
    )
    parser.value(
        "--violations", integer(1), "N", help="maximum number of violations to judge (default: 200)"
    )
    parser.value(
        "--per-dialogue",
        integer(1),
        "N",
        help="maximum number of violations of one dialogue (default: 1)",
    )
    parser.value(
        "--decoys",
        integer(0),
        "N",
        help="number of decoys among the violations. A decoy is a variant whose meaning was "
        "changed on purpose, to test the judge (default: 0)",
    )
    parser.value(
        "--fine-decoys",
        integer(0),
        "N",
        help="number of additional decoys with edits as small as a slip (default: 0)",
    )
    parser.value("--seed", integer(0), "N", help="seed of the sample (default: 0)")
    parser.option(
        "--relation",
        metavar="NAME",
        help="relation to judge, if the report has several",
    )
    parser.option(
        "--judge", metavar="NAME", default="judge", help="name of the judge (default: judge)"
    )
    parser.option(
        "--sheet",
        type=Path,
        metavar="PATH",
        help="write a sheet for the judgements, .csv or .jsonl",
    )
    parser.option("--html", type=Path, metavar="PATH", help="write an HTML page for the judgements")
    parser.option(
        "--judgements",
        type=Path,
        metavar="PATH",
        help="read the judgements from a filled sheet, or from the file that the page exports",
    )
    parser.option(
        "--export",
        type=Path,
        metavar="PATH",
        help="write all verdicts, and which rows are decoys, without the dialogues",
    )


def _audit(given: Namespace) -> None:
    if not given.judge.strip():
        raise UserError("--judge needs a name (see dstfuzz audit --help)")
    # Import late: help and errors in the command line should not wait for numpy.
    from pytest_dstfuzz.audit.judging import read_judgements, write_sheet  # noqa: PLC0415
    from pytest_dstfuzz.audit.record import audit_path, open_audit  # noqa: PLC0415
    from pytest_dstfuzz.files import check_apart  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report, report_turns  # noqa: PLC0415

    draw = {name: value for name in _DRAW if (value := getattr(given, name)) is not None}
    report = read_report(given.report)
    if report["settings"].get("redact"):
        raise UserError(
            f"{given.report} was written with --dst-redact, so the dialogues cannot be read: "
            "write a report without it"
        )
    turns = report_turns(report)
    record = audit_path(given.report, turns, given.relation or "")
    written = {"--sheet": given.sheet, "--html": given.html, "--export": given.export}
    check_apart(
        {**written, "the file of the audit": record},
        {"the report": given.report, "--judgements": given.judgements},
    )
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
    if given.export is not None:
        from pytest_dstfuzz.audit.judging import write_export  # noqa: PLC0415 - as above

        write_export(given.export, audit)
        print(printable(str(given.export)))
    elsewhere = given.judgements is not None or any(written.values())
    if not elsewhere:
        from pytest_dstfuzz.audit.judging import judge_rows, key_reader  # noqa: PLC0415 - as above

        keys = key_reader(sys.stdin)
        judge_rows(audit, given.judge, sys.stdout, keys, colour=wants_colour())
    if not elsewhere or given.judgements is not None:
        print(printable("\n".join(audit.lines(given.judge))))


AUDIT = Command(
    "audit",
    "let people judge whether violations keep the user's meaning, and compute precision and "
    "agreement",
    "every answer is saved, and the same command continues",
    """\
  dstfuzz audit report.json                              judge 200 violations, one key each
  dstfuzz audit report.json --decoys 40 --judge anna     changes of meaning hidden among them
  dstfuzz audit report.json --judge ben                  a second judge, in another order
  dstfuzz audit report.json --judge ben --sheet ben.csv  to judge elsewhere
  dstfuzz audit report.json --judge ben --judgements ben.csv
  dstfuzz audit report.json --export judged.csv          for others to check, without dialogues
Verdicts and figures are written to report.audit.json, beside the report. If the report has several
relations, each has its own file, such as report.value-swap.audit.json.""",
    _audit_options,
    _audit,
)
