"""Figures as cells of Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_dstfuzz.papers.resampling import Rate

#: Name of a column -> its cell of a row.
Columns = Mapping[str, Callable[[Any], object]]

#: What is left open.
NONE = "n/a"


def number(rate: Rate, decimals: int = 1, unit: str = "") -> str:
    """Return a figure and its interval: ``26.9 [20.1, 33.0]``."""
    if rate.value is None:
        return NONE
    text = f"{rate.value:.{decimals}f}{unit}"
    if rate.interval is None:
        return text
    low, high = rate.interval
    return f"{text} [{low:.{decimals}f}, {high:.{decimals}f}]"


def rate_text(rate: Rate, decimals: int = 1) -> str:
    """Return a share and its interval: ``97.7 % [97.4, 98.1]``."""
    return number(rate.scaled(100), decimals, " %")


def share(value: float | None, decimals: int = 1) -> str:
    """Return a share without its interval."""
    return rate_text(Rate(value), decimals)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def published(text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the section of the figures that others published, as the lines of Markdown."""
    return ["", "## Published", "", text, "", *markdown_table(head, rows)]


def rate_columns(name: str, rate: Callable[[Any], Rate | None]) -> Columns:
    """Return the columns of a rate and the ends of its interval, empty where there is none."""

    def cell(place: int, row: Any) -> str:
        value, interval = rate(row) or Rate(None)
        return csv_number((value, *(interval or (None, None)))[place])

    return {f"{name}{end}": partial(cell, place) for place, end in enumerate(("", "_low", "_high"))}


def csv_number(value: float | None, decimals: int = 4) -> str:
    """Return a rounded number, empty where there is none."""
    return "" if value is None else str(round(value, decimals))


def csv_text(columns: Columns, rows: Iterable[object]) -> str:
    """Return the text of a CSV file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(row) for cell in columns.values()] for row in rows)
    return buffer.getvalue()


def yes_no(value: bool) -> str:
    """Return a switch as a cell."""
    return "yes" if value else "no"
