"""Contexts and dialogues written as messages and tools, in the form of OpenAI's chat API.

All that was recorded comes back the same: texts, calls, results, tools, labels and states. Of
dialogues that are texts alone the messages are those of user and assistant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.dialogue.messages import Json

#: Whose message is what the system says before the user has said anything: a greeting, or a
#: title and a story that the questions are about.
OpeningRole = Literal["assistant", "system"]


class Prompted(NamedTuple):
    """What an assistant is given."""

    messages: list[Json]
    tools: list[Json]


def messages_of(context: Context, opening: OpeningRole = "assistant") -> list[dict[str, str]]:
    """Return a dialogue as messages in the form of OpenAI's API, oldest first.

    Each has a ``role``, ``user`` or ``assistant``, and its text as ``content``; where the system
    said nothing, there is no message of it. What it said before the first user utterance has the
    role ``opening``.
    """
    messages = []
    role: str = opening
    for system, user in context.exchanges:
        if system:
            messages.append({"role": role, "content": system})
        messages.append({"role": "user", "content": user})
        role = "assistant"
    return messages


def messages_and_tools(context: Context, opening: OpeningRole = "assistant") -> Prompted:
    """Return a context as messages and tools in the form of OpenAI's API, oldest message first.

    What was recorded stands as it was: system prompts, tool calls, their results. Where only texts
    are known, they are messages as in `messages_of`.
    """
    transcript = context.transcript
    if transcript is None:
        return Prompted([dict(one) for one in messages_of(context, opening)], [])
    messages: list[Json] = []
    for place, exchange in enumerate(context.exchanges):
        before = transcript.before[place] if place < len(transcript.before) else None
        if before is not None:
            messages += map(json.loads, before)
        elif exchange.system:
            role = "assistant" if place else opening
            messages.append({"role": role, "content": exchange.system})
        messages.append({"role": "user", "content": exchange.user})
    messages += map(json.loads, transcript.after)
    return Prompted(messages, [tool.to_json() for tool in transcript.tools])


def whole_dialogue(dialogue: Dialogue) -> list[Json]:
    """Return all messages of a dialogue."""
    messages: list[Json] = []
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
    entry: dict[str, Any] = {"id": dialogue.id, "messages": whole_dialogue(dialogue)}
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
