"""Readers of conversations without tool calls: JSON Lines, tables, and user texts.

JSON Lines have one dialogue per line in one of three forms. The first form has turns:
``{"dialogue_id": "a", "turns": [{"system": "", "user": "hi", "state": {}}]}``. ``system`` and
``state`` are optional. The second form has alternating utterances, with the user first:
``{"dialogue_id": "a", "utterances": ["hi", "hello", "a pizza"], "states": [{}, {}]}``. ``states``
is optional and has one entry per user utterance. The third form has only the user:
``{"dialogue_id": "a", "users": ["hi", "a pizza"], "states": [{}, {}]}``. ``states`` is optional.

The recorded answer to a turn is the ``system`` of the next turn. If the next turn has none, or the
turn is the last, its own key ``answer`` may have the answer. In the second form, the answer to the
last turn is the last system utterance.

A file may have only user texts under ``utterances`` by mistake. Then every second text is read as
the system's, and nothing looks wrong without states. Therefore a note says how the texts were read.

A table has one utterance per row: the dialogue, the speaker and the text. Columns are found by
name, in any order, and other columns are ignored. Rows of a dialogue stay in the order of the file
and need not be adjacent.

User texts are one per line, or in JSON. Each text is a dialogue of one turn. Several texts of the
same dialogue form a list: ``["a table for two", "at nine"]`` as a line of JSON Lines, or as an
entry of a JSON array.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, repeat
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.messages import MESSAGES_KEY
from pytest_dstfuzz.dialogue.readers.source import (
    OTHER_STATES,
    Reader,
    ReadOptions,
    SourceFile,
    as_state,
    convert_checked,
    first_line,
    first_object,
    is_one_a_line,
    is_table_name,
    json_start,
    moment_of,
    read_filled_lines,
    refuse_misspelt,
)
from pytest_dstfuzz.dialogue.sampling import Records
from pytest_dstfuzz.errors import DataError, did_you_mean
from pytest_dstfuzz.json_data import parse_json, shorten_value
from pytest_dstfuzz.printable import format_count, format_list

#: The forms of a dialogue.
_FORMS: Final = ("turns", "utterances", "users")
_KEYS: Final = frozenset({"dialogue_id", *_FORMS})
_FIRST_KEY: Final = re.compile(r'\{\s*"(dialogue_id|turns|utterances|users)"\s*:')
#: Other names that people give to labels, for `refuse_misspelt`.
_OTHER_ANSWERS: Final = "response reply expectedanswer expectedreply expectedresponse"
_State = dict[str, Any] | None


class _LineTurn(msgspec.Struct):
    user: str
    system: str = ""
    state: _State = None
    answer: str | None = None


class _DialogueLine(msgspec.Struct):
    dialogue_id: str
    turns: list[_LineTurn] | None = None
    utterances: list[str] | None = None
    users: list[str] | None = None
    states: list[_State] | None = None


class JsonLines(Reader):
    """JSON Lines of dialogues, in the three forms above."""

    name = "jsonl"
    about = 'JSON Lines with one dialogue per line, {"dialogue_id": "a", "users": ["..."]}'
    keys = tuple(("dialogue_id", form) for form in _FORMS)

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise a file by the keys of its first line."""
        if json_start(file, head) != "{":
            return 0
        if (found := first_object(head)) is not None:
            return 0.8 if found.keys() & _KEYS else 0
        # The line is longer than the head, or broken: `read` reports that.
        line = first_line(head)
        return 0.8 if _FIRST_KEY.match(line) and not MESSAGES_KEY.search(line) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues, one per line. Note how alternating utterances were read.

        Raises:
            DataError: If a line is malformed, or replies are tested and a user text is empty.
        """
        alternating = 0
        shown = ""
        for number, line in read_filled_lines(file):
            place = f"{file.place}: line {number}"
            dialogue, form = _dialogue(line, place, how.normalisation)
            mute = next((turn.index for turn in dialogue.turns if not turn.user.strip()), None)
            if mute is not None and how.outcome == REPLY:
                raise DataError(f"{place}, turn {mute}: 'user' is empty; remove the turn")
            if form == "utterances" and all(turn.state is None for turn in dialogue.turns):
                alternating += 1
                shown = (
                    shown or f"{dialogue.id} has {format_count(len(dialogue.turns), 'user turn')}"
                )
            yield dialogue
        if alternating:
            how.tell(
                f"In {format_count(alternating, 'dialogue')} of {file.place}, 'utterances' are "
                f"read as user and system in alternation, starting with the user ({shown}). If all "
                "utterances are the user's, use the key 'users' instead."
            )


def _dialogue(line: str, place: str, normalisation: str) -> tuple[Dialogue, str]:
    """Return a dialogue and the name of its form."""
    try:
        parsed = parse_json(line)
    except DataError as error:
        raise DataError(f"{place} {error}; expected one dialogue per line") from None
    turns = parsed.get("turns") if isinstance(parsed, dict) else None
    if isinstance(turns, list) and turns and all(isinstance(one, str) for one in turns):
        raise DataError(
            f"{place}: 'turns' is a list of texts (keys: {format_list([*parsed], 8)}). If they are "
            "the user's, name the key 'users'. If user and system alternate, name it 'utterances'"
        )
    entry = convert_checked(_DialogueLine, parsed, place)
    _refuse_misspelt_labels(parsed, place)
    forms = [form for form in _FORMS if getattr(entry, form) is not None]
    if len(forms) != 1:
        raise DataError(
            f"{place} must have exactly one of the keys 'turns', 'utterances' (user and system in "
            "alternation) and 'users' (only the user)"
        )
    read = (
        Turn(
            n,
            turn.system,
            turn.user,
            as_state(turn.state, f"{place}, turn {n}", normalisation),
            turn.answer,
        )
        for n, turn in enumerate(_flat(entry, place) if entry.turns is None else entry.turns)
    )
    return Dialogue(entry.dialogue_id, tuple(read)), forms[0]


def _refuse_misspelt_labels(parsed: Mapping[str, Any], place: str) -> None:
    turns = parsed.get("turns")
    if turns is None:
        refuse_misspelt(parsed, "states", OTHER_STATES, list, place)
        return
    if parsed.get("states"):
        raise DataError(f"{place} has 'turns' and 'states': give each turn its own key 'state'")
    for number, (turn, after) in enumerate(pairwise([*turns, {}])):
        where = f"{place}, turn {number}"
        refuse_misspelt(turn, "state", "beliefstate dialoguestate dialogstate", Mapping, where)
        refuse_misspelt(turn, "system", "", str, where)
        if not after.get("system"):
            refuse_misspelt(turn, "answer", _OTHER_ANSWERS, str, where)


def _flat(entry: _DialogueLine, place: str) -> list[_LineTurn]:
    texts = entry.utterances or []
    users = texts[::2] if entry.users is None else entry.users
    systems = ["", *texts[1::2]] if entry.users is None else repeat("")
    states = [None] * len(users) if entry.states is None else entry.states
    if len(states) != len(users):
        raise DataError(
            f"{place} has {format_count(len(states), 'state')} for "
            f"{format_count(len(users), 'user utterance')}: 'states' needs one entry for each. "
            "'utterances' alternate, starting with the user; use 'users' for utterances of the "
            "user alone"
        )
    turns = [_LineTurn(*each) for each in zip(users, systems, states, strict=False)]
    if turns and entry.users is None and len(texts) == 2 * len(users):
        turns[-1].answer = texts[-1]
    return turns


#: Content of a column -> accepted column names.
COLUMNS: Final = {
    "dialogue": (
        *("dialogue_id", "dialog_id", "conversation_id", "session_id", "thread_id", "chat_id"),
        *("dialogue", "dialog", "conversation", "session", "thread", "chat", "id"),
    ),
    "speaker": ("speaker", "role", "author", "sender", "participant", "who", "from"),
    "text": ("text", "utterance", "message", "content", "body", "transcript", "said"),
}
#: Role -> accepted names of the speaker.
_SPEAKERS: Final = {
    "user": ("user", "customer", "client", "human", "caller", "visitor", "guest", "usr", "u"),
    "assistant": (
        *("assistant", "system", "bot", "agent", "ai", "model", "operator", "support", "sys", "a"),
    ),
}
_SEPARATORS: Final = (",", ";", "\t")
_NO_LETTER: Final = re.compile(r"[\W_]+")


class Table(Reader):
    """A table with one row per utterance."""

    name = "csv"
    about = "a CSV with the columns dialogue_id, speaker and text"

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise a table by its file name and header."""
        header = _header(head)
        has_text = {"text"} < set(_columns(header)) and len(header) > 1
        return 0.5 if is_table_name(file.name) and has_text else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a table. Note which columns and speakers were found."""
        head = next(file.lines(), "")
        header = _header(head)
        columns = _columns(header)
        if missing := [kind for kind in COLUMNS if kind not in columns]:
            names = "; ".join(f"{kind}: {', '.join(COLUMNS[kind])}" for kind in missing)
            raise DataError(
                f"{file.place}: line 1 has no column for {' and '.join(missing)} among "
                f"{', '.join(header)}; valid names: {names}"
            )
        _refuse_two(header, columns, file.place)
        table = _Rows(file, columns, len(header), _separator(head), _order_of(header))
        taken = ", ".join(f"{kind} = {header[place]!r}" for kind, place in columns.items())
        who = ", ".join(f"{name!r} is the {kind}" for name, kind in table.called.items())
        how.tell(
            f"Columns of {file.place}: {taken}; {who}. A table has no belief states and no tool "
            "calls."
        )
        if table.reversed:
            how.tell(
                f"The rows of a dialogue are read in the order of the file, but {table.reversed}. "
                "Sort the file if the dialogues are in the wrong order."
            )
        for name in table.first:
            turns = tuple(_turns(table.said(name)))
            if turns:
                yield Dialogue(name, turns)
            else:
                how.tell(
                    f"The dialogue {name} of {file.place} has no user utterance and is left out."
                )


class _Rows:
    """The rows of a table, grouped by dialogue. Their texts are in a file, see `Records`."""

    def __init__(
        self,
        file: SourceFile,
        columns: Mapping[str, int],
        width: int,
        delimiter: str,
        order: int | None,
    ) -> None:
        #: Name of a speaker in the file -> role.
        self.called: dict[str, str] = {}
        #: Dialogue -> its first row, in order of appearance.
        self.first: dict[str, int] = {}
        #: Number of the next row of the same dialogue. 0 after the last row.
        self._after = array("Q")
        #: The column with times or numbers of rows.
        self._order = order
        #: The first row that such a column puts before the row above it, for a note.
        self.reversed = ""
        self._rows = Records(self._taken(_rows(file, delimiter, width), file.place, columns))

    def _taken(
        self, rows: Iterator[tuple[int, list[str]]], name: str, columns: Mapping[str, int]
    ) -> Iterator[bytes]:
        last: dict[str, int] = {}
        moments: dict[str, float] = {}
        for line, row in rows:
            place = f"{name}: line {line}"
            dialogue = row[columns["dialogue"]].strip()
            if not dialogue:
                raise DataError(f"{place} has no dialogue id")
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
            moment = None if self._order is None else moment_of(row[self._order])
            if moment is not None:
                if moment < moments.get(dialogue, moment):
                    self.reversed = self.reversed or f"line {line} is earlier than the row before"
                moments[dialogue] = moment
            yield msgspec.msgpack.encode((self.called[speaker], row[columns["text"]]))

    def said(self, dialogue: str) -> Iterator[tuple[str, str]]:
        """Yield the role and text of each row of a dialogue."""
        row = self.first[dialogue]
        yield _SAID.decode(self._rows[row])
        while row := self._after[row]:
            yield _SAID.decode(self._rows[row])


_SAID: Final = msgspec.msgpack.Decoder(tuple[str, str])


def _header(text: str) -> list[str]:
    try:
        return next(csv.reader([first_line(text)], delimiter=_separator(text)), [])
    except csv.Error:  # For example a cell of more than 131,072 characters.
        return []


def _separator(text: str) -> str:
    """Return the column separator, the most frequent candidate in the header."""
    return max(_SEPARATORS, key=first_line(text).count)


def _columns(header: list[str]) -> dict[str, int]:
    """Return the index of each known column. Names that are first in `COLUMNS` win."""
    names = _names(header)
    found = {}
    for kind, known in COLUMNS.items():
        place = next((names.index(name) for name in known if name in names), None)
        if place is not None:
            found[kind] = place
    return found


def _names(header: Iterable[str]) -> list[str]:
    return [_NO_LETTER.sub("_", name.strip().lower()).strip("_") for name in header]


def _refuse_two(header: Sequence[str], columns: Mapping[str, int], place: str) -> None:
    """Refuse a table in which two columns have the name of a column that is read."""
    names = _names(header)
    for kind, at in columns.items():
        if names.count(names[at]) > 1:
            raise DataError(f"{place}: line 1 has several columns {header[at]!r} for the {kind}")


#: Names of columns that give the order of the rows of a dialogue.
_ORDERS: Final = (
    *("turn_id", "turn", "turn_index", "turn_number", "message_index", "index", "position"),
    *("timestamp", "created_at", "sent_at", "created", "time", "datetime", "date"),
)


def _order_of(header: Sequence[str]) -> int | None:
    names = _names(header)
    return next((names.index(name) for name in _ORDERS if name in names), None)


def _rows(file: SourceFile, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with the number of its last line."""
    # Split lines again, because some files mix in lone carriage returns as line ends.
    lines = chain.from_iterable(io.StringIO(f"{line}\n", newline="") for line in file.lines())
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        next(reader)
        for row in reader:
            if not "".join(row).strip():
                continue
            if len(row) != width:
                raise DataError(
                    f"{file.place}: line {reader.line_num} has "
                    f"{format_count(len(row), 'column')}, but the header has {width}; put texts "
                    f"that contain {delimiter!r} in quotes"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            f"{file.place}: line {reader.line_num}: {error}; double the quotes within a text"
        ) from None


