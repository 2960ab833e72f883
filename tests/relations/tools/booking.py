"""Own dialogues with tools, and an assistant by rules that they have no violation of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn


def tool(name: str, description: str, required: Sequence[str], **properties: object) -> Tool:
    """Return a tool; each property is the JSON schema of a parameter."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, description, canonical(schema))


def described(kind: str, description: str, **more: object) -> dict[str, object]:
    """Return the JSON schema of a parameter."""
    return {"type": kind, "description": description, **more}


BOOK = tool(
    "book_table",
    "Books a table in a restaurant.",
    ["people", "day"],
    people=described("integer", "How many people come."),
    day=described("string", "Day of the week.", enum=["friday", "saturday", "sunday"]),
    area=described("string", "Part of the town.", enum=["north", "south", "centre"]),
    terrace=described("boolean", "Whether to sit on the terrace."),
)
TAXI = tool(
    "call_taxi",
    "Orders a taxi.",
    ["people"],
    people=described("integer", "How many people ride."),
    luggage=described("boolean", "Whether there is luggage."),
)
RECEIPT = tool("send_receipt", "Mails a receipt.", [], copy=described("boolean", "Two of them."))
TOOLS = (BOOK, TAXI, RECEIPT)
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
DAYS = ("friday", "saturday", "sunday")
AREAS = ("north", "south", "centre")


def called(*calls: ToolCall, number: int = 0) -> dict[str, Any]:
    """Return the message that makes some calls."""
    made = [
        {
            "id": f"call_{number + place}",
            "type": "function",
            "function": {"name": one.name, "arguments": canonical(one.arguments)},
        }
        for place, one in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answered(number: int, **result: object) -> dict[str, Any]:
    """Return the result of a call."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(result)}


def said(text: str) -> dict[str, Any]:
    """Return a message that is a text."""
    return {"role": "assistant", "content": text}


def dialogue(
    name: str, *exchanges: tuple[str, ToolCall | None], tools: tuple[Tool, ...] = TOOLS
) -> Dialogue:
    """Return a dialogue of what the user says, each with the call that follows, answered."""
    blocks: list[list[dict[str, Any]]] = [[]]
    for number, (_, call) in enumerate(exchanges):
        block = [called(call, number=number), answered(number, ok=True)] if call else []
        blocks.append([*block, said("Done." if call else "All right.")])
    turns = tuple(
        Turn(
            index,
            blocks[index][-1]["content"] if index else "",
            user,
            recorded=tuple(map(canonical, blocks[index])),
            calls=calls_outcome([call] if call else []),
        )
        for index, (user, call) in enumerate(exchanges)
    )
    return Dialogue(name, turns, tools, tuple(map(canonical, blocks[-1])))


TABLE = ToolCall("book_table", {"people": 2, "day": "friday", "area": "north"})
RIDE = ToolCall("call_taxi", {"people": 3})
TALKS = DialogueSet(
    "booking",
    "test",
    (
        dialogue(
            "table",
            ("I would like to book a table for 2 people on friday in the north please .", TABLE),
            ("many thanks , that is all that we wanted to know", None),
        ),
        dialogue(
            "taxi",
            ("we need a taxi for 3 people to the old station as soon as you can", RIDE),
            ("thank you and goodbye", None),
        ),
        dialogue(
            "terrace",
            (
                "please book a table for 4 people on sunday with a terrace",
                ToolCall("book_table", {"people": 4, "day": "sunday", "terrace": True}),
            ),
        ),
    ),
)


def right(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> object:
    """Call the tool whose description has a word of what is asked for, by its parameters' names.

    It reads the schema, so that other names are no matter.
    """
    text = str(messages[-1]["content"]).lower()
    for one in tools:
        function = one["function"]
        wanted = "taxi" if "taxi" in function["description"] else "table"
        if wanted not in text or wanted not in function["description"]:
            continue
        schema = function["parameters"]
        found = {
            name: value
            for name, inner in schema["properties"].items()
            if (value := _value(inner["description"], text)) is not None
        }
        if set(schema["required"]) <= found.keys():
            return [ToolCall(function["name"], found)]
    return "Nothing of that kind is on my list."


def _value(description: str, text: str) -> object:
    """Return what a text says last of a parameter."""
    if "people" in description.lower():
        numbers = re.findall(r"\b\d+\b|\b(?:two|three|four|five|six)\b", text)
        return WORDS.get(numbers[-1]) or int(numbers[-1]) if numbers else None
    if "terrace" in description:
        asked = "terrace" in text and not re.search(r"without|not |no ", text)
        return True if asked else None
    choices = DAYS if "Day" in description else AREAS if "town" in description else ()
    places = [(text.rfind(one), one) for one in choices if one in text]
    return max(places)[1] if places else None
