"""The table of a sweep: a row for each cell and relation, as CSV and as Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.scale.results.sweeping import SweptCell
from pytest_dstfuzz.weaknesses.groups import find_weaknesses


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """What came of one cell under one relation; rates are shares, bounds those of 95 %.

    A rate is ``None`` where nothing was answered, a bound where there were too few dialogues.
    """

    cell: str
    #: By axis.
    values: Mapping[str, str] = field(default_factory=dict)
    #: Why the cell was not run, or not to its end.
    problem: str = ""
    relation: str = ""
    dialogues: int = 0
    turns: int = 0
    valid: int = 0
    violations: int = 0
    errors: int = 0
    failure_rate: float | None = None
    failure_rate_low: float | None = None
    failure_rate_high: float | None = None
    turns_broken: int = 0
    turn_failure_rate: float | None = None
    turn_failure_rate_low: float | None = None
    turn_failure_rate_high: float | None = None
    clean_accuracy: float | None = None
    calls: int = 0
    minimiser_calls: int = 0
    weaknesses: int = 0
    #: Of 1,000 user turns; of a search by density alone.
    expected_failures: float | None = None


def rows_of(swept: SweptCell) -> Iterator[SweepRow]:
    """Yield the rows of a cell: one without a relation where nothing was run."""
    cell, folder = swept.cell, swept.folder
    about: dict[str, Any] = {
        "cell": cell.name,
        "values": dict(cell.values),
        "problem": swept.problem,
    }
    if folder is None or not len(folder):
        yield SweepRow(**about)
        return
    for relation in folder.manifest.relations:
        results = folder.results.of(relation)
        if not len(results):
            continue
        found = summarise(results)
        low, high = found.failure_rate_interval or (None, None)
        turn_low, turn_high = found.turn_failure_rate_interval or (None, None)
        expected = found.expected_failures
        yield SweepRow(
            **about,
            relation=relation,
            dialogues=found.dialogues_tested,
            turns=found.turns,
            valid=found.valid,
            violations=found.violations,
            errors=found.errors,
            failure_rate=found.failure_rate,
            failure_rate_low=low,
            failure_rate_high=high,
            turns_broken=found.turns_broken,
            turn_failure_rate=found.turn_failure_rate,
            turn_failure_rate_low=turn_low,
            turn_failure_rate_high=turn_high,
            clean_accuracy=found.clean_accuracy,
            calls=found.calls,
            minimiser_calls=found.minimiser_calls,
            weaknesses=len(find_weaknesses(results)),
            expected_failures=None if expected is None else expected.per_1000,
        )


def columns_of(axes: Sequence[str]) -> dict[str, type]:
    """Return the columns of the table and what they hold; each axis is one, as text."""
    found: dict[str, type] = {}
    for item in fields(SweepRow):
        if item.name == "values":
            found |= {_axis(name): str for name in axes}
        else:
            found[item.name] = next(
                kind for kind in (str, int, float) if item.type.startswith(kind.__name__)
            )
    return found


def record_of(row: SweepRow) -> dict[str, Any]:
    """Return a row by its columns."""
    plain = asdict(row)
    values = plain.pop("values")
    return {**plain, **{_axis(name): value for name, value in values.items()}}


def _axis(name: str) -> str:
    # There is a column of that name, which says under which relation.
    return f"axis_{name}" if name == "relation" else name


def write_csv(path: Path, rows: Sequence[SweepRow], axes: Sequence[str]) -> None:
    """Write the table as CSV, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns_of(axes)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(record_of, rows))
    write_text(path, text.getvalue())
