"""``dstfuzz report``: pages from a JSON report that a run left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.printable import printable

SUMMARY = "a page, or a summary in Markdown, from a JSON report"
KEPT = "files that were there are as they were"

_EXAMPLES = """\
  pytest --dst-model=trade --dst-report=report.json      writes the JSON report
  dstfuzz report report.json --html report.html          a page that opens anywhere
  dstfuzz report report.json --markdown summary.md       as in a job summary"""


def run(arguments: Sequence[str]) -> int:
    """Write what is asked for and print where it is."""
    parser = Parser("dstfuzz report", f"Make {SUMMARY}.", _EXAMPLES)
    parser.add_argument("report", metavar="REPORT", help="the file of --dst-report")
    parser.option("--html", metavar="PATH", help="write the page to this file")
    parser.option("--markdown", metavar="PATH", help="write the summary to this file")
    options = parser.parse_all(arguments)
    if options.html is None and options.markdown is None:
        parser.error("nothing to write: give --html PATH, --markdown PATH, or both")
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.files import check_apart, write_text  # noqa: PLC0415
    from pytest_dstfuzz.report.github import markdown_text  # noqa: PLC0415
    from pytest_dstfuzz.report.html import check_installed, write_html  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report  # noqa: PLC0415

    if options.html is not None:
        check_installed()
    named = {"--html": options.html, "--markdown": options.markdown}
    written = {name: Path(path) for name, path in named.items() if path is not None}
    check_apart(written, {"the report": Path(options.report)})
    report = read_report(Path(options.report))
    if options.html is not None:
        write_html(Path(options.html), report)
        print(printable(options.html))
    if options.markdown is not None:
        write_text(Path(options.markdown), markdown_text(report))
        print(printable(options.markdown))
    return 0
