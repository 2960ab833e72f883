"""Makes the table of weaknesses for a run on data whose sentences may not be shown.

``python -m tools.calls.weaknesses report.json`` prints, as Markdown, the first ten weaknesses of a
JSON report: how often each was seen and is expected, and its simplest violation, with the turn, the
edited words and the changed calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.report.weaknesses import Card
from pytest_dstfuzz.report.wording import needed_context

_SHOWN: Final = 10
_HEAD: Final = (
    "| weakness | id | violations | turns | example | words | calls |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


def table(report: Mapping[str, Any]) -> str:
    """Return the table of a JSON report, without any sentence of its data."""
    view = View.of(report)
    rows = [_row(card, entry) for card, entry in _found(view, report)]
    return "\n".join([*_HEAD, *rows]) + "\n"


def _found(view: View, report: Mapping[str, Any]) -> Iterator[tuple[Card, Mapping[str, Any]]]:
    entries = {entry["id"]: entry for entry in report["weaknesses"]}
    for card in view.weaknesses[:_SHOWN]:
        yield card, entries[card.id]


def _row(card: Card, entry: Mapping[str, Any]) -> str:
    plain = card.variant.plain
    earlier = [(text, edits) for _, text, edits in needed_context(card.variant)]
    seen = [*earlier, (card.turn.user, plain.edits)]
    words = ", ".join(pair for text, edits in seen for pair in edited_words(text, edits))
    calls = "; ".join(
        f"`{change.slot}`: {change.before or 'none'} -> {change.after or 'none'}"
        for change in plain.changed_slots
        if not change.carried
    )
    place = f"{card.turn.dialogue_id}, turn {card.turn.turn_index}"
    counts = f"{entry['count']} | {entry['turns']}"
    title = f"{card.description} ({card.often})"
    return f"| {title} | `{card.id}` | {counts} | {place} | {words} | {calls} |"


def edited_words(clean: str, edits: Iterable[Edit]) -> Iterator[str]:
    """Yield the word, or words, that each edit changes, before and after."""
    text = clean
    for edit in edits:
        start = text.rfind(" ", 0, edit.start) + 1
        end = text.find(" ", edit.end)
        end = len(text) if end < 0 else end
        after = f"{text[start : edit.start]}{edit.after}{text[edit.end : end]}"
        yield f"`{text[start:end].strip()}` -> `{after.strip()}`"
        text = f"{text[: edit.start]}{edit.after}{text[edit.end :]}"


if __name__ == "__main__":
    sys.stdout.write(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
