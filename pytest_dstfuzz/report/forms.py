"""The forms of a report, by the suffix of its file: JSON, a page, a summary in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config.parsers import REPORT_FORMS
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html import check_installed, write_html
from pytest_dstfuzz.report.json_report import write_report

__all__ = ["check_forms", "write_form"]


def write_markdown(path: Path, report: Mapping[str, Any]) -> None:
    """Write the summary of a report."""
    write_text(path, markdown_text(report))


_WRITERS: Final[Mapping[str, Callable[[Path, Mapping[str, Any]], None]]] = dict(
    zip(REPORT_FORMS, (write_report, write_html, write_markdown), strict=True)
)


def check_forms(paths: Iterable[str]) -> None:
    """Refuse a page before a run where the packages are missing that make it.

    Raises:
        UserError: they are.
    """
    if any(Path(path).suffix.lower() == ".html" for path in paths):
        check_installed()


def write_form(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report in the form that the suffix of the path says."""
    _WRITERS[path.suffix.lower()](path, report)
