"""The HTML report: one file that opens anywhere, made from the JSON report.

Importing this package does not import jinja2; making a page does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.files import write_lines


def check_installed() -> None:
    """Find out before a long run whether its page can be made."""
    with needs_extra("the HTML report", "report", "jinja2"):
        importlib.import_module("jinja2")


def write_html(path: Path, report: Mapping[str, Any]) -> None:
    """Write the page of a report; a file that is there already survives any failure."""
    check_installed()
    from pytest_dstfuzz.report.html.page import html_pieces  # noqa: PLC0415 - needs jinja2

    write_lines(path, html_pieces(report))
