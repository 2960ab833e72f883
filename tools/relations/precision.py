"""Computes the precision of relations from judged sheets: ``python -m tools.relations.precision``.

``python -m tools.relations.precision FOLDER...`` prints a row of Markdown for each folder with a
``key.tsv`` and the ``*.csv`` of its readers (``row,verdict,note``). A rewrite counts as right if
every reader says so. A decoy counts as recognised if every reader says that it is wrong.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.audit.record import wilson
from pytest_dstfuzz.errors import DataError, UserError

HEAD = ("relation", "stated delta right", "interval", "by reader", "decoys recognised", "by reader")


def read(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a table that has a header."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines, delimiter=delimiter))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def verdicts(path: Path, rows: Sequence[str]) -> list[bool]:
    """Return for each row of the sheet whether the reader says that it is right."""
    said = {row.get("row", "").strip(): row.get("verdict", "").strip() for row in read(path)}
    odd = [row for row in rows if said.get(row) not in {"right", "wrong"}]
    if odd:
        raise DataError(f"{path} says neither right nor wrong of the rows {', '.join(odd)}")
    return [said[row] == "right" for row in rows]


def line(folder: Path) -> list[str]:
    """Return the cells of one relation."""
    key = read(folder / "key.tsv", "\t")
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise DataError(f"{folder} has no verdicts: the .csv files of its readers")
    readers = [verdicts(path, [row["row"] for row in key]) for path in paths]
    real = [n for n, row in enumerate(key) if not row["decoy"]]
    hidden = [n for n, row in enumerate(key) if row["decoy"]]
    right = sum(all(one[n] for one in readers) for n in real)
    low, high = wilson(right, len(real))
    return [
        f"`{folder.name}`",
        f"{right} of {len(real)}",
        f"{100 * low:.1f} to {100 * high:.1f} %",
        ", ".join(str(sum(one[n] for n in real)) for one in readers),
        f"{sum(not any(one[n] for one in readers) for n in hidden)} of {len(hidden)}",
        ", ".join(str(sum(not one[n] for n in hidden)) for one in readers),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the command, and return its exit status."""
    if not arguments:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    try:
        rows = [line(Path(folder)) for folder in arguments]
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    for cells in (HEAD, ["---"] * len(HEAD), *rows):
        print(f"| {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
