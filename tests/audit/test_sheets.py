"""Sheets as spreadsheets read them, and as they come back."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.audit.judging import read_judgements, write_sheet
from pytest_dstfuzz.audit.sample import Draw, Sample, draw_sample
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import UserError

ODD = st.text(st.sampled_from("=+-@\t\r\n'\",;\x1b a\u2028é"), max_size=6)


def sample_with(turns: tuple[TurnResult, ...], text: str) -> Sample:
    """Return a sample whose texts and values begin with one text."""
    sample = draw_sample(turns, Draw(violations=4, per_dialogue=1, decoys=0, seed=0))
    rows = tuple(
        replace(
            row,
            clean=text + row.clean,
            system=text + row.system,
            changes=tuple(text + change for change in row.changes),
            earlier=tuple(
                replace(turn, system=text, user=text + turn.user) for turn in row.earlier
            ),
            edits=(),
        )
        for row in sample.rows
    )
    return replace(sample, rows=rows)


@given(text=ODD)
def test_no_cell_is_computed_and_every_judgement_comes_back(
    tmp_path_factory: pytest.TempPathFactory, turns: tuple[TurnResult, ...], text: str
) -> None:
    sheet = tmp_path_factory.mktemp("sheet") / "sheet.csv"
    sample = sample_with(turns, text)
    write_sheet(sheet, sample, "anna")
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert [row["id"] for row in rows] == [row.id for row in sample.order("anna")]
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
            assert "\r" not in cell
    # As a spreadsheet writes it again, with its own line ends.
    filled = io.StringIO()
    writer = csv.DictWriter(filled, list(rows[0]), dialect="excel")
    writer.writeheader()
    writer.writerows({**row, "verdict": "keeps"} for row in rows)
    sheet.write_bytes(filled.getvalue().encode("utf-8"))
    judged = read_judgements(sheet, sample)
    assert judged == {row.id: "keeps" for row in sample.rows}


def test_a_marked_verdict_is_read_without_its_mark(
    tmp_path: Path, turns: tuple[TurnResult, ...]
) -> None:
    sample = sample_with(turns, "")
    sheet = tmp_path / "sheet.csv"
    name = sample.rows[0].id
    sheet.write_text(f"id,verdict\n{name},'-keeps\n", encoding="utf-8")
    assert read_judgements(sheet, sample) == {name: "-keeps"}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_sheet_that_was_filled_in_is_not_written_over(
    tmp_path: Path, turns: tuple[TurnResult, ...], suffix: str
) -> None:
    sample, sheet = sample_with(turns, ""), tmp_path / f"sheet.{suffix}"
    write_sheet(sheet, sample, "anna")
    empty = sheet.read_text(encoding="utf-8")
    # Nobody has touched it: the same command may write it again.
    write_sheet(sheet, sample, "anna")
    name = sample.rows[0].id
    filled = f"id,verdict\n{name},keeps\n{sample.rows[1].id},\n"
    if suffix == "jsonl":
        filled = empty.replace('"verdict": ""', '"verdict": "keeps"', 1)
    for text in (filled, "my notes"):
        sheet.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match="give the new sheet another name"):
            write_sheet(sheet, sample, "anna")
        assert sheet.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("between", [";", "\t"])
def test_spreadsheets_of_other_languages_are_read(
    tmp_path: Path, turns: tuple[TurnResult, ...], between: str
) -> None:
    sample, sheet = sample_with(turns, "a, b; c"), tmp_path / "sheet.csv"
    write_sheet(sheet, sample, "anna")
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=between, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows({**row, "verdict": "Keeps"} for row in rows)
    assert read_judgements(sheet, sample) == {row.id: "keeps" for row in sample.rows}


def test_long_turns_and_emptied_rows_are_read(
    tmp_path: Path, turns: tuple[TurnResult, ...]
) -> None:
    sample, sheet = sample_with(turns, "a pasted log " * 12_000), tmp_path / "sheet.csv"
    write_sheet(sheet, sample, "anna")
    usual = csv.field_size_limit()
    with sheet.open("a", encoding="utf-8") as file:
        file.write(",,,,,,,\r\n" * 2)
    assert read_judgements(sheet, sample) == {}
    assert csv.field_size_limit() == usual
    # What nobody judged may be written again.
    write_sheet(sheet, sample, "anna")
