"""The sheet to be judged blind and its key, as files; and how many were told apart."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.figures import binomial_interval
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text, write_text
from tools.noise.likelihood import HAPPENED

REAL: Final = "real"
MADE: Final = "made"
SHEET: Final = ("id", "sentence", "judgement")
KEY: Final = ("id", "kind", "source", "dialogue", "what", "word", "typed")


class Judged(NamedTuple):
    """One item, and whether it was told what it is."""

    kind: str
    what: str
    right: bool


def write_sheet(path: Path, sentences: Sequence[str]) -> None:
    """Write sentences with room for judgements."""
    _write(path, SHEET, [(sentence, "") for sentence in sentences])


def write_key(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write what each sentence is, in the same order."""
    _write(path, KEY, rows)


def print_score(sheet: Path, key: Path) -> None:
    """Print how many were told apart.

    Raises:
        DataError: a file cannot be read, or a judgement is missing.
    """
    judged = read_judged(sheet, key)
    print("| items | number | told rightly | share | 95 % interval |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, of in _groups(judged):
        right = sum(item.right for item in of)
        low, high = binomial_interval(right, len(of))
        share = f"{right / len(of):.1%} | {low:.1%} to {high:.1%}".replace("%", " %")
        print(f"| {name} | {len(of)} | {right} | {share} |")


def _groups(judged: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    groups = [("all", list(judged))]
    groups += [(kind, [item for item in judged if item.kind == kind]) for kind in (REAL, MADE)]
    groups += [
        (words, [item for item in judged if item.what == what]) for what, words in HAPPENED.items()
    ]
    return ((name, of) for name, of in groups if of)


def read_judged(sheet: Path, key: Path) -> list[Judged]:
    """Read a sheet that was judged, and its key."""
    judgements = {row["id"]: row["judgement"] for row in _read(sheet, SHEET)}
    rows = _read(key, KEY)
    if judgements.keys() != {row["id"] for row in rows}:
        raise DataError(f"{key} is not the key of {sheet}: other ids")
    found = []
    for row in rows:
        said = judgements[row["id"]].strip().lower()
        if said not in (REAL, MADE):
            raise DataError(
                f"{sheet}: the judgement of {row['id']} is {said!r}; {REAL} or {MADE} is expected"
            )
        found.append(Judged(row["kind"], row["what"], said == row["kind"]))
    if not found:
        raise DataError(f"{sheet} has no sentence")
    return found


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([number, *row] for number, row in enumerate(rows, 1))
    write_text(path, file.getvalue())


def _read(path: Path, header: Sequence[str]) -> list[dict[str, str]]:
    rows = list(csv.reader(io.StringIO(read_text(path), newline="")))
    if not rows or tuple(rows[0]) != tuple(header):
        raise DataError(f"{path}: the columns {', '.join(header)} are expected")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {number} has {len(row)} columns, not {len(header)}")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]
