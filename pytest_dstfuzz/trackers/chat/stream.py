"""From the events of a streamed chat completion to what it would have been in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_dstfuzz.trackers.web.reply import ended_early


def joined_completion(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the chat completion whose parts, in their order, are events of a stream.

    Texts and the arguments of tool calls come in pieces, of several calls in turns. Of the counts
    of tokens the last ones count.

    Raises:
        MalformedReply: the stream ends before the answer does.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls = _StreamedCalls()
    finish = usage = None
    for event in events:
        usage = event.get("usage") or usage
        choice = _first_choice(event)
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            continue
        for key in ("content", "refusal"):
            if isinstance(piece := delta.get(key), str):
                message[key] = (message.get(key) or "") + piece
        for piece in _mappings(delta.get("tool_calls")):
            calls.add(piece)
        if isinstance(old := delta.get("function_call"), Mapping):
            _add_function(message.setdefault("function_call", {}), old)
    if finish is None:
        raise ended_early()
    if calls.whole:
        message["tool_calls"] = calls.whole
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


class _StreamedCalls:
    """The tool calls of a message while their pieces come."""

    def __init__(self) -> None:
        self.whole: list[dict[str, Any]] = []
        #: What a service numbers a call with -> the place of the newest call with that number.
        self._places: dict[object, int] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        """Put a piece to its call.

        A new id begins a call of its own: some services give all calls of a message one number, or
        none.
        """
        number, id_ = piece.get("index"), piece.get("id") or None
        given = piece.get("function")
        function = given if isinstance(given, Mapping) else {}
        place = self._places.get(number)
        if place is None or self._is_another(self.whole[place], id_, number, function):
            place = self._places[number] = len(self.whole)
            self.whole.append({"id": None, "type": "function", "function": {}})
        call = self.whole[place]
        call["id"] = call["id"] or id_
        _add_function(call["function"], function)

    @staticmethod
    def _is_another(
        call: Mapping[str, Any], id_: object, number: object, function: Mapping[str, Any]
    ) -> bool:
        """Whether a piece with the number of a call is of another one."""
        if id_ is not None and call["id"] is not None:
            return bool(id_ != call["id"])
        return number is None and bool(function.get("name")) and "arguments" in call["function"]


def _add_function(function: dict[str, Any], piece: Mapping[str, Any]) -> None:
    name, arguments = piece.get("name"), piece.get("arguments")
    # Some repeat the whole name with every piece.
    if isinstance(name, str) and name != function.get("name"):
        function["name"] = function.get("name", "") + name
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments)
    if isinstance(arguments, str):
        function["arguments"] = function.get("arguments", "") + arguments


def _first_choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of an event that is of the first choice; the last event may have none."""
    choices = _mappings(event.get("choices"))
    return next((one for one in choices if not one.get("index")), {})


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
