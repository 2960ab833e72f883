"""JSON Lines for a team's own conversations: one dialogue a line, in one of three forms.

By turns: ``{"dialogue_id": "a", "turns": [{"system": "", "user": "hi", "state": {}}]}``;
``system`` and ``state`` may be left out. Flat, the user speaking first:
``{"dialogue_id": "a", "utterances": ["hi", "hello", "a pizza"], "states": [{}, {}]}``;
``states`` (one per user utterance) may be left out. Of the user alone:
``{"dialogue_id": "a", "users": ["hi", "a pizza"], "states": [{}, {}]}``, likewise.

Four lines of a user under ``utterances`` would be two turns. Nothing in them tells, so where
there are no states either the user hears how they were taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json

#: The forms of a dialogue.
_FORMS: Final = ("turns", "utterances", "users")


def read(
    file: SourceFile, normalisation: str, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Dialogue]:
    """Yield the dialogues of ``file``, one per line; blank lines are skipped.

    ``tell`` is told what the user should know about how the lines were taken.
    """
    alternating: list[Dialogue] = []
    # Not splitlines: an utterance may hold separators that JSON does not escape.
    for number, line in enumerate(file.text().split("\n"), start=1):
        if line.strip():
            dialogue, form = _dialogue(line, file.place, f"line {number}", normalisation)
            if form == "utterances" and all(turn.state is None for turn in dialogue.turns):
                alternating.append(dialogue)
            yield dialogue
    if alternating:
        first = alternating[0]
        noun = "dialogue" if len(alternating) == 1 else "dialogues"
        tell(
            f"In {len(alternating)} {noun} of {file.place} 'utterances' are taken as the user's "
            f"and the system's in turn, the user's first (of {first.id}, {len(first.turns)} are "
            "the user's). Where all are the user's, call them 'users'."
        )


def _dialogue(line: str, place: str, where: str, normalisation: str) -> tuple[Dialogue, str]:
    """Return a dialogue, and the form that it is in."""
    try:
        parsed = parse_json(line)
    except DataError as error:
        raise DataError(f"{place}: {where} {error}; expected one dialogue a line") from None
    entry = as_object(parsed, place, where)
    dialogue_id = as_text(entry.get("dialogue_id"), place, f"{where}: 'dialogue_id'")
    forms = [form for form in _FORMS if form in entry]
    if len(forms) != 1:
        raise DataError(
            f"{place}: {where} needs either 'turns' or 'utterances' (the user's and the system's "
            "in turn) or 'users' (the user's alone)"
        )
    (form,) = forms
    if form == "turns":
        raw_turns = as_list(entry["turns"], place, f"{where}: 'turns'")
        turns = [
            _turn(raw, index, place, f"{where}, turn {index}", normalisation)
            for index, raw in enumerate(raw_turns)
        ]
    else:
        turns = list(_flat(entry, form, place, where, normalisation))
    return Dialogue(dialogue_id, tuple(turns)), form


def _turn(raw: object, index: int, place: str, where: str, normalisation: str) -> Turn:
    turn = as_object(raw, place, where)
    return Turn(
        index,
        as_text(turn.get("system", ""), place, f"{where}: 'system'"),
        as_text(turn.get("user"), place, f"{where}: 'user'"),
        _state(turn.get("state"), place, f"{where}: 'state'", normalisation),
    )


def _flat(
    entry: dict[str, object], form: str, place: str, where: str, normalisation: str
) -> Iterator[Turn]:
    raw_texts = as_list(entry[form], place, f"{where}: {form!r}")
    texts = [
        as_text(text, place, f"{where}, utterance {index}") for index, text in enumerate(raw_texts)
    ]
    users: Sequence[str] = texts if form == "users" else texts[::2]
    systems = [""] * len(users) if form == "users" else ["", *texts[1::2]]
    raw_states = entry.get("states")
    states = [None] * len(users) if raw_states is None else as_list(raw_states, place, where)
    if len(states) != len(users):
        raise DataError(
            f"{place}: {where} has {len(states)} states for {len(users)} user utterances; "
            "'utterances' starts with the user, 'states' has one entry per user utterance; "
            "utterances of the user alone are called 'users'"
        )
    for index, (user, raw) in enumerate(zip(users, states, strict=True)):
        state = _state(raw, place, f"{where}, state {index}", normalisation)
        yield Turn(index, systems[index], user, state)


def _state(raw: object, place: str, where: str, normalisation: str) -> BeliefState | None:
    if raw is None:
        return None
    return as_state(as_object(raw, place, where), place, where, normalisation)
