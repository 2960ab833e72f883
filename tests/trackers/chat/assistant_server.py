"""A small OpenAI-compatible service whose model calls tools, in one piece or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from chat_server import chat
from loopback import Asked, Says, Service

Message = dict[str, Any]
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def call(name: str, arguments: object, number: int = 0) -> dict[str, Any]:
    """Return a tool call; arguments that are no text are made JSON."""
    said = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": said}
    return {"id": f"call_{number}", "type": "function", "function": function}


def calling(*calls: dict[str, Any], **more: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [*calls], **more}


def whole(message: Mapping[str, Any], finish: str = "") -> Says:
    """Return a completion with a message."""
    finish = finish or ("tool_calls" if message.get("tool_calls") else "stop")
    choice = {"index": 0, "finish_reason": finish, "message": message}
    return Says({"object": "chat.completion", "choices": [choice], "usage": USAGE})


def pieces(message: Mapping[str, Any], piece: int = 4) -> list[dict[str, Any]]:
    """Return the deltas of a message: texts in pieces, its calls in turns."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    said = message.get("content") or ""
    deltas += [{"content": said[at : at + piece]} for at in range(0, len(said), piece)]
    calls = message.get("tool_calls") or []
    for index, one in enumerate(calls):
        function = {"name": one["function"]["name"], "arguments": ""}
        begun = {"index": index, "id": one["id"], "type": "function", "function": function}
        deltas.append({"tool_calls": [begun]})
    texts = [one["function"]["arguments"] for one in calls]
    for at in range(0, max(map(len, texts), default=0), piece):
        parts = [
            {"index": index, "function": {"arguments": text[at : at + piece]}}
            for index, text in enumerate(texts)
            if text[at : at + piece]
        ]
        deltas.append({"tool_calls": parts})
    return deltas


def streamed(
    deltas: Sequence[Mapping[str, Any]], finish: str | None = "tool_calls", *, counts: bool = True
) -> Says:
    """Return a stream of deltas as server-sent events."""
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if counts:
        chunks.append({"choices": [], "usage": USAGE})
    lines = [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks]
    body = "".join([": begun\r\n\r\n", *lines, "data: [DONE]\r\n\r\n"])
    return Says(body.encode(), headers={"Content-Type": "text/event-stream"})


@contextmanager
def assistant(reply: Callable[[Asked], Message]) -> Iterator[Service]:
    """Serve a model whose next message is ``reply``'s, streamed where that is asked for."""

    def answer(asked: Asked) -> Says:
        message = reply(asked)
        if not asked.body.get("stream"):
            return whole(message)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        counts = bool(asked.body.get("stream_options", {}).get("include_usage"))
        return streamed(pieces(message), finish, counts=counts)

    with chat(answer) as service:
        yield service
