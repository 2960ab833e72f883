"""Recorded messages in the form of Anthropic's API, written in that of OpenAI's chat API.

Calls are blocks (``tool_use``) of a message of the assistant, results (``tool_result``) blocks of
the message of the user after it, and the system prompt stands beside the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import canonical
from pytest_dstfuzz.dialogue.readers.chat_form import (
    Message,
    Oddities,
    listed_messages,
    text_of_content,
)
from pytest_dstfuzz.dialogue.readers.source import checked
from pytest_dstfuzz.errors import DataError

#: Kinds of blocks that the other form does not have.
_OWN: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_BLOCK_FORM: Final = (
    '{"type": "tool_use", "id": "toolu_1", "name": "book", "input": {"people": 2}} of the '
    'assistant, {"type": "tool_result", "tool_use_id": "toolu_1", "content": "..."} of the user'
)


class _Prompt(msgspec.Struct):
    system: str | list[dict[str, Any]]


class _Blocks(msgspec.Struct):
    content: list[dict[str, Any]]


class _ToolUse(msgspec.Struct):
    id: str
    name: str
    input: dict[str, Any]


class _ToolResult(msgspec.Struct):
    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool = False


def is_anthropic(entry: Mapping[str, Any]) -> bool:
    """Whether the messages of an entry are in this form, as a block or the system prompt shows."""
    messages = entry.get("messages")
    return entry.get("system") is not None or any(
        isinstance(block, dict) and str(block.get("type")) in _OWN
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
    )


def chat_messages(entry: Mapping[str, Any], place: str, odd: Oddities) -> list[Message]:
    """Return the messages of an entry in the other form, the system prompt first."""
    found: list[Message] = []
    if entry.get("system") is not None:
        prompt = checked(_Prompt, {"system": entry["system"]}, place)
        found.append({"role": "system", "content": text_of_content(prompt.system)})
    for number, message in enumerate(listed_messages(entry["messages"], place)):
        content, where = message.get("content"), f"{place}: messages[{number}]"
        if not isinstance(content, list):
            found.append(message)
            continue
        blocks = checked(_Blocks, {"content": content}, where).content
        if message.get("role") == "assistant":
            found.append(_assistant(blocks, where, odd))
        else:
            found += _user({**message, "content": blocks}, where, odd)
    return found


def _assistant(blocks: list[dict[str, Any]], where: str, odd: Oddities) -> Message:
    texts, calls = [], []
    for number, block in enumerate(blocks):
        place, kind = f"{where}.content[{number}]", block.get("type")
        if kind == "tool_use":
            use = _block(_ToolUse, block, place)
            function = {"name": use.name, "arguments": canonical(use.input)}
            calls.append({"id": use.id, "type": "function", "function": function})
        elif kind == "text":
            texts.append(text_of_content([block]))
        else:
            odd.add(f"Blocks of the type {kind!r} of the assistant are left out", place)
    made: Message = {"role": "assistant", "content": "\n".join(texts) or None}
    return {**made, "tool_calls": calls} if calls else made


def _user(message: Message, where: str, odd: Oddities) -> Iterator[Message]:
    """Yield the results in a message of the user, and then what is left of it."""
    rest = []
    for number, block in enumerate(message["content"]):
        if block.get("type") != "tool_result":
            rest.append(_picture(block))
            continue
        place = f"{where}.content[{number}]"
        result = _block(_ToolResult, block, place)
        if result.is_error:
            odd.add("Results of tools are marked as errors: the mark is left out", place)
        content = result.content if isinstance(result.content, str) else result.content or ""
        yield {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}
    if rest:
        yield {**message, "content": rest}


def _block(kind: type[Any], block: dict[str, Any], place: str) -> Any:
    try:
        return checked(kind, block, place)
    except DataError as error:
        raise DataError(f"{error}; calls and results are {_BLOCK_FORM}") from None


def _picture(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of the user in the other form, where that has it."""
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return block
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": source.get("url") or data}}
