"""Judging in a terminal or on a sheet, and the export of verdicts."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from pytest_dstfuzz.audit.record import Audit
from pytest_dstfuzz.audit.sample import AuditRow, Sample
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import read_text, write_text
from pytest_dstfuzz.json_data import from_json, parse_json
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import without_commands
from pytest_dstfuzz.report.page import encodable, hanging
from pytest_dstfuzz.report.wording import diff_spans, legend, mark_edits, visible

_COLUMNS = ("id", "earlier", "system", "clean", "perturbed", "changes", "sample", "verdict")
_SUFFIXES = (".csv", ".jsonl")
#: Prefixes of a cell that a spreadsheet would evaluate. The apostrophe is the escape character.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'")


def write_sheet(path: Path, sample: Sample, judge: str) -> None:
    """Write a judge's sheet, in the judge's own order of rows.

    A sheet with judgements is not overwritten.
    """
    if path.exists() and (why := _worth_keeping(path)):
        raise UserError(
            f"{path} {why}: read its judgements with --judgements {path}, or give the new sheet "
            "another name"
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
    """Read the verdicts of one judge, by row id. Rows that the judge left empty are skipped."""
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
    """Return why a file must not be overwritten.

    The result is ``""`` for an empty file, and for a sheet without judgements.
    """
    try:
        rows = [row for _, row in _rows(path)]
    except DataError:
        rows = []
    if not rows or not all({"id", "verdict"} <= row.keys() for row in rows):
        return "exists and is not a sheet of this command" if path.stat().st_size else ""
    judged = any(str(row["verdict"] or "").strip() for row in rows)
    return "exists and contains judgements" if judged else ""


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = _csv_rows if suffix_of(path) == ".csv" else _json_rows
    return rows(path, read_text(path, "sheet"))


def suffix_of(path: Path) -> str:
    """Return the suffix of a sheet's name, ``.csv`` or ``.jsonl``, or raise an error."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UserError(f"{path}: the name must end in {' or '.join(_SUFFIXES)}")
    return suffix


