"""The formats of a report, chosen by file suffix: JSON, HTML page, Markdown summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html import check_installed, write_html
from pytest_dstfuzz.report.json_report import write_report
from pytest_dstfuzz.report.view import View

__all__ = ["check_forms", "write_form"]


def check_forms(paths: Iterable[str]) -> None:
    """Check before a run that the packages for an HTML page are installed.

    Raises:
        UserError: a path has the suffix of an HTML page, and a package is missing.
    """
    if any(Path(path).suffix.lower() == ".html" for path in paths):
        check_installed()


def write_form(path: Path, report: Mapping[str, Any], views: Mapping[str, View]) -> None:
    """Write a report in the format of the path's suffix.

    ``views`` are the views of the report, by tracker name.
    """
    form = path.suffix.lower()
    if form == ".html":
        write_html(path, views)
    elif form == ".md":
        write_text(path, markdown_text(views))
    else:
        write_report(path, report)
