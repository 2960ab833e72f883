"""The schema-guided dialogues (SGD): a list of dialogues in each file, and a schema beside them.

The form is that of MultiWOZ 2.2, with three differences: slots are named within their service
(``Restaurants_2``, slot ``date``), a user turn has the states of those services alone that it is
about, and a value stands there in all the spellings in which it was said so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.source import SourceFile, as_state, checked


class _ServiceState(msgspec.Struct):
    slot_values: dict[str, list[str]] = {}


class _ServiceFrame(msgspec.Struct):
    service: str
    #: Frames of the system have none.
    state: _ServiceState | None = None


class _Spoken(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = ()


class _Conversation(msgspec.Struct):
    dialogue_id: str
    turns: list[_Spoken]


class _Intent(msgspec.Struct):
    required_slots: list[str] = []
    optional_slots: Any = ()


class _SchemaSlot(msgspec.Struct):
    name: str
    is_categorical: bool = False
    possible_values: list[Any] = []


class _SchemaService(msgspec.Struct):
    slots: list[_SchemaSlot]
    service_name: str = ""
    intents: list[_Intent] = []


#: Services of SGD are numbered; those of MultiWOZ 2.2 are its domains, and name their slots whole.
_NUMBERED: Final = re.compile(r"\w+_\d+")


def read_sgd(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of one file; slots are called ``service-slot``.

    A service keeps its state until a turn has another one. Of several spellings of a value that
    of the turn before is taken where it is still there, else the first.
    """
    for entry, place in file.entries(_Conversation, "dialogue_id"):
        turns: list[Turn] = []
        system = ""
        states: dict[str, dict[str, str]] = {}
        for number, said in enumerate(entry.turns):
            if said.speaker.upper() != "USER":
                system = said.utterance
                continue
            where = f"{place}, utterance {number}"
            for frame in checked(list[_ServiceFrame], said.frames, f"{where}: 'frames'"):
                if frame.state is not None:
                    before = states.get(frame.service, {})
                    states[frame.service] = _values(frame.state.slot_values, before)
            label = {
                f"{service}-{slot}": value
                for service, values in states.items()
                for slot, value in values.items()
            }
            state = as_state(label, where, normalisation)
            turns.append(Turn(len(turns), system, said.utterance, state))
            system = ""
        yield Dialogue(entry.dialogue_id, tuple(turns))


def _values(given: Mapping[str, list[str]], before: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for slot, spellings in given.items():
        if spellings:
            old = before.get(slot)
            found[slot] = old if old in spellings else spellings[0]
    return found


def schema_values(file: SourceFile) -> Iterator[tuple[str, list[Any]]]:
    """Yield the slots of a schema with the values that are listed for them.

    Of SGD those slots that an intent takes, as a user fills no others, called ``service-slot``;
    of open ones the list is a sample, and is left out.
    """
    for service in checked(list[_SchemaService], file.json(), file.place):
        of_sgd = _NUMBERED.fullmatch(service.service_name) is not None
        taken = {
            slot
            for intent in service.intents
            for slot in (*intent.required_slots, *intent.optional_slots)
        }
        for slot in service.slots:
            if not of_sgd:
                yield slot.name, slot.possible_values
            elif slot.name in taken or not service.intents:
                values = slot.possible_values if slot.is_categorical else []
                yield f"{service.service_name}-{slot.name}", values


def schema_phrases(file: SourceFile, normalisation: str) -> dict[str, str]:
    """Return what people call the slots of a schema: their names, written with blanks.

    Those of yes and no are left out: nobody gives them a value by name.
    """
    found = {}
    for slot, values in schema_values(file):
        name = normalise_slot(slot, normalisation)
        if name is not None and {str(value).lower() for value in values} != {"true", "false"}:
            found[name] = slot.partition("-")[2].replace("_", " ")
    return dict(sorted(found.items()))
