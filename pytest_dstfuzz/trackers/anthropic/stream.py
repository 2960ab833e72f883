"""From the events of a streamed message of Anthropic's API to that message in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_dstfuzz.trackers.web.reply import MalformedReply, ended_early


def joined_message(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the message whose parts, in their order, are events of a stream.

    The input of a tool is JSON in pieces; where they make none, it stays the text that they are.

    Raises:
        MalformedReply: the stream does not begin with a message, or ends before it does.
    """
    message: dict[str, Any] | None = None
    blocks: dict[object, dict[str, Any]] = {}
    ended = False
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = {**_part(event, "message")}
        elif kind == "content_block_start":
            blocks[event.get("index")] = {**_part(event, "content_block"), "pieces": ""}
        elif kind == "content_block_delta":
            _add(blocks.get(event.get("index"), {}), _part(event, "delta"))
        elif kind == "message_delta" and message is not None:
            message |= _part(event, "delta")
            counts = _part(event, "usage")
            told = {key: value for key, value in counts.items() if value is not None}
            message["usage"] = {**_part(message, "usage"), **told}
        ended = ended or kind == "message_stop"
    if message is None:
        raise MalformedReply("answered with a stream that holds no message", passing=True)
    if not ended:
        raise ended_early()
    return {**message, "content": [_whole(block) for block in blocks.values()]}


def _part(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, Mapping) else {}


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Put a piece to its block."""
    if isinstance(piece := delta.get("text"), str):
        block["text"] = block.get("text", "") + piece
    if isinstance(piece := delta.get("partial_json"), str):
        block["pieces"] = block.get("pieces", "") + piece


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    pieces = block.pop("pieces")
    if pieces:
        try:
            block["input"] = json.loads(pieces)
        except (ValueError, RecursionError):
            block["input"] = pieces
    return block
