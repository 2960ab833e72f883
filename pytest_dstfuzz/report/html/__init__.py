"""The HTML report: one self-contained file, made from the JSON report.

Importing this package does not import jinja2. `write_html` imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.files import write_lines

if TYPE_CHECKING:
    from pytest_dstfuzz.report.view import View

__all__ = ["check_installed", "write_html"]


def check_installed() -> None:
    """Check before a long run that the packages for the page are installed."""
    with needs_extra("the HTML report", "report", "jinja2"):
        importlib.import_module("jinja2")


def write_html(path: Path, views: Mapping[str, View]) -> None:
    """Write the page of a report. An existing file stays unchanged if this fails.

    ``views`` maps tracker names to views. If there are several, each gets its own page
    (``NAME.1.html``), and the page at ``path`` links to these pages.
    """
    check_installed()
    from pytest_dstfuzz.report.html.page import html_pieces, models_page  # noqa: PLC0415 - jinja2

    if len(views) == 1:
        write_lines(path, html_pieces(*views.values()))
        return
    pages = [path.with_name(f"{path.stem}.{number}.html") for number in range(1, len(views) + 1)]
    for page, one in zip(pages, views.values(), strict=True):
        write_lines(page, html_pieces(one))
    links = [page.name for page in pages]
    write_lines(path, models_page(dict(zip(links, views.values(), strict=True))))
