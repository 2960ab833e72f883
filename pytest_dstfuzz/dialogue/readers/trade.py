"""The layout of TRADE's preprocessing: one line a turn (TSV), or ``*_dials.json``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import (
    HEAD_BYTES,
    Reader,
    ReadOptions,
    SourceFile,
    as_label,
    json_start,
)
from pytest_dstfuzz.errors import DataError

#: First columns of the TSV; a column per slot follows.
COLUMNS: Final = ("# Dialogue ID", "Turn Index", "Last Turn", "System Response", "User Utterance")


class _Act(msgspec.Struct):
    slots: list[tuple[str, Any]]
    act: Any = "inform"


class _TradeTurn(msgspec.Struct):
    transcript: str
    system_transcript: str = ""
    belief_state: list[_Act] | None = None


class _TradeDialogue(msgspec.Struct):
    dialogue_idx: str
    dialogue: list[_TradeTurn]


class _Row(NamedTuple):
    line: int
    dialogue: str
    turn: Turn


class Trade(Reader):
    """The two forms that TRADE's preprocessing writes."""

    name = "trade"
    about = "TRADE's TSV or *_dials.json"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Know the header of the TSV, or the key of dialogues in JSON."""
        is_json = json_start(file, head) == "[" and '"dialogue_idx"' in head
        return 0.9 if is_json or _is_tsv(head) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of either form."""
        is_tsv = _is_tsv(file.head(HEAD_BYTES).lstrip())
        yield from (_read_tsv if is_tsv else _read_json)(file, how.normalisation)


def _is_tsv(head: str) -> bool:
    return head.startswith(COLUMNS[0])


def _read_tsv(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of a TSV with a header line, one line a turn."""
    for dialogue_id, group in groupby(_rows(file, normalisation), key=lambda row: row.dialogue):
        rows = list(group)
        for expected, row in enumerate(rows):
            if row.turn.index != expected:
                raise DataError(
                    f"{file.place}: line {row.line}: turn {row.turn.index} of dialogue "
                    f"{dialogue_id} stands where turn {expected} should"
                )
        yield Dialogue(dialogue_id, tuple(row.turn for row in rows))


def _rows(file: SourceFile, normalisation: str) -> Iterator[_Row]:
    lines = file.lines()
    header = next(lines, "").rstrip("\r\t").split("\t")
    if tuple(header[: len(COLUMNS)]) != COLUMNS or len(header) == len(COLUMNS):
        raise DataError(
            f"{file.place}: line 1 is no header of the TRADE layout; expected the columns "
            f"{', '.join(COLUMNS)} and one per slot"
        )
    slots = header[len(COLUMNS) :]
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if len(cells) != len(header):
            raise DataError(
                f"{file.place}: line {number} has {len(cells)} columns, the header has "
                f"{len(header)}"
            )
        if not (cells[1].isascii() and cells[1].isdecimal()):
            raise DataError(
                f"{file.place}: line {number}: the turn index must be a number, found {cells[1]!r}"
            )
        stated = dict(zip(slots, cells[5:], strict=True))
        state = as_label(stated, f"{file.place}: line {number}", normalisation)
        turn = Turn(int(cells[1]), cells[3], cells[4], state)
        yield _Row(number, cells[0].removesuffix(".json"), turn)


def _read_json(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of a ``*_dials.json``: a list with ``dialogue_idx`` and ``dialogue``."""
    for entry, place in file.entries(_TradeDialogue, "dialogue_idx"):
        turns = []
        for index, turn in enumerate(entry.dialogue):
            state = None
            if turn.belief_state is not None:
                acts = (act for act in turn.belief_state if act.act == "inform")
                slots = {slot: value for act in acts for slot, value in act.slots}
                where = f"{place}, turn {index}: 'belief_state'"
                state = as_label(slots, where, normalisation)
            turns.append(Turn(index, turn.system_transcript, turn.transcript, state))
        yield Dialogue(entry.dialogue_idx.removesuffix(".json"), tuple(turns))
