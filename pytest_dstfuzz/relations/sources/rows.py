"""The file of frozen variants: candidates, what the locks say of them, and what a person says.

JSON Lines. The first line is the head, ``{"schema": ..., "sources": {name: licence}}``; each other
line is a candidate for one turn, known by what was said up to it (`turn_keys`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import msgspec

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.readers.source import checked
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text, write_text
from pytest_dstfuzz.json_data import parse_json

SCHEMA: Final = "dstfuzz-frozen/1"
#: What a person may say of a candidate: the meaning stays, it does not, or nothing so far.
KEEPS: Final = "keeps"


class FrozenRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate: other words for the user's utterance of one turn."""

    #: Of the turn, see `turn_keys`.
    key: str
    #: The utterance of the data, for whoever reads; only ``key`` says which turn it is.
    user: str
    text: str
    source: str
    #: The lock that it breaks; ``""`` = none. One that breaks a lock is never used.
    lock: str = ""
    verdict: Literal["", "keeps", "changes"] = ""
    #: Who gave the verdict.
    reviewer: str = ""


class _Head(msgspec.Struct, frozen=True):
    schema: str
    sources: dict[str, str]


class FrozenFile(msgspec.Struct, frozen=True):
    """What a file of frozen variants holds."""

    #: Name of a source -> where its words come from, and their licence.
    sources: Mapping[str, str] = {}
    rows: tuple[FrozenRow, ...] = ()

    def joined(self, source: str, licence: str, rows: Iterable[FrozenRow]) -> FrozenFile:
        """Return the file with more candidates after those that it has.

        What is there stays as it is, verdicts and all, also where the same words come again.
        """
        there = {(row.key, row.text): row for row in self.rows}
        for row in rows:
            there.setdefault((row.key, row.text), row)
        return FrozenFile({**self.sources, source: licence}, tuple(there.values()))

    def write(self, path: Path) -> None:
        """Write it to a file that people read and edit, and that is committed."""
        lines: list[object] = [{"schema": SCHEMA, "sources": dict(sorted(self.sources.items()))}]
        lines += [msgspec.to_builtins(row) for row in self.rows]
        write_text(path, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))


def read_frozen(path: Path) -> FrozenFile:
    """Read a file of frozen variants.

    Raises:
        DataError: it cannot be read, or a line of it is not what it must be.
    """
    lines = read_text(path, "file of frozen variants").split("\n")
    parsed = [
        (_parsed(line, f"{path}: line {number}"), f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    head = checked(_Head, *parsed[0]) if parsed else None
    if head is None or head.schema != SCHEMA:
        raise DataError(
            f"{path} is no file of frozen variants: its first line must have the schema "
            f"{SCHEMA!r}; dstfuzz freeze writes one"
        )
    rows: dict[tuple[str, str], FrozenRow] = {}
    for value, place in parsed[1:]:
        row = checked(FrozenRow, value, place)
        if row.verdict and not row.reviewer.strip():
            raise DataError(f"{place}: a verdict needs the name of who gave it in 'reviewer'")
        if (row.key, row.text) in rows:
            raise DataError(f"{place}: the same text stands there twice for the same turn")
        rows[row.key, row.text] = row
    return FrozenFile(head.sources, tuple(rows.values()))


def _parsed(line: str, place: str) -> object:
    try:
        return parse_json(line)
    except DataError as error:
        raise DataError(f"{place} {error}") from None


def with_frozen(data: DialogueSet, path: str | Path | None) -> DialogueSet:
    """Return data with the variants of a file of which a person says that the meaning stays."""
    if path is None:
        return data
    found: dict[str, list[str]] = {}
    for row in read_frozen(Path(path).expanduser()).rows:
        if row.verdict == KEEPS and not row.lock:
            found.setdefault(row.key, []).append(row.text)
    return replace(data, frozen={key: tuple(texts) for key, texts in found.items()})
