"""The HTML report: one file that opens anywhere, made from the JSON report.

Importing this package imports neither jinja2 nor matplotlib; making a page does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.files import write_text

_NEEDED = ("jinja2", "matplotlib")


def check_installed() -> None:
    """Find out before a long run whether its page can be made.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    for module in _NEEDED:
        with needs_extra("the HTML report", "report", module):
            importlib.import_module(module)


def write_html(path: Path, report: Mapping[str, Any]) -> None:
    """Write the page of a report; a file that is there already survives any failure.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
        DataError: something in the report is not as its schema has it.
        UserError: the path cannot be written.
    """
    check_installed()
    from pytest_dstfuzz.report.html.page import html_text  # noqa: PLC0415 - needs jinja2

    write_text(path, html_text(report))
