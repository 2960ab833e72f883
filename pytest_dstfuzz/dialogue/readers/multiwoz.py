"""MultiWOZ as it is published, in two schemas.

The original one (``data.json`` of 2.0, 2.1, 2.3 and 2.4) is an object: dialogue id ->
``{"goal": ..., "log": [...]}``. The log alternates user and system; the state after a user turn
stands in ``metadata`` of the system turn behind it. The sharded one (of 2.2, that of the
schema-guided dialogue challenge) is a list of dialogues; the frames of a user turn hold the state
of each service.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text, strip_json
from pytest_dstfuzz.dialogue.readers.source import SourceFile


def read_original(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of ``file`` in its order, texts exactly as they stand there.

    A last user turn without a system turn behind it has no label.
    """
    for raw_id, raw in as_object(file.json(), file.place, "the file").items():
        dialogue_id = strip_json(raw_id)
        where = f"dialogue {dialogue_id}"
        entry = as_object(raw, file.place, where)
        log = [
            as_object(item, file.place, f"{where}, utterance {index}")
            for index, item in enumerate(as_list(entry.get("log"), file.place, f"{where}: 'log'"))
        ]
        texts = [
            as_text(item.get("text"), file.place, f"{where}, utterance {index}: 'text'")
            for index, item in enumerate(log)
        ]
        states = [
            _labels(item.get("metadata"), file.place, f"{where}, utterance {index}", normalisation)
            for index, item in enumerate(log)
            if index % 2
        ]
        turns = (
            Turn(
                index=number,
                system=texts[start - 1] if start else "",
                user=texts[start],
                state=states[number] if number < len(states) else None,
            )
            for number, start in enumerate(range(0, len(texts), 2))
        )
        yield Dialogue(dialogue_id, tuple(turns))


def _labels(metadata: object, place: str, where: str, normalisation: str) -> BeliefState:
    state: dict[str, object] = {}
    for domain, raw in as_object(metadata, place, f"{where}: 'metadata'").items():
        frame = as_object(raw, place, f"{where}: 'metadata', domain {domain!r}")
        for part, prefix in (("semi", ""), ("book", "book ")):
            slots = as_object(frame.get(part, {}), place, f"{where}: {domain!r}, {part!r}")
            for slot, value in slots.items():
                if slot != "booked":  # What the system booked, not what the user wants.
                    state[f"{domain}-{prefix}{slot}"] = value
    return as_state(state, place, where, normalisation)


def read_sharded(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of one shard; of several values of a slot the first is taken."""
    for number, raw in enumerate(as_list(file.json(), file.place, "the file")):
        entry = as_object(raw, file.place, f"entry {number}")
        raw_id = as_text(entry.get("dialogue_id"), file.place, f"entry {number}: 'dialogue_id'")
        dialogue_id = strip_json(raw_id)
        where = f"dialogue {dialogue_id}"
        raw_turns = as_list(entry.get("turns"), file.place, f"{where}: 'turns'")
        yield Dialogue(dialogue_id, tuple(_of_shard(raw_turns, file.place, where, normalisation)))


def _of_shard(
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
            yield Turn(index, system, text, _of_frames(frames, place, where, normalisation))
            system, index = "", index + 1
        else:
            system = text


def _of_frames(frames: list[object], place: str, where: str, normalisation: str) -> BeliefState:
    state: dict[str, object] = {}
    for raw in frames:
        frame = as_object(raw, place, f"{where}: 'frames'")
        # Frames of services without a state carry only spans.
        inner = as_object(frame.get("state", {}), place, f"{where}: 'state'")
        values = inner.get("slot_values", {})
        state.update(as_object(values, place, f"{where}: 'slot_values'"))
    return as_state(state, place, where, normalisation)
