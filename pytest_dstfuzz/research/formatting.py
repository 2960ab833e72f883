"""Figures as cells of Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from pytest_dstfuzz.research.resampling import Rate

#: What is left open.
NONE = "n/a"


def number(rate: Rate, decimals: int = 1) -> str:
    """Return a figure and its interval: ``26.9 [20.1, 33.0]``."""
    if rate.value is None:
        return NONE
    if rate.interval is None:
        return f"{rate.value:.{decimals}f}"
    low, high = rate.interval
    return f"{rate.value:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"


def percent(rate: Rate, decimals: int = 1) -> str:
    """Return a share and its interval: ``97.7 % [97.4, 98.1]``."""
    if rate.value is None:
        return NONE
    text = f"{100 * rate.value:.{decimals}f} %"
    if rate.interval is None:
        return text
    low, high = rate.interval
    return f"{text} [{100 * low:.{decimals}f}, {100 * high:.{decimals}f}]"


def bare_percent(value: float | None, decimals: int = 1) -> str:
    """Return a share without its interval."""
    return NONE if value is None else f"{100 * value:.{decimals}f} %"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def csv_columns(name: str) -> list[str]:
    """Return the names of the columns of a rate."""
    return [name, f"{name}_low", f"{name}_high"]


def csv_cells(rate: Rate | None, decimals: int = 4) -> list[str]:
    """Return the cells of a rate, empty where there is none."""
    value, interval = rate or Rate(None)
    ends = interval or (None, None)
    return [csv_number(item, decimals) for item in (value, *ends)]


def csv_number(value: float | None, decimals: int = 4) -> str:
    """Return a rounded number, empty where there is none."""
    return "" if value is None else str(round(value, decimals))


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the text of a CSV file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return buffer.getvalue()
