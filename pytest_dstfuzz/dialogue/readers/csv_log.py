"""Conversations as a table, one utterance a row: which dialogue, who speaks, the text.

Columns go by name, whatever their order, and others are not read; the user is told which were
taken. Rows of a dialogue stay in the order of the file, and need not follow one another.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.dialogue.spool import Records
from pytest_dstfuzz.errors import DataError, nearest

#: What a column holds -> the names that it may have.
COLUMNS: Final = {
    "dialogue": (
        *("dialogue_id", "dialog_id", "conversation_id", "session_id", "thread_id", "chat_id"),
        *("dialogue", "dialog", "conversation", "session", "thread", "chat", "id"),
    ),
    "speaker": ("speaker", "role", "author", "sender", "participant", "who", "from"),
    "text": ("text", "utterance", "message", "content", "body", "transcript", "said"),
}
#: Who speaks -> what they may be called.
_SPEAKERS: Final = {
    "user": ("user", "customer", "client", "human", "caller", "visitor", "guest", "usr", "u"),
    "assistant": (
        *("assistant", "system", "bot", "agent", "ai", "model", "operator", "support", "sys", "a"),
    ),
}
_PARTED: Final = (",", ";", "\t")
_LINE_END: Final = re.compile(r"[\r\n]")
_NO_LETTER: Final = re.compile(r"[\W_]+")


def is_table(head: str) -> bool:
    """Whether a text begins with a header line of such a table."""
    header = _header(head)
    return {"text"} < set(_columns(header)) and len(header) > 1


def read_csv(
    file: SourceFile,
    normalisation: str,  # noqa: ARG001 - of states
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Dialogue]:
    """Yield the dialogues of a table; ``tell`` hears which columns and speakers were taken."""
    head = next(file.lines(), "")
    header = _header(head)
    columns = _columns(header)
    if missing := [kind for kind in COLUMNS if kind not in columns]:
        names = "; ".join(f"{kind}: {', '.join(COLUMNS[kind])}" for kind in missing)
        raise DataError(
            f"{file.place}: line 1 has no column for {' and '.join(missing)} among "
            f"{', '.join(header)}; call it one of these: {names}"
        )
    table = _Table(file, columns, len(header), _parted(head))
    taken = ", ".join(f"{kind} = {header[place]!r}" for kind, place in columns.items())
    who = ", ".join(f"{name!r} is the {kind}" for name, kind in table.called.items())
    tell(
        f"Columns of {file.place}: {taken}; {who}. A table has no tool calls: no turn is labelled."
    )
    for name in table.first:
        turns = tuple(_turns(table.said(name)))
        if turns:
            yield Dialogue(name, turns)
        else:
            tell(f"In the dialogue {name} of {file.place} the user says nothing: it is left out.")


class _Table:
    """The rows of a table by their dialogues; the texts are in a file, see `Records`."""

    def __init__(
        self, file: SourceFile, columns: Mapping[str, int], width: int, delimiter: str
    ) -> None:
        #: Speakers as they are called -> who they are.
        self.called: dict[str, str] = {}
        #: Dialogues as they come, with their first row.
        self.first: dict[str, int] = {}
        #: The row of the same dialogue after each row; 0 = it is the last.
        self._after = array("Q")
        self._rows = Records(self._taken(_rows(file, delimiter, width), file.place, columns))

    def _taken(
        self, rows: Iterator[tuple[int, list[str]]], name: str, columns: Mapping[str, int]
    ) -> Iterator[bytes]:
        last: dict[str, int] = {}
        for line, row in rows:
            place = f"{name}: line {line}"
            dialogue = row[columns["dialogue"]].strip()
            if not dialogue:
                raise DataError(f"{place} does not say which dialogue it is of")
            speaker = row[columns["speaker"]].strip()
            if speaker not in self.called:
                self.called[speaker] = _who(speaker, place)
            number = len(self._after)
            self._after.append(0)
            if dialogue in last:
                self._after[last[dialogue]] = number
            else:
                self.first[dialogue] = number
            last[dialogue] = number
            yield msgspec.msgpack.encode((self.called[speaker], row[columns["text"]]))

    def said(self, dialogue: str) -> Iterator[tuple[str, str]]:
        """Yield who says what in a dialogue."""
        row = self.first[dialogue]
        yield _SAID.decode(self._rows[row])
        while row := self._after[row]:
            yield _SAID.decode(self._rows[row])


_SAID: Final = msgspec.msgpack.Decoder(tuple[str, str])


def _header(text: str) -> list[str]:
    try:
        return next(csv.reader([_first_line(text)], delimiter=_parted(text)), [])
    except csv.Error:  # Such as a cell of more than 131,072 characters.
        return []


def _parted(text: str) -> str:
    """Return what parts the columns: what the header has most of."""
    return max(_PARTED, key=_first_line(text).count)


def _first_line(text: str) -> str:
    return _LINE_END.split(text, maxsplit=1)[0]


def _columns(header: list[str]) -> dict[str, int]:
    """Return what is in which column; of several names the first of `COLUMNS` counts."""
    names = [_NO_LETTER.sub("_", name.strip().lower()).strip("_") for name in header]
    found = {}
    for kind, known in COLUMNS.items():
        place = next((names.index(name) for name in known if name in names), None)
        if place is not None:
            found[kind] = place
    return found


def _rows(file: SourceFile, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with its last line."""
    # Some end lines with a carriage return alone.
    lines = chain.from_iterable(io.StringIO(f"{line}\n", newline="") for line in file.lines())
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        next(reader)
        for row in reader:
            if not "".join(row).strip():
                continue
            if len(row) != width:
                raise DataError(
                    f"{file.place}: line {reader.line_num} has {len(row)} columns, the header has "
                    f"{width}; a text with {delimiter!r} in it stands in quotes"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            f"{file.place}: line {reader.line_num}: {error}; quotes within a text are doubled"
        ) from None


def _who(speaker: str, place: str) -> str:
    for who, names in _SPEAKERS.items():
        if speaker.lower() in names:
            return who
    valid = [name for names in _SPEAKERS.values() for name in names]
    close = nearest(speaker, valid)
    hint = f" Did you mean {close!r}?" if close else ""
    raise DataError(
        f"{place}: unknown speaker {speaker!r}.{hint} Valid: "
        + "; ".join(f"of the {who} {', '.join(names)}" for who, names in _SPEAKERS.items())
    )


def _turns(said: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Yield the turns of a dialogue; what the system says in several rows is one utterance."""
    system: list[str] = []
    users: list[tuple[str, str]] = []
    for who, text in said:
        if who == "assistant":
            system.append(text)
        elif text.strip():
            users.append(("\n".join(system), text))
            system = []
    for index, (before, text) in enumerate(users):
        last = index == len(users) - 1
        yield Turn(index, before, text, answer="\n".join(system) or None if last else None)