def _who(speaker: str, place: str) -> str:
    for who, names in _SPEAKERS.items():
        if speaker.lower() in names:
            return who
    valid = [name for names in _SPEAKERS.values() for name in names]
    hint = did_you_mean(speaker, valid)
    raise DataError(
        f"{place}: unknown speaker {shorten_value(speaker)}.{hint} Valid: "
        + "; ".join(f"for the {who} {', '.join(names)}" for who, names in _SPEAKERS.items())
    )


def _turns(said: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Yield the turns of a dialogue. Consecutive system rows become one utterance."""
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


#: Suffixes of files with plain texts as lines.
_PLAIN: Final = (".txt", ".log")
_USERS_FORM: Final = (
    'expected a user utterance, "a table for two", or a list of the user utterances of one '
    'dialogue, ["a table for two", "at nine"]'
)


class UserTexts(Reader):
    """User texts without a system, one per line or in JSON."""

    name = "users"
    about = "a .txt with one user utterance per line"

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise text files, and JSON that starts with a text, with low confidence."""
        start = "".join(head[:200].split())
        plain = file.name.lower().endswith(_PLAIN)
        return 0.1 if start and (plain or start.startswith(('"', '["', '[["'))) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a log. Note how its lines were read."""
        count = 0
        for said, place, name in _said(file):
            texts = [said] if isinstance(said, str) else said
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise DataError(f"{place}: {shorten_value(said)}; {_USERS_FORM}")
            turns = [Turn(n, "", text) for n, text in enumerate(filter(str.strip, texts))]
            if not turns:
                raise DataError(f"{place} has no text; {_USERS_FORM}")
            count += 1
            yield Dialogue(name, tuple(turns))
        how.tell(
            f"{file.place} is read as {count:,} separate "
            f"{'dialogue' if count == 1 else 'dialogues'} with only the user. To put several "
            'utterances into one dialogue, write them as one line of JSON: ["...", "..."].'
        )


def _said(file: SourceFile) -> Iterator[tuple[object, str, str]]:
    """Yield each entry of a file with its place and the id of its dialogue."""
    plain = file.name.lower().endswith(_PLAIN)
    lines = read_filled_lines(file)
    begun = list(islice(lines, 2))
    if not plain and not is_one_a_line(begun):
        whole = _whole(file.text())
        if isinstance(whole, list):
            for number, said in enumerate(whole, start=1):
                yield said, f"{file.place}: entry {number - 1}", f"{file.stem}-{number}"
            return
    for number, line in chain(begun, lines):
        place = f"{file.place}: line {number}"
        try:
            said = line.strip() if plain else parse_json(line)
        except DataError as error:
            raise DataError(f"{place} {error}; {_USERS_FORM}") from None
        yield said, place, f"{file.stem}-{number}"


def _whole(text: str) -> object:
    """Parse a file as one JSON value. Return ``None`` if each line may have its own."""
    try:
        return parse_json(text)
    except DataError:
        return None
