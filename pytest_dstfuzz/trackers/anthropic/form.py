"""Messages and tools in the form of OpenAI's API, in that of Anthropic's, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.calls.messages import Json
from pytest_dstfuzz.trackers.validation import describe

#: What an id of a call must not hold there.
_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
_DATA_URL: Final = re.compile(r"data:(?P<type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)
#: Roles whose messages are instructions.
_SYSTEM: Final = ("system", "developer")
#: How a choice of tools is called there; any other is the name of a tool.
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
#: Why a message ended -> the same in the words of OpenAI's API.
_FINISHED: Final = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def request_of(messages: Sequence[Json]) -> Json:
    """Return ``system`` and ``messages`` of a request, of messages as readers make them.

    Those are in the form of OpenAI's API, with an id of each call and of each result.
    Instructions that stand before all else are the system prompt. Results of tools are parts of
    the user's message that follows, and messages of one role in a row are one.

    Raises:
        TrackerError: a part has no counterpart there, as a recording of a voice.
    """
    request: Json = {"messages": []}
    system: list[str] = []
    for message in messages:
        role = message.get("role")
        if role in _SYSTEM and not request["messages"]:
            system += [block.get("text", "") for block in _blocks(message.get("content"))]
            continue
        blocks = [*_of_message(message)]
        # Results have the form of something that the user says; instructions in the middle too:
        # not all models take any there.
        speaker = "assistant" if role == "assistant" else "user"
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


def _of_message(message: Json) -> Iterator[Json]:
    if message.get("role") == "tool":
        yield {
            "type": "tool_result",
            "tool_use_id": _id(message["tool_call_id"]),
            "content": [*_blocks(message.get("content"))],
        }
        return
    yield from _blocks(message.get("content") or message.get("refusal"))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {
            "type": "tool_use",
            "id": _id(call["id"]),
            "name": function.get("name", ""),
            "input": _input(function),
        }


def _input(function: Json) -> Json:
    """Return the arguments of a recorded call as an object."""
    try:
        found = json.loads(function["arguments"])
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    raise TrackerError(
        f"the recorded call of {function.get('name')!r} has {describe(function['arguments'])} as "
        "arguments: no JSON object, which Anthropic's API cannot be sent"
    )


def _blocks(content: object) -> Iterator[Json]:
    """Yield the blocks of a text, or of the parts of a message; empty texts are none there."""
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
                f"a recorded message has {describe(part)} as a part, for which Anthropic's API has "
                "nothing: texts and images"
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
    """Return tools of a request."""
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
    """Return the ``tool_choice`` of a request."""
    if isinstance(choice, str):
        return {"type": _CHOICES[choice]}
    assert isinstance(choice, Mapping)  # noqa: S101 - see `chosen`
    return {"type": "tool", "name": choice["function"]["name"]}


def answer_of(message: Mapping[str, Any]) -> Json:
    """Return an answer of Anthropic's API as a choice of a chat completion.

    What the model thought is left out. Where it was kept from answering, that is a ``refusal``.
    """
    blocks = [block for block in message["content"] if isinstance(block, Mapping)]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    said: Json = {"role": "assistant", "content": "".join(texts) or None}
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": _arguments(block.get("input"))},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    if calls:
        said["tool_calls"] = calls
    reason = message.get("stop_reason")
    if reason == "refusal":
        said["refusal"] = said["content"] or "the service stopped it"
    return {"message": said, "finish_reason": _FINISHED.get(str(reason), "stop")}


def _arguments(value: object) -> object:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
