"""The tables that are committed have the columns that the code writes today."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from pytest_dstfuzz.papers import rq1, rq2, rq3

EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = {
    "rq1": rq1.COLUMNS,
    "rq2": rq2.COLUMNS,
    "rq3": rq3.COLUMNS,
}
MADE = sorted(file for name in COLUMNS for file in EXAMPLES.glob(f"{name}/**/{name}.csv"))


def test_every_experiment_is_explained() -> None:
    for name in COLUMNS:
        text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
        assert f"dstfuzz experiment {name} --model trade" in text


@pytest.mark.parametrize("file", MADE, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_columns_and_command(file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    assert tuple(head) == tuple(COLUMNS[file.stem])
    assert rows
    assert all(len(row) == len(head) for row in rows)
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    assert f"`dstfuzz experiment {file.stem} --model " in text
    # No path of the machine that made it.
    assert not re.search(r"[ =:,]/", text.splitlines()[2])
