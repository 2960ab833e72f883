"""Dialogues written as messages and tools, in the form that `readers.messages` reads.

What was recorded with its messages comes back the same, texts, calls, results, tools, labels and
states. Of dialogues that are texts alone the messages are those of user and assistant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import Dialogue


def messages_of(dialogue: Dialogue) -> list[dict[str, Any]]:
    """Return all messages of a dialogue in the form of OpenAI's chat API."""
    messages: list[dict[str, Any]] = []
    for turn in dialogue.turns:
        if turn.recorded is not None:
            messages += map(json.loads, turn.recorded)
        elif turn.system:
            messages.append({"role": "assistant", "content": turn.system})
        messages.append({"role": "user", "content": turn.user})
    messages += map(json.loads, dialogue.closing)
    last = dialogue.turns[-1].answer if dialogue.turns else None
    if last and not dialogue.closing:
        messages.append({"role": "assistant", "content": last})
    return messages


def entry_of(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as one line of such a file: id, messages, tools, states if it has any."""
    entry: dict[str, Any] = {"id": dialogue.id, "messages": messages_of(dialogue)}
    if dialogue.tools:
        entry["tools"] = [_tool(tool) for tool in dialogue.tools]
    if any(turn.state is not None for turn in dialogue.turns):
        states = (turn.state for turn in dialogue.turns)
        entry["states"] = [None if state is None else state.to_json() for state in states]
    return entry


def _tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as APIs have it, with the hint of MCP where it only reads."""
    hint = {"annotations": {"readOnlyHint": True}} if tool.read_only else {}
    return tool.to_json() | hint


def json_lines(dialogues: Iterable[Dialogue]) -> Iterator[str]:
    """Yield dialogues as JSON Lines, one a line with its end."""
    return (f"{json.dumps(entry_of(one), ensure_ascii=False)}\n" for one in dialogues)
