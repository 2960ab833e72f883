"""Converts messages and tools between the APIs of Anthropic and OpenAI.

In Anthropic's form, calls are blocks (``tool_use``) of an assistant message and results are blocks
(``tool_result``) of the next user message. The system prompt is separate from the messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import canonical
from pytest_dstfuzz.dialogue.messages import PROMPTS, Json, Message, of_json, text_of_content
from pytest_dstfuzz.dialogue.readers.source import Oddities, convert_checked
from pytest_dstfuzz.errors import DataError, TrackerError
from pytest_dstfuzz.printable import describe

#: Types of blocks that only exist in Anthropic's form.
_OWN: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_BLOCK_FORM: Final = (
    '{"type": "tool_use", "id": "toolu_1", "name": "book", "input": {"people": 2}} in assistant '
    'messages, {"type": "tool_result", "tool_use_id": "toolu_1", "content": "..."} in user messages'
)
#: Characters that Anthropic does not allow in the id of a call.
_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
_DATA_URL: Final = re.compile(r"data:(?P<type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)
#: OpenAI's tool choice -> Anthropic's. Any other choice is the name of a tool.
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
#: Anthropic's stop reason -> OpenAI's finish reason.
_FINISHED: Final = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class _ListedMessages(msgspec.Struct):
    messages: list[dict[str, Any]]


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
    """Return whether an entry has Anthropic's form: the key ``system``, or one of its blocks."""
    messages = entry.get("messages")
    return entry.get("system") is not None or any(
        isinstance(block, dict) and str(block.get("type")) in _OWN
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
    )


def chat_messages(entry: Mapping[str, Any], place: str, odd: Oddities) -> list[Json]:
    """Convert the messages of an entry to OpenAI's form, with the system prompt first."""
    found: list[Json] = []
    if entry.get("system") is not None:
        prompt = convert_checked(_Prompt, {"system": entry["system"]}, place)
        found.append({"role": "system", "content": text_of_content(prompt.system)})
    listed = convert_checked(_ListedMessages, {"messages": entry["messages"]}, place).messages
    for number, message in enumerate(listed):
        content, where = message.get("content"), f"{place}: messages[{number}]"
        if not isinstance(content, list):
            found.append(message)
            continue
        blocks = convert_checked(_Blocks, {"content": content}, where).content
        if message.get("role") == "assistant":
            found.append(_assistant(blocks, where, odd))
        else:
            found += _user({**message, "content": blocks}, where, odd)
    return found


def _assistant(blocks: list[dict[str, Any]], where: str, odd: Oddities) -> Json:
    texts, calls = [], []
    for number, block in enumerate(blocks):
        place, kind = f"{where}.content[{number}]", block.get("type")
        if kind == "tool_use":
            _block(_ToolUse, block, place)
            calls.append(_call(block))
        elif kind == "text":
            texts.append(text_of_content([block]))
        else:
            odd.add(
                f"Assistant messages have blocks of the type {kind!r}, which are ignored", place
            )
    made: Json = {"role": "assistant", "content": "\n".join(texts) or None}
    return {**made, "tool_calls": calls} if calls else made


def _user(message: Json, where: str, odd: Oddities) -> Iterator[Json]:
    """Yield the results in a user message, then the rest of the message."""
    rest = []
    for number, block in enumerate(message["content"]):
        if block.get("type") != "tool_result":
            rest.append(_picture(block))
            continue
        place = f"{where}.content[{number}]"
        result = _block(_ToolResult, block, place)
        if result.is_error:
            odd.add("Tool results are marked as errors; the mark is ignored", place)
        content = result.content if isinstance(result.content, str) else result.content or ""
        yield {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}
    if rest:
        yield {**message, "content": rest}


def _block(kind: type[Any], block: dict[str, Any], place: str) -> Any:
    try:
        return convert_checked(kind, block, place)
    except DataError as error:
        raise DataError(f"{error}; the form of calls and results is {_BLOCK_FORM}") from None


def _picture(block: dict[str, Any]) -> dict[str, Any]:
    """Convert an image block of the user to OpenAI's form. Return other blocks unchanged."""
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return block
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": source.get("url") or data}}


