"""What was judged, for others to check, without what was said: CSV or JSON Lines, by suffix.

A row has the columns ``id``, ``sample``, ``kind`` (``violation``, or the kind of decoy), ``turn``
and ``variant`` (whoever has the dialogues makes it again), ``change`` (what was done to make a
decoy), ``edits`` and ``verdict NAME`` for each judge. Of each edit it has the words before and
after it, where these are few; of more it says how many.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.audit.record import Audit
from pytest_dstfuzz.audit.sample import AuditRow
from pytest_dstfuzz.audit.sheets import cell, suffix_of
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.report.edits import diff_spans, visible

#: Words of one side of an edit that are shown at most.
_WORDS: Final = 2


def write_export(path: Path, audit: Audit) -> None:
    """Write the rows of an audit with their key and all verdicts.

    Raises:
        UserError: nobody has judged all rows yet, and the key would tell a judge too much.
    """
    if all(audit.left(judge) for judge in audit.judges):
        raise UserError(
            "--export has the key in it, so it waits for a judge who has answered all rows"
        )
    rows = [_record(audit, row) for row in audit.sample.rows]
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


def _record(audit: Audit, row: AuditRow) -> dict[str, Any]:
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
