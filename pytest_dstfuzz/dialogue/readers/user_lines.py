"""Logs of what users asked, without any answer: one text a line, or texts in JSON.

Each text is a dialogue of one turn. Several of one dialogue stand in a list of their own:
``["a table for two", "at nine"]`` as a line of JSON Lines, or as an entry of a JSON array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import SourceFile, filled_lines, is_one_a_line
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json, shown_value

#: Endings of files whose lines are texts as they stand.
_PLAIN: Final = (".txt", ".log")
_FORM: Final = (
    'expected a text of the user, "a table for two", or a list of those of one dialogue, '
    '["a table for two", "at nine"]'
)


def is_of_users(file: SourceFile, head: str) -> bool:
    """Whether a file that a user pointed at, and that is nothing else, is such a log."""
    start = "".join(head[:200].split())
    return bool(start) and (
        file.name.lower().endswith(_PLAIN) or start.startswith(('"', '["', '[["'))
    )


def read_users(
    file: SourceFile,
    normalisation: str,  # noqa: ARG001 - of states
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Dialogue]:
    """Yield the dialogues of a log; ``tell`` hears how its lines were taken."""
    count = 0
    for said, place, name in _said(file):
        texts = [said] if isinstance(said, str) else said
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{place}: {shown_value(said)}: {_FORM}")
        turns = [Turn(n, "", text) for n, text in enumerate(filter(str.strip, texts))]
        if not turns:
            raise DataError(f"{place} has no text; {_FORM}")
        count += 1
        yield Dialogue(name, tuple(turns))
    tell(
        f"{file.place} is taken as {count:,} dialogues of the user alone, each asked without "
        'what came before it. Several utterances of one dialogue are one line of JSON: ["...", '
        '"..."].'
    )


def _said(file: SourceFile) -> Iterator[tuple[object, str, str]]:
    """Yield what is in a file with its place and the id of the dialogue."""
    plain = file.name.lower().endswith(_PLAIN)
    lines = filled_lines(file)
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
            raise DataError(f"{place} {error}; {_FORM}") from None
        yield said, place, f"{file.stem}-{number}"


def _whole(text: str) -> object:
    """Return the value that a file is; ``None`` = perhaps it is one a line."""
    try:
        return parse_json(text)
    except DataError:
        return None
