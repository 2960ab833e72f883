"""Schemas of SGD and of MultiWOZ 2.2: services, their slots, and intents, which are tools.

SGD-X has five paraphrases of each schema of SGD, element by element in the same order: services,
intents and slots have other names and descriptions, and the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool, canonical
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.source import SourceFile, checked
from pytest_dstfuzz.dialogue.renaming import ToolParaphrase
from pytest_dstfuzz.errors import DataError


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
