"""The schema-guided dialogues (SGD): a list of dialogues in each file, and a schema beside them.

The form is that of MultiWOZ 2.2, with three differences: slots are named within their service
(``Restaurants_2``, slot ``date``), a user turn has the states of those services alone that it is
about, and a value stands there in all the spellings in which it was said so far.

With tools (the intents of the schema) the calls that the system made of its services are read, too:
each as a message before the utterance of the system, with its results after it.

Schemas, of SGD and of MultiWOZ 2.2, hold services, their slots, and intents, which are tools. SGD-X
has five paraphrases of each schema of SGD, element by element in the same order: services, intents
and slots have other names and descriptions, and the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS
from pytest_dstfuzz.dialogue.readers.messages import turns_of
from pytest_dstfuzz.dialogue.readers.multiwoz import schema_guided
from pytest_dstfuzz.dialogue.readers.source import (
    Oddities,
    Reader,
    ReadOptions,
    SourceFile,
    as_state,
    checked,
)
from pytest_dstfuzz.dialogue.renaming import ToolParaphrase
from pytest_dstfuzz.errors import DataError, nearest


class _ServiceState(msgspec.Struct):
    slot_values: dict[str, list[str]] = {}


class _ServiceCall(msgspec.Struct):
    method: str
    parameters: dict[str, Any]


class _ServiceFrame(msgspec.Struct):
    service: str
    #: Frames of the system have none.
    state: _ServiceState | None = None
    #: Only frames of the system may have one.
    service_call: _ServiceCall | None = None
    service_results: list[dict[str, Any]] = []


class _Spoken(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = ()


class _Conversation(msgspec.Struct):
    dialogue_id: str
    turns: list[_Spoken]
    services: list[str] = []


class Sgd(Reader):
    """SGD as it is published."""

    name = "sgd"
    about = "SGD's dialogues_*.json"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Know schema-guided dialogues by the numbers of their services."""
        return 0.8 if schema_guided(file, head) == self.name else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of one file; slots are called ``service-slot``.

        A service keeps its state until a turn has another one. Of several spellings of a value that
        of the turn before is taken where it is still there, else the first. For tool calls the
        calls of the services are read, too.
        """
        tools = _tools_of(how) if how.outcome == TOOL_CALLS else None
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
                state = as_state(label, where, how.normalisation)
                turns.append(Turn(len(turns), system, said.utterance, state))
                system = ""
            dialogue = Dialogue(entry.dialogue_id, tuple(turns))
            yield dialogue if tools is None else _with_calls(dialogue, entry, place, tools)

    def phrases(self, how: ReadOptions) -> Mapping[str, str]:
        """Return the names of the slots in the schema, if there is one."""
        return schema_phrases(how.schemas[0], how.normalisation) if how.schemas else {}


@lru_cache(maxsize=1)  # The files of one load have one schema.
def _tools_of(how: ReadOptions) -> dict[str, tuple[Tool, ...]]:
    if not how.schemas:
        raise DataError(
            f"{how.source}: the tools of SGD's dialogues are in a schema.json, which is not "
            "there: give the folder or zip of the split, which has both"
        )
    return schema_tools(how.schemas[0])


def _with_calls(
    dialogue: Dialogue, entry: _Conversation, place: str, tools: Mapping[str, tuple[Tool, ...]]
) -> Dialogue:
    """Return a dialogue with its calls; the states of its turns stay."""
    unknown = next((name for name in entry.services if name not in tools), None)
    if unknown is not None:
        close = nearest(unknown, tools)
        hint = f" Did you mean {close!r}?" if close else ""
        raise DataError(f"{place}: the service {unknown!r} is not in the schema.{hint}")
    messages: list[Message] = []
    for number, said in enumerate(entry.turns):
        if said.speaker.upper() == "USER":
            messages.append(Message("user", said.utterance))
            continue
        frames = checked(list[_ServiceFrame], said.frames, f"{place}, utterance {number}: 'frames'")
        messages += _called(frames, len(messages))
        messages.append(Message("assistant", said.utterance))
    turns, closing = turns_of(messages, place, Oddities())
    if len(turns) != len(dialogue.turns):
        raise DataError(f"{place}: an utterance of the user is empty; leave it out")
    labelled = (
        replace(turn, state=before.state)
        for turn, before in zip(turns, dialogue.turns, strict=True)
    )
    offered = tuple(tool for name in entry.services for tool in tools[name])
    return Dialogue(dialogue.id, tuple(labelled), offered, closing)


def _called(frames: Sequence[_ServiceFrame], first: int) -> list[Message]:
    """Return the message with the calls of one turn of the system, and those with their results."""
    calls: dict[str, ToolCall] = {}
    results: list[Message] = []
    for number, frame in enumerate(frames, start=first):
        call = frame.service_call
        if call is not None:
            name = tool_name(frame.service, call.method)
            calls[f"call_{number}"] = ToolCall(name, call.parameters)
            content = canonical(frame.service_results)
            results.append(Message("tool", content, answers=f"call_{number}"))
    return [calling(None, calls.values(), calls), *results] if calls else []


def _values(given: Mapping[str, list[str]], before: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for slot, spellings in given.items():
        if spellings:
            old = before.get(slot)
            found[slot] = old if old in spellings else spellings[0]
    return found


class _Intent(msgspec.Struct):
    name: str = ""
    description: str = ""
    required_slots: list[str] = []
    #: In SGD each with the value that stands for it where nobody says one.
    optional_slots: Any = ()
    #: Whether it changes something, such as to book, or only looks something up.
    is_transactional: bool = True


class _SchemaSlot(msgspec.Struct):
    name: str
    description: str = ""
    is_categorical: bool = False
    possible_values: list[Any] = []


class _SchemaService(msgspec.Struct):
    slots: list[_SchemaSlot]
    service_name: str = ""
    description: str = ""
    intents: list[_Intent] = []


#: Services of SGD are numbered; those of MultiWOZ 2.2 are its domains, and name their slots whole.
_NUMBERED: Final = re.compile(r"\w+_\d+")


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


def schema_tools(file: SourceFile) -> dict[str, tuple[Tool, ...]]:
    """Return the tools of each service of SGD: its intents, in the order of the schema.

    A tool is called ``service_intent``, as two services of a dialogue may have intents of one
    name. Its arguments are texts, as those of the recorded calls are.
    """
    services = checked(list[_SchemaService], file.json(), file.place)
    return {
        service.service_name: tuple(
            _tool(service, intent, file.place) for intent in service.intents
        )
        for service in services
    }


def tool_name(service: str, intent: str) -> str:
    """Return what the tool of an intent is called."""
    return f"{service}_{intent}"


def _tool(service: _SchemaService, intent: _Intent, place: str) -> Tool:
    slots = {slot.name: slot for slot in service.slots}
    optional = checked(
        dict[str, str],
        intent.optional_slots,
        f"{place}: {service.service_name}, {intent.name}: optional_slots",
    )
    properties: dict[str, dict[str, Any]] = {}
    for name in (*intent.required_slots, *optional):
        if name not in slots:
            raise DataError(
                f"{place}: the intent {intent.name} of {service.service_name} has the slot "
                f"{name!r}, which is not among its slots"
            )
        slot = slots[name]
        properties[name] = {"type": "string", "description": slot.description}
        if slot.is_categorical:
            properties[name]["enum"] = slot.possible_values
        if optional.get(name, "dontcare") != "dontcare":
            properties[name]["default"] = optional[name]
    parameters = {
        "type": "object",
        "properties": properties,
        "required": intent.required_slots,
    }
    described = f"{intent.description} ({service.description})"
    name = tool_name(service.service_name, intent.name)
    return Tool(name, described, canonical(parameters), not intent.is_transactional)


def paraphrase(original: SourceFile, other: SourceFile, name: str) -> ToolParaphrase:
    """Return the tools of a schema as another schema has them, element by element.

    A `DataError` names the first service whose intents or slots are not as many, or not alike.
    """
    ours = checked(list[_SchemaService], original.json(), original.place)
    theirs = checked(list[_SchemaService], other.json(), other.place)
    if len(ours) != len(theirs):
        raise DataError(
            f"{other.place} has {len(theirs)} services, {original.place} has {len(ours)}: it is no "
            "paraphrase of it"
        )
    tools: dict[str, Tool] = {}
    arguments: dict[str, dict[str, str]] = {}
    for service, twin in zip(ours, theirs, strict=True):
        place = f"{other.place}: {twin.service_name}, in the place of {service.service_name},"
        if len(service.slots) != len(twin.slots) or len(service.intents) != len(twin.intents):
            raise DataError(f"{place} has other numbers of slots or intents")
        slots = {a.name: b.name for a, b in zip(service.slots, twin.slots, strict=True)}
        for intent, new in zip(service.intents, twin.intents, strict=True):
            taken = (*intent.required_slots, *intent.optional_slots)
            if [slots.get(each) for each in taken] != [*new.required_slots, *new.optional_slots]:
                raise DataError(f"{place} has other slots in {new.name} than {intent.name} has")
            old = tool_name(service.service_name, intent.name)
            tools[old] = _tool(twin, new, other.place)
            arguments[old] = {each: slots[each] for each in taken}
    return ToolParaphrase(name, tools, arguments)
