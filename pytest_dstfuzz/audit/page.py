"""A self-contained HTML page for judges. It works offline, and exports the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_dstfuzz.audit.record import Audit
from pytest_dstfuzz.audit.sample import AuditRow
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.report.wording import legend, mark_spans, visible

with needs_extra("the page of an audit", "report", "jinja2", "markupsafe"):
    from pytest_dstfuzz.report.html.page import environment, insides


def write_page(path: Path, audit: Audit, judge: str) -> None:
    """Write the page of one judge. An existing file stays unchanged if this fails."""
    write_text(path, page_text(audit, judge))


def page_text(audit: Audit, judge: str) -> str:
    """Return the page of one judge, with the judge's order of rows and verdicts so far.

    The page does not say which rows are decoys, and has no verdicts of other judges.
    """
    question = audit.sample.question
    data = {
        "keys": question.answers,
        "sample": audit.sample.short,
        "judge": judge,
        "verdicts": audit.verdicts(judge),
        "rows": [_record(row) for row in audit.sample.order(judge)],
    }
    return (
        environment()
        .get_template("audit.html.j2")
        .render(
            judge=visible(judge),
            question=question.text,
            lead=question.lead,
            choices=[(verdict, key) for key, verdict in question.answers.items()],
            **insides("audit.js", data),
        )
    )


def _record(row: AuditRow) -> dict[str, Any]:
    """Return a row as data for the page's script. A span is a text or ``[removed, added]``."""
    said: list[list[Any]] = []
    for turn in row.earlier:
        said += [["system", [visible(turn.system)]]] if turn.system else []
        said.append(["user", list(mark_spans(undo_edits(turn.user, turn.edits), turn.edits))])
    said += [["system", [visible(row.system)]]] if row.system else []
    return {
        "id": row.id,
        "said": said,
        "clean": visible(row.clean),
        "edited": list(mark_spans(row.clean, row.edits)),
        "notes": [
            *legend(row.edits),
            *row.moves,
            *(f"stated: {visible(text)}" for text in row.stated),
            *(f"tracker: {visible(text)}" for text in row.changes),
        ],
    }