def request_of(messages: Sequence[Mapping[str, Any]]) -> Json:
    """Convert recorded messages to ``system`` and ``messages`` of a request to Anthropic's API.

    Recorded messages have OpenAI's form, and each call and each result has an id. Instructions
    before all other messages become the system prompt. Results of tools become parts of the next
    user message. Consecutive messages of one role are merged.

    Raises:
        TrackerError: If a part has no counterpart in Anthropic's API, such as audio.
    """
    request: Json = {"messages": []}
    system: list[str] = []
    for message in map(of_json, messages):
        if message.role in PROMPTS and not request["messages"]:
            system += [block.get("text", "") for block in _blocks(message.content)]
            continue
        blocks = [*_of_message(message)]
        # Results are user messages in this API. Later instructions become user messages too,
        # because not all models accept them inside a conversation.
        speaker = "assistant" if message.role == "assistant" else "user"
        said: list[Json] = request["messages"]
        if not blocks:
            continue
        if said and said[-1]["role"] == speaker:
            said[-1]["content"] += blocks
        else:
            said.append({"role": speaker, "content": blocks})
    if system:
        request["system"] = "\n\n".join(system)
    return request


def _of_message(message: Message) -> Iterator[Json]:
    if message.role == "tool":
        yield {
            "type": "tool_result",
            "tool_use_id": _id(message.answers or ""),
            "content": [*_blocks(message.content)],
        }
        return
    yield from _blocks(message.content or message.more.get("refusal"))
    for call in message.calls:
        values = call.values
        if values is None:
            raise TrackerError(
                f"the recorded call of {call.name!r} has {describe(call.arguments)} as "
                "arguments: Anthropic's API accepts only a JSON object"
            )
        yield {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": values}


def _blocks(content: object) -> Iterator[Json]:
    """Yield the blocks of a text or of the parts of a message. Empty texts are skipped."""
    parts: list[Any] = content if isinstance(content, list) else [content]
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else "text"
        if kind == "image_url":
            yield {"type": "image", "source": _image(part)}
        elif kind in ("text", "refusal") and isinstance(text := _text(part), str):
            if text.strip():
                yield {"type": "text", "text": text}
        else:
            raise TrackerError(
                f"a recorded message has {describe(part)} as a part: Anthropic's API accepts only "
                "texts and images"
            )


def _text(part: Any) -> object:
    return part.get(part["type"]) if isinstance(part, Mapping) else part or ""


def _image(part: Mapping[str, Any]) -> Json:
    given = part.get("image_url")
    url = str(given.get("url", "") if isinstance(given, Mapping) else given)
    found = _DATA_URL.fullmatch(url)
    if found is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": found["type"], "data": found["data"]}


def _id(text: str) -> str:
    return _NO_ID.sub("_", text)


def tools_of(tools: Sequence[Json]) -> list[Json]:
    """Convert tools from OpenAI's form to the form for requests to Anthropic's API."""
    found = []
    for tool in tools:
        function = tool["function"]
        schema = {"type": "object", "properties": {}, **(function.get("parameters") or {})}
        one = {"name": function["name"], "input_schema": schema}
        if description := function.get("description"):
            one["description"] = description
        found.append(one)
    return found


def choice_of(choice: object) -> Json:
    """Convert a tool choice from OpenAI's form to the form for requests to Anthropic's API."""
    if isinstance(choice, str):
        return {"type": _CHOICES[choice]}
    assert isinstance(choice, Mapping)  # noqa: S101 - see `convert_choice`
    return {"type": "tool", "name": choice["function"]["name"]}


def answer_of(message: Mapping[str, Any]) -> Json:
    """Convert an answer of Anthropic's API to a choice of a chat completion.

    The model's thinking is dropped. If the service stopped the answer, the text becomes a
    ``refusal``.
    """
    blocks = [block for block in message["content"] if isinstance(block, Mapping)]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    said: Json = {"role": "assistant", "content": "".join(texts) or None}
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    if calls:
        said["tool_calls"] = calls
    reason = message.get("stop_reason")
    if reason == "refusal":
        said["refusal"] = said["content"] or "the service stopped the answer"
    return {"message": said, "finish_reason": _FINISHED.get(str(reason), "stop")}


def _call(block: Mapping[str, Any]) -> Json:
    """Convert a call block. Its input stays a text if the streamed input is not valid JSON."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else canonical(given)
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}
