"""A client for models behind Anthropic's Messages API, with streams."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from pytest_dstfuzz.config import Address, Header, split_address
from pytest_dstfuzz.dialogue.anthropic import answer_of, choice_of, request_of, tools_of
from pytest_dstfuzz.json_data import load_json
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.chat.client import ChatClient, count_usage
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Usage
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, report_early_end


def join_message(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the events of a stream to a message.

    The input of a tool arrives as pieces of JSON. If they do not form valid JSON, the input stays a
    text.

    Raises:
        MalformedReply: the stream has no message, or ends before the message does.
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
        raise MalformedReply("answered with a stream that contains no message", passing=True)
    if not ended:
        raise report_early_end()
    return {**message, "content": [_whole(block) for block in blocks.values()]}


def _part(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, Mapping) else {}


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Append a piece of a stream to its block."""
    if isinstance(piece := delta.get("text"), str):
        block["text"] = block.get("text", "") + piece
    if isinstance(piece := delta.get("partial_json"), str):
        block["pieces"] = block.get("pieces", "") + piece


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    pieces = block.pop("pieces")
    if pieces:
        try:
            block["input"] = load_json(pieces)
        except ValueError:
            block["input"] = pieces
    return block


#: Version of the API that all compatible services support. A header can select another one.
_VERSION: Final = "2023-06-01"
#: The API requires a limit of tokens for an answer. An answer that reaches it is cut off.
_LONGEST: Final = 4096
#: Token counts that add up to those of the prompt.
_PROMPT: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(eq=False, repr=False, kw_only=True)
class AnthropicClient(ChatClient):
    """A client for Anthropic's API, with the inputs and results of a `ChatClient`."""

    #: The API requires a limit of tokens.
    spared: ClassVar[tuple[str, ...]] = ("temperature",)

    async def complete(self, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
        """Request an answer. Return it in the form of a chat completion's first choice.

        ``more`` may have ``max_tokens``, ``tools`` and ``tool_choice``.

        Raises:
            TrackerError: see `Transport.ask`, or the API has no counterpart for a message.
        """
        body = {
            "model": self.model,
            "max_tokens": more.get("max_tokens", _LONGEST),
            "temperature": 0,
            **request_of(messages),
        }
        if "tools" in more:
            body["tools"] = tools_of(more["tools"])
        if "tool_choice" in more:
            body["tool_choice"] = choice_of(more["tool_choice"])
        if self.stream:
            body["stream"] = True
        return await self._asked("messages", body, _message)


def _message(reply: Reply) -> tuple[Usage, Mapping[str, Any]]:
    """Return the usage of an answer, and the answer as a choice of a completion."""
    body = join_message(reply.events()) if reply.is_stream else reply.json()
    if not isinstance(body, Mapping) or not isinstance(body.get("content"), list):
        passing = isinstance(body, Mapping) and "error" in body
        raise MalformedReply(
            f"answered with {describe(body)} instead of a message with a list of content",
            passing=passing,
        )
    found = body.get("usage")
    counts = found if isinstance(found, Mapping) else {}
    prompt = [counts[key] for key in _PROMPT if counts.get(key) is not None]
    total = sum(prompt) if prompt and all(type(one) is int for one in prompt) else None
    return count_usage(total, counts.get("output_tokens")), answer_of(body)


def service_of(url: Address, service: ServiceSettings) -> ServiceSettings:
    """Return the settings for Anthropic's API, which expects the token as a key."""
    given = {header.name.lower() for header in service.headers}
    own = [] if "anthropic-version" in given else [Header("anthropic-version", _VERSION)]
    signed = "@" in split_address(url.full).netloc or given & {"x-api-key", "authorization"}
    if os.environ.get(service.token, "").strip() and not signed:
        own.append(Header("x-api-key", f"${service.token}"))
    return replace(service, headers=(*service.headers, *own), token="")
