"""The original ``data.json`` schema of MultiWOZ 2.0, 2.1, 2.3 and 2.4.

An object: dialogue id -> ``{"goal": ..., "log": [...]}``. The log alternates user and
system; the state after a user turn stands in ``metadata`` of the system turn behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text, strip_json
from pytest_dstfuzz.dialogue.readers.source import SourceFile


def read(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of ``file`` in its order, texts exactly as they stand there.

    A last user turn without a system turn behind it has no label.

    Raises:
        DataError: another structure; the message names the dialogue and the field.
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
            _state(item.get("metadata"), file.place, f"{where}, utterance {index}", normalisation)
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


def _state(metadata: object, place: str, where: str, normalisation: str) -> BeliefState:
    state: dict[str, object] = {}
    for domain, raw in as_object(metadata, place, f"{where}: 'metadata'").items():
        frame = as_object(raw, place, f"{where}: 'metadata', domain {domain!r}")
        for part, prefix in (("semi", ""), ("book", "book ")):
            slots = as_object(frame.get(part, {}), place, f"{where}: {domain!r}, {part!r}")
            for slot, value in slots.items():
                if slot != "booked":  # What the system booked, not what the user wants.
                    state[f"{domain}-{prefix}{slot}"] = value
    return as_state(state, place, where, normalisation)
