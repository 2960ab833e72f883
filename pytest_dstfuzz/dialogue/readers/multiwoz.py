"""MultiWOZ as it is published, in two schemas.

The original one (``data.json`` of 2.0, 2.1, 2.3 and 2.4) is an object: dialogue id ->
``{"goal": ..., "log": [...]}``. The log alternates user and system; the state after a user turn
stands in ``metadata`` of the system turn behind it. The sharded one (of 2.2, that of the
schema-guided dialogue challenge) is a list of dialogues; the frames of a user turn hold the state
of each service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import (
    Reader,
    ReadOptions,
    SourceFile,
    as_label,
    checked,
    json_start,
)

#: Services of SGD are numbered, those of MultiWOZ 2.2 are its domains.
_SGD_SERVICE: Final = re.compile(r'"services?"\s*:\s*\[?\s*"[A-Za-z]+_\d+"')
_LOG: Final = re.compile(r'"log"\s*:\s*\[')


def schema_guided(file: SourceFile, head: str) -> str:
    """Return which schema-guided dialogues a file holds, ``sharded`` or ``sgd``; else ``""``."""
    if json_start(file, head) != "[" or '"dialogue_id"' not in head or '"turns"' not in head:
        return ""
    return "sgd" if _SGD_SERVICE.search(head) else "sharded"


class _Logged(msgspec.Struct):
    text: str
    metadata: dict[str, Any] | None = None


class _Logs(msgspec.Struct):
    log: list[_Logged]


class _Domain(msgspec.Struct):
    semi: dict[str, Any] = {}
    book: dict[str, Any] = {}


class _Values(msgspec.Struct):
    slot_values: dict[str, Any] = {}


class _Frame(msgspec.Struct):
    #: Frames of services without a state carry only spans.
    state: _Values = msgspec.field(default_factory=_Values)


class _Utterance(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = None


class _Shard(msgspec.Struct):
    dialogue_id: str
    turns: list[_Utterance]


class OriginalMultiwoz(Reader):
    """``data.json`` of MultiWOZ 2.0, 2.1, 2.3 and 2.4."""

    name = "original"
    about = "MultiWOZ's data.json"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Know an object whose dialogues have a log."""
        return 0.6 if json_start(file, head) == "{" and _LOG.search(head) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of ``file`` in its order, texts exactly as they stand there.

        A last user turn without a system turn behind it has no label.
        """
        for raw_id, raw in checked(dict[str, Any], file.json(), file.place).items():
            dialogue_id = raw_id.removesuffix(".json")
            place = f"{file.place}: dialogue {dialogue_id}"
            log = checked(_Logs, raw, place).log
            states = [
                _labels(item.metadata, f"{place}, utterance {index}", how.normalisation)
                for index, item in enumerate(log)
                if index % 2
            ]
            turns = (
                Turn(
                    index=number,
                    system=log[start - 1].text if start else "",
                    user=log[start].text,
                    state=states[number] if number < len(states) else None,
                )
                for number, start in enumerate(range(0, len(log), 2))
            )
            yield Dialogue(dialogue_id, tuple(turns))


class ShardedMultiwoz(Reader):
    """The files of MultiWOZ 2.2."""

    name = "sharded"
    about = "the sharded files of MultiWOZ 2.2"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Know schema-guided dialogues whose services have no numbers."""
        return 0.8 if schema_guided(file, head) == self.name else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of one shard; of several values of a slot the first is taken."""
        for entry, place in file.entries(_Shard, "dialogue_id"):
            turns: list[Turn] = []
            system = ""
            for number, said in enumerate(entry.turns):
                if said.speaker.upper() == "USER":
                    where = f"{place}, utterance {number}"
                    frames = checked(list[_Frame], said.frames, f"{where}: 'frames'")
                    state: dict[str, Any] = {}
                    for frame in frames:
                        state |= frame.state.slot_values
                    label = as_label(state, where, how.normalisation)
                    turns.append(Turn(len(turns), system, said.utterance, label))
                    system = ""
                else:
                    system = said.utterance
            yield Dialogue(entry.dialogue_id.removesuffix(".json"), tuple(turns))


def _labels(metadata: object, place: str, normalisation: str) -> BeliefState | None:
    state: dict[str, object] = {}
    for domain, raw in checked(dict[str, Any], metadata, f"{place}: 'metadata'").items():
        frame = checked(_Domain, raw, f"{place}: 'metadata', domain {domain!r}")
        # What the system booked is not what the user wants.
        booked = {f"book {slot}": value for slot, value in frame.book.items() if slot != "booked"}
        for slot, value in {**frame.semi, **booked}.items():
            state[f"{domain}-{slot}"] = value
    return as_label(state, place, normalisation)
