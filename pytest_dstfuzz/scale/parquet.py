"""Writes Parquet files with pyarrow: the table of a sweep, and the results of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.errors import UserError, needs_extra

with needs_extra("writing Parquet", "parquet", "pyarrow"):
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Maximum number of rows in memory.
_GROUP: Final = 10_000
_KINDS: Final[Mapping[object, pa.DataType]] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    tuple: pa.list_(pa.string()),
}
#: Columns for the results of a folder, with one row for each variant.
VARIANT_COLUMNS: Final[Mapping[str, type]] = {
    "turn": str,
    "dialogue": str,
    "turn_index": int,
    "relation": str,
    "side": str,
    "turn_outcome": str,
    "variant": int,
    "outcome": str,
    "failure": str,
    "cause": str,
    "reason": str,
    "valid": bool,
    "user": str,
    "text": str,
    "transformations": tuple,
    "edit_w": float,
    "edit_c": float,
    "weight": float,
    "changed": tuple,
    "smallest": str,
}


def write_parquet(
    path: Path, columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]]
) -> int:
    """Write rows to a Parquet file in groups of some thousands. Return their number.

    The write is atomic. An existing file stays unchanged if it fails.

    Raises:
        UserError: the file cannot be written.
    """
    schema = pa.schema([(name, _KINDS[kind]) for name, kind in columns.items()])
    draft = path.with_name(f".{path.name}.part")
    count, left = 0, iter(rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(draft, schema) as writer:
            while group := list(islice(left, _GROUP)):
                writer.write_table(pa.Table.from_pylist(group, schema))
                count += len(group)
        draft.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return count


def variant_rows(results: Iterable[TurnResult]) -> Iterator[dict[str, Any]]:
    """Yield one row per variant, with the columns of `VARIANT_COLUMNS`."""
    for turn in results:
        for variant in turn.variants:
            yield _row(turn, variant)


def _row(turn: TurnResult, variant: VariantResult) -> dict[str, Any]:
    return {
        "turn": turn.id,
        "dialogue": turn.dialogue_id,
        "turn_index": turn.turn_index,
        "relation": turn.relation,
        "side": turn.side,
        "turn_outcome": turn.outcome,
        "variant": variant.index,
        "outcome": variant.outcome,
        "failure": variant.failure,
        "cause": variant.cause,
        "reason": variant.reason,
        "valid": variant.valid,
        "user": turn.user,
        "text": variant.text,
        "transformations": [f"{edit.transformation}/{edit.operator}" for edit in variant.edits],
        "edit_w": variant.edit_w,
        "edit_c": variant.edit_c,
        "weight": variant.weight,
        "changed": [str(change) for change in variant.changed_slots],
        "smallest": None if variant.minimal is None else variant.minimal.text,
    }
