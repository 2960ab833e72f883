"""Figures as formatting."""

from __future__ import annotations

import math

from pytest_dstfuzz.papers import formatting
from pytest_dstfuzz.papers.formatting import Rate


def _cells(rate: Rate | None) -> list[object]:
    columns = formatting.rate_columns("rate", lambda row: row)
    assert list(columns) == ["rate", "rate_low", "rate_high"]
    return [cell(rate) for cell in columns.values()]


def test_figures_and_their_intervals() -> None:
    rate = Rate(0.1234, (0.05, 0.2))
    assert formatting.number(rate, 2) == "0.12 [0.05, 0.20]"
    assert formatting.rate_text(rate) == "12.3 % [5.0, 20.0]"
    assert _cells(Rate(1 / 3, (0.25, math.inf))) == ["0.3333", "0.25", "inf"]
    assert formatting.share(0.5, 0) == "50 %"


def test_what_is_not_known() -> None:
    assert formatting.number(Rate(2.0)) == "2.0"
    assert formatting.rate_text(Rate(0.5)) == "50.0 %"
    assert (
        formatting.number(Rate(None))
        == formatting.rate_text(Rate(None))
        == formatting.share(None)
        == "n/a"
    )
    assert _cells(None) == _cells(Rate(None)) == ["", "", ""]


def test_tables() -> None:
    assert formatting.markdown_table(["a", "b"], [["1", "2"]]) == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
    ]
    assert formatting.csv_text({"a": min, "b": max}, [[1, 2], [3, 4]]) == "a,b\n1,2\n3,4\n"
