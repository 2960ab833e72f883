"""JSON Lines for a team's own conversations: one dialogue a line, in one of two forms.

By turns: ``{"dialogue_id": "a", "turns": [{"system": "", "user": "hi", "state": {}}]}``;
``system`` and ``state`` may be left out. Flat, the user speaking first:
``{"dialogue_id": "a", "utterances": ["hi", "hello", "a pizza"], "states": [{}, {}]}``;
``states`` (one per user utterance) may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.dialogue.types import BeliefState, Dialogue, Turn
from pytest_dstfuzz.errors import DataError


def read(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of ``file``, one per line; blank lines are skipped.

    Raises:
        DataError: a line that is no JSON or no dialogue; the message has its number.
    """
    # Not splitlines: an utterance may hold separators that JSON does not escape.
    for number, line in enumerate(file.text().split("\n"), start=1):
        if line.strip():
            yield _dialogue(line, file.place, f"line {number}", normalisation)


def _dialogue(line: str, place: str, where: str, normalisation: str) -> Dialogue:
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers without end.
        raise DataError(
            f"{place}: {where} is not valid JSON ({error}); expected one dialogue a line"
        ) from None
    entry = as_object(parsed, place, where)
    dialogue_id = as_text(entry.get("dialogue_id"), place, f"{where}: 'dialogue_id'")
    if "turns" in entry and "utterances" not in entry:
        raw_turns = as_list(entry["turns"], place, f"{where}: 'turns'")
        turns = [
            _turn(raw, index, place, f"{where}, turn {index}", normalisation)
            for index, raw in enumerate(raw_turns)
        ]
    elif "utterances" in entry and "turns" not in entry:
        turns = list(_flat(entry, place, where, normalisation))
    else:
        raise DataError(f"{place}: {where} needs either 'turns' or 'utterances'")
    return Dialogue(dialogue_id, tuple(turns))


def _turn(raw: object, index: int, place: str, where: str, normalisation: str) -> Turn:
    turn = as_object(raw, place, where)
    return Turn(
        index,
        as_text(turn.get("system", ""), place, f"{where}: 'system'"),
        as_text(turn.get("user"), place, f"{where}: 'user'"),
        _state(turn.get("state"), place, f"{where}: 'state'", normalisation),
    )


def _flat(entry: dict[str, object], place: str, where: str, normalisation: str) -> Iterator[Turn]:
    texts = [
        as_text(text, place, f"{where}, utterance {index}")
        for index, text in enumerate(as_list(entry["utterances"], place, f"{where}: 'utterances'"))
    ]
    users = texts[::2]
    raw_states = entry.get("states")
    states = [None] * len(users) if raw_states is None else as_list(raw_states, place, where)
    if len(states) != len(users):
        raise DataError(
            f"{place}: {where} has {len(states)} states for {len(users)} user utterances; "
            "'utterances' starts with the user, 'states' has one entry per user utterance"
        )
    for index, (user, raw) in enumerate(zip(users, states, strict=True)):
        system = texts[2 * index - 1] if index else ""
        state = _state(raw, place, f"{where}, state {index}", normalisation)
        yield Turn(index, system, user, state)


def _state(raw: object, place: str, where: str, normalisation: str) -> BeliefState | None:
    if raw is None:
        return None
    return as_state(as_object(raw, place, where), place, where, normalisation)
