"""Conversations as a table, one utterance a row: which dialogue, who speaks, the text.

Columns go by name, whatever their order, and others are not read; the user is told which were
taken. Rows of a dialogue stay in the order of the file, and need not follow one another.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import SourceFile
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
    text = file.text()
    header = _header(text)
    columns = _columns(header)
    if missing := [kind for kind in COLUMNS if kind not in columns]:
        names = "; ".join(f"{kind}: {', '.join(COLUMNS[kind])}" for kind in missing)
        raise DataError(
            f"{file.place}: line 1 has no column for {' and '.join(missing)} among "
            f"{', '.join(header)}; call it one of these: {names}"
        )
    dialogues: dict[str, list[tuple[str, str]]] = {}
    called: dict[str, str] = {}
    for line, row in _rows(file, text, _parted(text), len(header)):
        place = f"{file.place}: line {line}"
        name = row[columns["dialogue"]].strip()
        if not name:
            raise DataError(f"{place} does not say which dialogue it is of")
        speaker = row[columns["speaker"]].strip()
        called.setdefault(speaker, _who(speaker, place))
        dialogues.setdefault(name, []).append((called[speaker], row[columns["text"]]))
    taken = ", ".join(f"{kind} = {header[place]!r}" for kind, place in columns.items())
    who = ", ".join(f"{name!r} is the {kind}" for name, kind in called.items())
    tell(
        f"Columns of {file.place}: {taken}; {who}. A table has no tool calls: no turn is labelled."
    )
    for name, said in dialogues.items():
        turns = tuple(_turns(said))
        if turns:
            yield Dialogue(name, turns)
        else:
            tell(f"In the dialogue {name} of {file.place} the user says nothing: it is left out.")


def _header(text: str) -> list[str]:
    line = text.partition("\n")[0].strip("\r")
    return next(csv.reader([line], delimiter=_parted(text)), [])


def _parted(text: str) -> str:
    """Return what parts the columns: what the header has most of."""
    line = text.partition("\n")[0]
    return max(_PARTED, key=line.count)


def _columns(header: list[str]) -> dict[str, int]:
    """Return what is in which column; of several names the first of `COLUMNS` counts."""
    names = [_NO_LETTER.sub("_", name.strip().lower()).strip("_") for name in header]
    found = {}
    for kind, known in COLUMNS.items():
        place = next((names.index(name) for name in known if name in names), None)
        if place is not None:
            found[kind] = place
    return found


def _rows(
    file: SourceFile, text: str, delimiter: str, width: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
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


def _turns(said: list[tuple[str, str]]) -> Iterator[Turn]:
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
