"""JSON Lines for a team's own conversations: one dialogue a line, in one of three forms.

By turns: ``{"dialogue_id": "a", "turns": [{"system": "", "user": "hi", "state": {}}]}``;
``system`` and ``state`` may be left out. Flat, the user speaking first:
``{"dialogue_id": "a", "utterances": ["hi", "hello", "a pizza"], "states": [{}, {}]}``;
``states`` (one per user utterance) may be left out. Of the user alone:
``{"dialogue_id": "a", "users": ["hi", "a pizza"], "states": [{}, {}]}``, likewise.

What the system said to the last turn is its ``answer``: a key of a turn, or the system's last
utterance. Of any turn it says what was answered where the next one does not.

Four lines of a user under ``utterances`` would be two turns. Nothing in them tells, so where
there are no states either the user hears how they were taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import SourceFile, as_state, checked, filled_lines
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json

#: The forms of a dialogue.
_FORMS: Final = ("turns", "utterances", "users")
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


def read(
    file: SourceFile,
    normalisation: str,
    tell: Callable[[str], None] = lambda _: None,
    *,
    silent: bool = True,
) -> Iterator[Dialogue]:
    """Yield the dialogues of ``file``, one a line; ``tell`` hears how the lines were taken.

    Unless users may be ``silent``, an utterance without a text is a `DataError`.
    """
    alternating = 0
    shown = ""
    for number, line in filled_lines(file):
        place = f"{file.place}: line {number}"
        dialogue, form = _dialogue(line, place, normalisation)
        mute = next((turn.index for turn in dialogue.turns if not turn.user.strip()), None)
        if mute is not None and not silent:
            raise DataError(f"{place}, turn {mute}: 'user' is empty; leave the turn out")
        if form == "utterances" and all(turn.state is None for turn in dialogue.turns):
            alternating += 1
            shown = shown or f"of {dialogue.id}, {len(dialogue.turns)} are the user's"
        yield dialogue
    if alternating:
        noun = "dialogue" if alternating == 1 else "dialogues"
        tell(
            f"In {alternating} {noun} of {file.place} 'utterances' are taken as the user's "
            f"and the system's in turn, the user's first ({shown}). Where all are the user's, "
            "call them 'users'."
        )


def _dialogue(line: str, place: str, normalisation: str) -> tuple[Dialogue, str]:
    """Return a dialogue, and the form that it is in."""
    try:
        parsed = parse_json(line)
    except DataError as error:
        raise DataError(f"{place} {error}; expected one dialogue a line") from None
    entry = checked(_DialogueLine, parsed, place)
    forms = [form for form in _FORMS if getattr(entry, form) is not None]
    if len(forms) != 1:
        raise DataError(
            f"{place} needs either 'turns' or 'utterances' (the user's and the system's "
            "in turn) or 'users' (the user's alone)"
        )
    turns = (
        Turn(
            n,
            turn.system,
            turn.user,
            as_state(turn.state, f"{place}, turn {n}", normalisation),
            turn.answer,
        )
        for n, turn in enumerate(_flat(entry, place) if entry.turns is None else entry.turns)
    )
    return Dialogue(entry.dialogue_id, tuple(turns)), forms[0]


def _flat(entry: _DialogueLine, place: str) -> list[_LineTurn]:
    texts = entry.utterances or []
    users = texts[::2] if entry.users is None else entry.users
    systems = ["", *texts[1::2]] if entry.users is None else repeat("")
    states = [None] * len(users) if entry.states is None else entry.states
    if len(states) != len(users):
        raise DataError(
            f"{place} has {len(states)} states for {len(users)} user utterances; "
            "'utterances' starts with the user, 'states' has one entry per user utterance; "
            "utterances of the user alone are called 'users'"
        )
    turns = [_LineTurn(*each) for each in zip(users, systems, states, strict=False)]
    if turns and entry.users is None and len(texts) == 2 * len(users):
        turns[-1].answer = texts[-1]
    return turns