def _columns(sample: Sample) -> list[str]:
    """Return the columns of a sheet. ``moves`` and ``stated`` are left out if no row has them."""
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
    """Quote a text so that no spreadsheet runs it as a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # The delimiter depends on the language of the spreadsheet: often a semicolon.
    header = text.partition("\n")[0]
    between = next((mark for mark in ";\t" if mark in header and "," not in header), ",")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    rows = []
    # Earlier turns may exceed the field size limit, which is global to the process.
    usual = csv.field_size_limit(max(len(text), 1))
    try:
        for row in reader:
            # Spreadsheets keep rows whose cells were cleared.
            if any(row.values()):
                cells = {name: _unmarked(cell) for name, cell in row.items()}
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        # ``line_num`` counts only the lines that were read completely.
        raise DataError(f"{path}, line {reader.line_num + 1}: {error}") from None
    finally:
        csv.field_size_limit(usual)
    yield from rows


def _unmarked(cell: object) -> object:
    """Undo `cell` by removing the added apostrophe."""
    marked = isinstance(cell, str) and cell[:1] == "'" and cell[1:].startswith(_FORMULAS)
    return cell[1:] if isinstance(cell, str) and marked else cell


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # Do not use splitlines: a text may contain line separators that JSON does not escape.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, from_json(dict[str, Any], parse_json(line))
        except DataError as error:
            raise DataError(f"{path}, line {number} {error}") from None
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None


#: Longest side of an edit that an export shows, in words.
_WORDS: Final = 2


def write_export(path: Path, audit: Audit) -> None:
    """Write the rows of an audit with all verdicts and the key: which rows are decoys.

    Raises:
        UserError: no judge has finished yet, and the key would reveal the decoys.
    """
    if all(audit.left(judge) for judge in audit.judges):
        raise UserError(
            "--export shows which rows are decoys, so a judge must answer all rows first"
        )
    rows = [_export_record(audit, row) for row in audit.sample.rows]
    if suffix_of(path) == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            shown = {**row, "edits": "; ".join(f"{old} -> {new}" for old, new in row["edits"])}
            writer.writerow([cell(str(value)) for value in shown.values()])
        write_text(path, text.getvalue())
    else:
        write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def _export_record(audit: Audit, row: AuditRow) -> dict[str, Any]:
    changed = [span for span in diff_spans(row.clean, row.edits) if span.changed]
    return {
        "id": row.id,
        "sample": audit.sample.short,
        "kind": row.kind,
        "turn": row.turn,
        "variant": row.variant,
        "change": row.what,
        "edits": [[_few(span.before), _few(span.after)] for span in changed],
        **{
            f"verdict {judge}": audit.verdicts(judge).get(row.id, "")
            for judge in sorted(audit.judges)
        },
    }


def _few(text: str) -> str:
    count = len(text.split())
    return visible(text.strip()) if count <= _WORDS else f"({count} words)"


#: Sent by a terminal in cbreak mode for Ctrl-D.
_END_OF_INPUT: Final = "\x04"
_WIDTH: Final = 100


def judge_rows(
    audit: Audit, judge: str, out: TextIO, read_key: Callable[[], str], *, colour: bool
) -> None:
    """Ask for a verdict on every row that the judge has not judged.

    Each answer is saved before the next row is shown. Skipped rows get no verdict, and are shown
    again when the audit is resumed. ``read_key`` returns the next key of the keyboard, or ``""`` at
    the end of the input. Without ``colour``, edits are marked with characters.
    """
    rows, question = audit.sample.order(judge), audit.sample.question
    answers = question.answers
    keys = ", ".join([*(" ".join(pair) for pair in answers.items()), "s skip, b back, q quit"])
    place = _next(audit, judge, rows, 0)
    while place < len(rows):
        row = rows[place]
        _print(out, [f"--- {place + 1} of {len(rows)} ({row.id})", *row_lines(row, colour=colour)])
        before = audit.verdicts(judge).get(row.id)
        said = f" (so far: {before})" if before else ""
        out.write(f"{question.text}{said} {keys} > ")
        out.flush()
        key = _next_key(out, read_key, keys, answers)
        if key in ("", "q"):
            return
        if key in answers:
            audit.say(judge, {row.id: answers[key]})
        place = max(place - 1, 0) if key == "b" else _next(audit, judge, rows, place + 1)


def _next(audit: Audit, judge: str, rows: Sequence[AuditRow], start: int) -> int:
    """Return the index of the next unjudged row from ``start``, or the number of rows."""
    given = audit.verdicts(judge)
    left = (place for place in range(start, len(rows)) if rows[place].id not in given)
    return next(left, len(rows))


def row_lines(row: AuditRow, *, colour: bool = False) -> Iterator[str]:
    """Yield the lines that show a row to a judge at the terminal."""
    for turn in row.earlier:
        if turn.system:
            yield from hanging("  system: ", visible(turn.system), _WIDTH)
        clean = undo_edits(turn.user, turn.edits)
        yield from hanging("  user:   ", mark_edits(clean, turn.edits, colour=colour), _WIDTH)
    if row.system:
        yield from hanging("  system: ", visible(row.system), _WIDTH)
    yield from hanging("> clean:  ", visible(row.clean), _WIDTH)
    yield from hanging("> edited: ", mark_edits(row.clean, row.edits, colour=colour), _WIDTH)
    for line in legend(row.edits):
        yield f"          {line}"
    for text in row.moves:
        yield from hanging("  moved:   ", text, _WIDTH)
    for text in row.stated:
        yield from hanging("> stated: ", visible(text), _WIDTH)
    for change in row.changes:
        yield from hanging("  tracker: ", visible(change), _WIDTH)


def key_reader(source: TextIO) -> Callable[[], str]:
    """Return a function that reads the next key.

    A terminal returns each key at once. Other sources are read line by line.
    """
    if source.isatty() and os.name == "posix":
        return lambda: _pressed(source)
    # Use the first letter of the next non-empty line.
    return lambda: next((line.strip()[0] for line in source if line.strip()), "")


def _next_key(out: TextIO, read_key: Callable[[], str], keys: str, answers: Container[str]) -> str:
    """Wait for a valid key and return it. Return ``""`` at the end of the input."""
    while True:
        key = read_key().lower()
        if key in ("", "s", "b", "q") or key in answers:
            out.write(f"{key}\n")
            return key
        # Do not echo the key: it may start an escape sequence, or not be encodable.
        out.write(f"?\n{keys} > ")
        out.flush()


def _pressed(source: TextIO) -> str:
    """Read one key without waiting for the end of a line. Ctrl-C still interrupts."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415 - likewise

    number = source.fileno()
    before = termios.tcgetattr(number)
    try:
        # This also drops keys typed earlier, which were not answers to the row on screen.
        tty.setcbreak(number)
        # Bypass the buffer of the text layer, which would read ahead.
        key = os.read(number, 1).decode("ascii", "replace")
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
    return "" if key == _END_OF_INPUT else key


def _print(out: TextIO, lines: list[str]) -> None:
    encoding = getattr(out, "encoding", None) or sys.getdefaultencoding()
    out.write("\n" + "".join(f"{without_commands(encodable(line, encoding))}\n" for line in lines))
