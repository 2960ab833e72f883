"""The sharded schema of MultiWOZ 2.2 (that of the schema-guided dialogue challenge).

A list of dialogues; the frames of a user turn hold the state of each service.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text, strip_json
from pytest_dstfuzz.dialogue.readers.source import SourceFile


def read(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of one shard; of several values of a slot the first is taken.

    Raises:
        DataError: another structure; the message names the dialogue and the field.
    """
    for number, raw in enumerate(as_list(file.json(), file.place, "the file")):
        entry = as_object(raw, file.place, f"entry {number}")
        raw_id = as_text(entry.get("dialogue_id"), file.place, f"entry {number}: 'dialogue_id'")
        dialogue_id = strip_json(raw_id)
        where = f"dialogue {dialogue_id}"
        raw_turns = as_list(entry.get("turns"), file.place, f"{where}: 'turns'")
        yield Dialogue(dialogue_id, tuple(_turns(raw_turns, file.place, where, normalisation)))


def _turns(
    raw_turns: list[object], place: str, dialogue: str, normalisation: str
) -> Iterator[Turn]:
    system, index = "", 0
    for number, raw in enumerate(raw_turns):
        where = f"{dialogue}, utterance {number}"
        turn = as_object(raw, place, where)
        text = as_text(turn.get("utterance"), place, f"{where}: 'utterance'")
        speaker = as_text(turn.get("speaker"), place, f"{where}: 'speaker'")
        if speaker.upper() == "USER":
            frames = as_list(turn.get("frames"), place, f"{where}: 'frames'")
            yield Turn(index, system, text, _state(frames, place, where, normalisation))
            system, index = "", index + 1
        else:
            system = text


def _state(frames: list[object], place: str, where: str, normalisation: str) -> BeliefState:
    state: dict[str, object] = {}
    for raw in frames:
        frame = as_object(raw, place, f"{where}: 'frames'")
        # Frames of services without a state carry only spans.
        inner = as_object(frame.get("state", {}), place, f"{where}: 'state'")
        values = inner.get("slot_values", {})
        state.update(as_object(values, place, f"{where}: 'slot_values'"))
    return as_state(state, place, where, normalisation)
