"""The assistant: ``(messages, tools) -> message`` in the form of OpenAI's chat API."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from pytest_dstfuzz.models.assistant import texts
from pytest_dstfuzz.models.assistant.memory import Memory, result_rows
from pytest_dstfuzz.models.assistant.network import Weights, shipped_weights
from pytest_dstfuzz.models.assistant.schema import ToolView, read_tools
from pytest_dstfuzz.models.assistant.turns import Decision, arguments, take_turn

Message = dict[str, Any]
#: Beginnings of dialogues that are kept: most requests share one with another.
_KEPT: Final = 4096


class Assistant:
    """Calls tools by the words of their schemas; runs offline, in numpy.

    Args:
        weights: of the network; those that ship where none are given.
    """

    #: The same messages and tools always give the same answer.
    repeatable = True

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = shipped_weights() if weights is None else weights
        self._kept: OrderedDict[str, tuple[Memory, Decision | None]] = OrderedDict()
        self._tools: OrderedDict[str, tuple[ToolView, ...]] = OrderedDict()

    @property
    def fingerprint(self) -> str:
        """What an answer depends on beside messages and tools."""
        return f"assistant-{self._weights.digest}"

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Message:
        """Return the assistant's next message: a call of a tool, or a text."""
        told = json.dumps(list(tools or ()), sort_keys=True, default=str)
        views = self._views(told, tools)
        memory, decision = self._replayed(messages, views, sha256(told.encode()).hexdigest())
        last = messages[-1] if messages else {}
        if decision is not None and last.get("role") == "user":
            return _answer(decision, memory, len(messages))
        if last.get("role") == "tool":
            rows = result_rows(_text_of(last.get("content")))
            return _text(texts.results(rows))
        return _text(texts.GREETING if decision is None else texts.MORE)

    def _views(self, told: str, tools: Sequence[Mapping[str, Any]]) -> tuple[ToolView, ...]:
        if told not in self._tools:
            self._tools[told] = read_tools(tools)
            if len(self._tools) > 256:
                self._tools.popitem(last=False)
        return self._tools[told]

    def _replayed(
        self, messages: Sequence[Mapping[str, Any]], tools: tuple[ToolView, ...], key: str
    ) -> tuple[Memory, Decision | None]:
        """Go through the dialogue, from where a request before this one has been."""
        keys = [key]
        for message in messages:
            text = json.dumps(message, sort_keys=True, default=str)
            keys.append(sha256(f"{keys[-1]} {text}".encode()).hexdigest())
        done = len(messages)
        while done and keys[done] not in self._kept:
            done -= 1
        kept = self._kept.get(keys[done]) if done else None
        memory, decision = kept if kept is not None else (Memory(), None)
        memory = memory.copy()
        by_name = {tool.name: tool for tool in tools}
        for place in range(done, len(messages)):
            message = messages[place]
            if message.get("role") == "user":
                text = _text_of(message.get("content"))
                decision = take_turn(self._weights, memory, tools, text)
                self._keep(keys[place + 1], memory, decision)
            else:
                hear(memory, message, by_name)
        return memory, decision

    def _keep(self, key: str, memory: Memory, decision: Decision) -> None:
        self._kept[key] = memory.copy(), decision
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


def hear(memory: Memory, message: Mapping[str, Any], tools: Mapping[str, ToolView]) -> None:
    """Note a message that is not the user's; what cannot be read of it is passed over."""
    role = message.get("role")
    if role in ("tool", "function"):
        memory.hear_result(memory.active or "", _text_of(message.get("content")))
    elif role == "assistant":
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                given = _object(function.get("arguments"))
                memory.hear_call(tools.get(function["name"]), function["name"], given)
        memory.hear_text(_text_of(message.get("content")))


def _text_of(content: object) -> str:
    """Return the text of a message: its content, or the texts of its parts, a line each."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in found if isinstance(text, str))


def _object(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}


def _answer(decision: Decision, memory: Memory, place: int) -> Message:
    tool = decision.tool
    if tool is None:
        return _text(texts.MORE if memory.active else texts.UNABLE)
    if decision.call:
        given = json.dumps(arguments(tool, memory), ensure_ascii=False)
        call = {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": tool.name, "arguments": given},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if decision.missing:
        return _text(texts.question(decision.missing[0]))
    if tool.name in memory.calls and memory.calls[tool.name] == _as_called(tool, memory):
        return _text(texts.MORE)
    return _text(texts.confirmation(tool, memory))


def _as_called(tool: ToolView, memory: Memory) -> dict[str, str]:
    return {slot.name: memory.values[slot] for slot in tool.slots if slot in memory.values}


def _text(text: str) -> Message:
    return {"role": "assistant", "content": text}
