"""Figures as cells."""

from __future__ import annotations

import math

from pytest_dstfuzz.research import cells
from pytest_dstfuzz.research.resampling import Rate


def test_figures_and_their_intervals() -> None:
    rate = Rate(0.1234, (0.05, 0.2))
    assert cells.number(rate, 2) == "0.12 [0.05, 0.20]"
    assert cells.percent(rate) == "12.3 % [5.0, 20.0]"
    assert cells.csv_cells(Rate(1 / 3, (0.25, math.inf))) == ["0.3333", "0.25", "inf"]
    assert cells.bare_percent(0.5, 0) == "50 %"


def test_what_is_not_known() -> None:
    assert cells.number(Rate(2.0)) == "2.0"
    assert cells.percent(Rate(0.5)) == "50.0 %"
    assert (
        cells.number(Rate(None)) == cells.percent(Rate(None)) == cells.bare_percent(None) == "n/a"
    )
    assert cells.csv_cells(None) == cells.csv_cells(Rate(None)) == ["", "", ""]


def test_tables() -> None:
    assert cells.markdown_table(["a", "b"], [["1", "2"]]) == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
    ]
    assert cells.csv_text(["a", "b"], [[1, "x, y"]]) == 'a,b\n1,"x, y"\n'
