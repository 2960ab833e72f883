"""The command that makes pages of a report: report."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from pytest_dstfuzz.cli.command import Command
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable


def _report_options(parser: Parser) -> None:
    parser.add_argument("report", type=Path, metavar="REPORT", help="the file of --dst-report")
    parser.option("--html", type=Path, metavar="PATH", help="write the page to this file")
    parser.option("--markdown", type=Path, metavar="PATH", help="write the summary to this file")


def _report(given: Namespace) -> None:
    if given.html is None and given.markdown is None:
        raise UserError(
            "nothing to write: give --html PATH, --markdown PATH, or both (see dstfuzz report "
            "--help)"
        )
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.files import check_apart, write_text  # noqa: PLC0415
    from pytest_dstfuzz.report.github import markdown_text  # noqa: PLC0415
    from pytest_dstfuzz.report.html import check_installed, write_html  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report  # noqa: PLC0415
    from pytest_dstfuzz.report.view import views_of  # noqa: PLC0415

    if given.html is not None:
        check_installed()
    written = {"--html": given.html, "--markdown": given.markdown}
    check_apart(written, {"the report": given.report})
    views = views_of(read_report(given.report))
    if given.html is not None:
        write_html(given.html, views)
        print(printable(str(given.html)))
    if given.markdown is not None:
        write_text(given.markdown, markdown_text(views))
        print(printable(str(given.markdown)))


COMMANDS = (
    Command(
        "report",
        "a page, or a summary in Markdown, from a JSON report",
        "files that were there are as they were",
        """\
  pytest --dst-model=trade --dst-report=report.json      writes the JSON report
  dstfuzz report report.json --html report.html          a page that opens anywhere
  dstfuzz report report.json --markdown summary.md       as in a job summary""",
        _report_options,
        _report,
        about="Make a page, or a summary in Markdown, from a JSON report.",
    ),
)
