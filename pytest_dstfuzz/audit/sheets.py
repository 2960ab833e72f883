"""Sheets to judge elsewhere, and judgements that come back: CSV or JSON Lines, by suffix.

A sheet has the columns ``id``, ``earlier``, ``system``, ``clean``, ``perturbed``, ``changes``,
``sample`` (which sample it is of) and ``verdict``, which is empty; before ``changes``,
``moves`` and ``stated`` where a relation moves rounds or states a change. In CSV what cannot be
seen is written by its number, as the terminal and the page do, and a cell that a spreadsheet
would take for a formula begins with an apostrophe. Judgements need ``id`` and ``verdict``
(``keeps`` or ``changes``, of stated changes ``right`` or ``wrong``; empty = not judged): a
sheet that was filled in, or what the HTML page exports. Where they name their sample it has to
be this one.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dstfuzz.audit.sample import Sample
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import read_text, write_text
from pytest_dstfuzz.json_data import from_json, parse_json
from pytest_dstfuzz.report.edits import visible

_COLUMNS = ("id", "earlier", "system", "clean", "perturbed", "changes", "sample", "verdict")
_SUFFIXES = (".csv", ".jsonl")
#: What a cell begins with that a spreadsheet would compute, or that stands for such a one.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'")


def write_sheet(path: Path, sample: Sample, judge: str) -> None:
    """Write the sheet of a judge, in the judge's order; never over judgements."""
    if path.exists() and (why := _worth_keeping(path)):
        raise UserError(
            f"{path} {why}: take its judgements in with --judgements {path}, or give the new "
            "sheet another name"
        )
    rows = [{**row.shown(), "sample": sample.short, "verdict": ""} for row in sample.order(judge)]
    if suffix_of(path) == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = _columns(sample)
        writer.writerow(columns)
        writer.writerows(_cells(row, columns) for row in rows)
        write_text(path, text.getvalue())
    else:
        lines = [f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows]
        write_text(path, "".join(lines))


def read_judgements(path: Path, sample: Sample) -> dict[str, str]:
    """Read the verdicts of one judge, by the id of the row; those left empty are left out."""
    found: dict[str, str] = {}
    for number, row in _rows(path):
        name, verdict = row.get("id"), row.get("verdict")
        if not isinstance(name, str) or not isinstance(verdict, str):
            raise DataError(f"{path}, line {number}: needs an 'id' and a 'verdict', both texts")
        if row.get("sample", sample.short) != sample.short:
            raise DataError(f"{path}, line {number}: {name!r} is a row of another sample")
        if name in found:
            raise DataError(f"{path}, line {number}: {name!r} is judged twice")
        if verdict.strip():
            found[name] = verdict.strip().lower()
    return found


def _worth_keeping(path: Path) -> str:
    """Return why a file must not be written over, ``""`` for a sheet that nobody filled in."""
    try:
        rows = [row for _, row in _rows(path)]
    except DataError:
        rows = []
    if not rows or not all({"id", "verdict"} <= row.keys() for row in rows):
        return "is there and is no sheet that was written here" if path.stat().st_size else ""
    judged = any(str(row["verdict"] or "").strip() for row in rows)
    return "is there and holds judgements" if judged else ""


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = _csv_rows if suffix_of(path) == ".csv" else _json_rows
    return rows(path, read_text(path, "sheet"))


def suffix_of(path: Path) -> str:
    """Return which of the two forms a name asks for."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UserError(f"{path}: the name must end with {' or '.join(_SUFFIXES)}")
    return suffix


def _columns(sample: Sample) -> list[str]:
    """Return the columns of a sheet: those about relations only where a row has something there."""
    more = [name for name in ("moves", "stated") if any(name in row.shown() for row in sample.rows)]
    place = _COLUMNS.index("changes")
    return [*_COLUMNS[:place], *more, *_COLUMNS[place:]]


def _cells(shown: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    earlier = [
        line
        for turn in shown["earlier"]
        for line in (
            *([f"system: {visible(turn['system'])}"] if turn["system"] else []),
            f"user: {visible(turn['clean'])}",
            *(
                [f"seen as: {visible(turn['perturbed'])}"]
                if turn["perturbed"] != turn["clean"]
                else []
            ),
        )
    ]
    listed = ("changes", "moves", "stated")
    lines = {"earlier": earlier, **{name: map(visible, shown.get(name, ())) for name in listed}}
    texts = ("\n".join(lines[name]) if name in lines else visible(shown[name]) for name in columns)
    return [cell(text) for text in texts]


def cell(text: str) -> str:
    """Return a cell as no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # Spreadsheets write what separates numbers in their language: often a semicolon.
    header = text.partition("\n")[0]
    between = next((mark for mark in ";\t" if mark in header and "," not in header), ",")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    rows = []
    # What an earlier turn holds may be longer than the module's limit, which is the process's.
    usual = csv.field_size_limit(max(len(text), 1))
    try:
        for row in reader:
            # Spreadsheets keep rows that were emptied.
            if any(row.values()):
                cells = {name: _unmarked(cell) for name, cell in row.items()}
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        # It counts the lines that it has read whole.
        raise DataError(f"{path}, line {reader.line_num + 1}: {error}") from None
    finally:
        csv.field_size_limit(usual)
    yield from rows


def _unmarked(cell: object) -> object:
    """Return a cell as it was before it was marked as no formula."""
    marked = isinstance(cell, str) and cell[:1] == "'" and cell[1:].startswith(_FORMULAS)
    return cell[1:] if isinstance(cell, str) and marked else cell


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # Not splitlines: a text may hold separators that JSON does not escape.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, from_json(dict[str, Any], parse_json(line))
        except DataError as error:
            raise DataError(f"{path}, line {number} {error}") from None
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
