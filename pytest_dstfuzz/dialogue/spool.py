"""Dialogues of large data: kept in a file without a name, and read from it one at a time.

Up to `IN_MEMORY` turns they are a tuple. Of more, there stay in memory for each dialogue its id and
some 30 bytes, and each different tool once. The file lies in the folder for temporary files
(``TMPDIR``), and is gone with the last that refers to the dialogues, or with the process.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from tempfile import TemporaryFile, gettempdir
from threading import Lock
from typing import Final
from weakref import finalize

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, StoredDialogues, Turn
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.readers.source import HALF
from pytest_dstfuzz.errors import DataError, UserError

#: Turns of data that stays in memory.
IN_MEMORY: Final = 2_000


def gathered(dialogues: Iterable[Dialogue]) -> Sequence[Dialogue]:
    """Return dialogues with ids of their own as a tuple, or in a file where they are many.

    Raises:
        UserError: of many, the file cannot be written, two have one id, or a text is none.
    """
    source = iter(dialogues)
    found: list[Dialogue] = []
    turns = 0
    for dialogue in source:
        found.append(dialogue)
        turns += len(dialogue.turns)
        if turns > IN_MEMORY:
            return SpooledDialogues(chain(_emptied(found), source))
    return tuple(found)


def _emptied(found: list[Dialogue]) -> Iterator[Dialogue]:
    """Yield what is in a list, and let go of it."""
    found.reverse()
    while found:
        yield found.pop()


class Records:
    """Byte strings in a file without a name, by their number: first all are written, then read.

    They can be read by several threads, and by processes that were forked since.
    """

    def __init__(self, records: Iterable[bytes]) -> None:
        self._starts = array("Q", [0])
        self._lock = Lock()
        try:
            self._file = TemporaryFile(prefix="dstfuzz-")  # noqa: SIM115 - it is open as long as this
        except OSError as error:
            raise _unwritable(error) from None
        finalize(self, self._file.close)
        for record in records:
            self._write(record)
            self._starts.append(self._starts[-1] + len(record))
        self._write(b"")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> bytes:
        start, end = self._starts[number], self._starts[number + 1]
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), end - start, start)
        with self._lock:  # Windows, which has no forks.
            self._file.seek(start)
            return self._file.read(end - start)

    def _write(self, record: bytes) -> None:
        """Write a record; nothing = what was written so far is there for other processes."""
        try:
            if record:
                self._file.write(record)
            else:
                self._file.flush()
        except OSError as error:
            raise _unwritable(error) from None


def _unwritable(error: OSError) -> UserError:
    return UserError(
        f"large data is kept in the folder for temporary files, and {gettempdir()} cannot be "
        f"written: {error.strerror or error}; name a folder with room in TMPDIR"
    )


class _StoredTurn(msgspec.Struct, array_like=True):
    index: int
    system: str
    user: str
    state: dict[str, str] | None
    answer: str | None
    recorded: tuple[str, ...] | None
    calls: dict[str, str] | None


class _StoredDialogue(msgspec.Struct, array_like=True):
    id: str
    turns: list[_StoredTurn]
    #: Places in the list of all tools.
    tools: list[int]
    closing: tuple[str, ...]
    results: tuple[tuple[str, str], ...]


_DECODER: Final = msgspec.msgpack.Decoder(_StoredDialogue)


class SpooledDialogues(StoredDialogues):
    """Dialogues that are read from a file whenever they are asked for."""

    def __init__(self, dialogues: Iterable[Dialogue]) -> None:
        self._places: dict[str, int] = {}
        self._lengths = array("L")
        self._tools: dict[Tool, int] = {}
        self._labelled = True
        self._records = Records(map(self._taken, dialogues))
        self._listed = tuple(self._tools)

    def _taken(self, dialogue: Dialogue) -> bytes:
        """Enter a dialogue in the tables, and return what is stored of it."""
        place = self._places.setdefault(dialogue.id, len(self._lengths))
        if place < len(self._lengths):
            raise DataError(f"two dialogues have the id {dialogue.id!r}: ids tell them apart")
        self._lengths.append(len(dialogue.turns))
        self._labelled &= all(turn.state is not None for turn in dialogue.turns)
        stored = _StoredDialogue(
            dialogue.id,
            [_stored(turn) for turn in dialogue.turns],
            [self._tools.setdefault(tool, len(self._tools)) for tool in dialogue.tools],
            dialogue.closing,
            dialogue.results,
        )
        try:
            return msgspec.msgpack.encode(stored)
        except UnicodeEncodeError:
            raise DataError(f"dialogue {dialogue.id} holds {HALF}") from None

    @property
    def places(self) -> Mapping[str, int]:
        """Id of each dialogue -> its place."""
        return self._places

    @property
    def lengths(self) -> Sequence[int]:
        """Turns of each dialogue."""
        return self._lengths

    @property
    def labelled(self) -> bool:
        """Whether every turn has a belief state label."""
        return self._labelled

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Each tool of any dialogue once, as they come."""
        return self._listed

    def read(self, place: int) -> Dialogue:
        """Return the dialogue at a place from 0 on."""
        stored = _DECODER.decode(self._records[place])
        return Dialogue(
            stored.id,
            tuple(map(_turn, stored.turns)),
            tuple([self._listed[place] for place in stored.tools]),
            stored.closing,
            stored.results,
        )


def _stored(turn: Turn) -> _StoredTurn:
    return _StoredTurn(
        turn.index,
        turn.system,
        turn.user,
        None if turn.state is None else turn.state.to_json(),
        turn.answer,
        turn.recorded,
        None if turn.calls is None else turn.calls.to_json(),
    )


def _turn(stored: _StoredTurn) -> Turn:
    return Turn(
        stored.index,
        stored.system,
        stored.user,
        None if stored.state is None else BeliefState(stored.state),
        stored.answer,
        stored.recorded,
        None if stored.calls is None else Outcome(stored.calls),
    )
