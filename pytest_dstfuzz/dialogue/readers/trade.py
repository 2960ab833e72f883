"""The layout of TRADE's preprocessing: one line a turn (TSV), or ``*_dials.json``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text, strip_json
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.errors import DataError

#: First columns of the TSV; a column per slot follows.
COLUMNS: Final = ("# Dialogue ID", "Turn Index", "Last Turn", "System Response", "User Utterance")


class _Row(NamedTuple):
    line: int
    dialogue: str
    turn: Turn


def read_tsv(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
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
    lines = file.text().split("\n")  # Not splitlines: utterances may hold other separators.
    header = lines[0].rstrip("\r\t").split("\t")
    if tuple(header[: len(COLUMNS)]) != COLUMNS or len(header) == len(COLUMNS):
        raise DataError(
            f"{file.place}: line 1 is no header of the TRADE layout; expected the columns "
            f"{', '.join(COLUMNS)} and one per slot"
        )
    slots = header[len(COLUMNS) :]
    for number, line in enumerate(lines[1:], start=2):
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
        state = normalise_state(dict(zip(slots, cells[5:], strict=True)), normalisation)
        turn = Turn(int(cells[1]), cells[3], cells[4], state)
        yield _Row(number, strip_json(cells[0]), turn)


def read_json(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of a ``*_dials.json``: a list with ``dialogue_idx`` and ``dialogue``."""
    for number, item in enumerate(as_list(file.json(), file.place, "the file")):
        entry = as_object(item, file.place, f"entry {number}")
        raw_id = as_text(entry.get("dialogue_idx"), file.place, f"entry {number}: 'dialogue_idx'")
        dialogue_id = strip_json(raw_id)
        where = f"dialogue {dialogue_id}"
        raw_turns = as_list(entry.get("dialogue"), file.place, f"{where}: 'dialogue'")
        turns = [
            _turn(raw, index, file.place, f"{where}, turn {index}", normalisation)
            for index, raw in enumerate(raw_turns)
        ]
        yield Dialogue(dialogue_id, tuple(turns))


def _turn(raw: object, index: int, place: str, where: str, normalisation: str) -> Turn:
    turn = as_object(raw, place, where)
    labels = turn.get("belief_state")
    state = None
    if labels is not None:
        field = f"{where}: 'belief_state'"
        state = as_state(_slots(labels, place, field), place, field, normalisation)
    return Turn(
        index,
        as_text(turn.get("system_transcript", ""), place, f"{where}: 'system_transcript'"),
        as_text(turn.get("transcript"), place, f"{where}: 'transcript'"),
        state,
    )


def _slots(labels: object, place: str, where: str) -> dict[str, object]:
    slots: dict[str, object] = {}
    for raw in as_list(labels, place, where):
        entry = as_object(raw, place, where)
        if entry.get("act", "inform") != "inform":
            continue
        for raw_pair in as_list(entry.get("slots"), place, f"{where}: 'slots'"):
            pair = as_list(raw_pair, place, f"{where}: 'slots'")
            if len(pair) != 2:
                raise DataError(f"{place}: {where}: a slot must be [slot, value], found {pair!r}")
            slots[as_text(pair[0], place, where)] = pair[1]
    return slots
