"""Anthropic's API as its client library knows it: what may be sent, and what may be answered.

A service on loopback that refuses every request that the library's types do not have, and whose
answers are made of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from loopback import Asked, Says, Service, serving
from pydantic import TypeAdapter, ValidationError

_REQUEST: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)
_STREAMED: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
#: Of an answer: its blocks.
Blocks = Sequence[dict[str, Any]]


def checked(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request; one that the types do not have in all its parts is an error."""
    kind = _STREAMED if body.get("stream") else _REQUEST
    found = _drained(kind.validate_python(body))
    # What the types do not know is left out of what they make.
    assert found == body, f"unknown parts: {sorted({*body} - {*found})} of {body}"
    return body


def _drained(value: Any) -> Any:
    """Return a value whose lists are whole: their types are those of any iterable."""
    if isinstance(value, Mapping):
        return {key: _drained(part) for key, part in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    return [_drained(part) for part in value]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said, "citations": None}


def message(blocks: Blocks, stop: str = "end_turn") -> dict[str, Any]:
    """Return an answer of 12 tokens in, 4 of them from a cache, and 5 out."""
    usage = {"input_tokens": 8, "cache_read_input_tokens": 4, "output_tokens": 5}
    made = Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "tiny",
            "content": [*blocks],
            "stop_reason": stop,
            "usage": usage,
        }
    )
    return made.model_dump(mode="json")


def streamed(blocks: Blocks, stop: str = "end_turn", piece: int = 5) -> list[dict[str, Any]]:
    """Return the events of an answer in pieces of so many characters."""
    whole = message(blocks, stop)
    begun = {**whole, "content": [], "stop_reason": None}
    begun["usage"] = {**whole["usage"], "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        is_call = block["type"] == "tool_use"
        empty = {**block, "input": {}} if is_call else {**block, "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        said = json.dumps(block["input"]) if is_call else block["text"]
        kind, key = ("input_json_delta", "partial_json") if is_call else ("text_delta", "text")
        for place in range(0, len(said), piece):
            delta = {"type": kind, key: said[place : place + piece]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": stop, "stop_sequence": None}
    usage = {"output_tokens": 5, "input_tokens": None}
    events += [{"type": "message_delta", "delta": ended, "usage": usage}, {"type": "message_stop"}]
    for event in events:
        _EVENT.validate_python(event)
    return events


def as_sse(events: Sequence[Mapping[str, Any]]) -> Says:
    ping = "event: ping\ndata: {}\n\n"
    lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]
    body = "".join([ping, *lines]).encode()
    return Says(body, headers={"Content-Type": "text/event-stream; charset=utf-8"})


@contextmanager
def official(reply: Callable[[Asked], Blocks]) -> Iterator[Service]:
    """Serve a model that answers with blocks."""

    def answer(asked: Asked) -> Says:
        assert asked.headers["anthropic-version"] in ("2023-06-01", ANTHROPIC_API_VERSION)
        if (asked.method, asked.path) == ("GET", "/v1/models"):
            return Says({"data": [{"id": "tiny", "type": "model"}]})
        assert (asked.method, asked.path) == ("POST", "/v1/messages")
        try:
            body = checked(asked.body)
        except (ValidationError, AssertionError) as error:
            wrong = {"type": "invalid_request_error", "message": str(error)[:2000]}
            return Says({"type": "error", "error": wrong}, 400)
        blocks = reply(asked)
        stop = "tool_use" if any(one["type"] == "tool_use" for one in blocks) else "end_turn"
        if body.get("stream"):
            return as_sse(streamed(blocks, stop))
        return Says(message(blocks, stop))

    with serving(answer) as service:
        yield service
