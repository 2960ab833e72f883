"""Dialogues about tables in restaurants, with tools and what was recorded beside the texts."""

from __future__ import annotations

import json

from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn

_PEOPLE = {"type": "integer"}
BOOK = Tool(
    "book_table",
    "Book a table.",
    json.dumps({"properties": {"people": _PEOPLE}, "type": "object"}, sort_keys=True),
)
FIND = Tool("find_menu", "Find the menu of today.")
_FOUND = (
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_9",
                "type": "function",
                "function": {"name": "find_menu", "arguments": '{"day": "today"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_9", "content": '{"soup": "leek"}'},
    {"role": "assistant", "content": "There is leek soup."},
)
_SYSTEM = {"role": "system", "content": "You work in a restaurant."}
TURNS = (
    Turn(
        0,
        "",
        "What is on the menu today?",
        recorded=(json.dumps(_SYSTEM),),
        calls=calls_outcome([ToolCall("find_menu", {"day": "today"})]),
    ),
    Turn(
        1,
        "There is leek soup.",
        "A table for two, please.",
        recorded=tuple(map(json.dumps, _FOUND)),
        calls=calls_outcome([ToolCall("book_table", {"people": 2})]),
    ),
)
DIALOGUE = Dialogue("t1", TURNS, tools=(BOOK, FIND))
DATA = DialogueSet("tables", "test", (DIALOGUE,))
#: Of its last turn.
CONTEXT: Context = DIALOGUE.context(1)
#: The messages that it is asked with.
MESSAGES = [
    _SYSTEM,
    {"role": "user", "content": TURNS[0].user},
    *_FOUND,
    {"role": "user", "content": TURNS[1].user},
]
