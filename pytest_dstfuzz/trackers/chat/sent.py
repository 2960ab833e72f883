"""Messages of a dialogue in the form of OpenAI's API, as services take them.

Recorded ones are sent as they were, but for what services refuse: logs lack ids of calls and
results, hold arguments as objects, or are of the time of ``function_call``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dstfuzz.trackers.calls.messages import Json


def as_sent(messages: Sequence[Json]) -> list[Json]:
    """Return messages in which each call and each result has an id, and nothing is of old forms.

    A result without an id is that of the first call before it that has none yet, of the tool that
    it names if it names one.
    """
    sent: list[Json] = []
    waiting: list[tuple[str, str]] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            said = _with_calls(message, place)
            waiting = [(one["id"], one["function"].get("name", "")) for one in _calls(said)]
            sent.append(said)
        elif role in ("tool", "function"):
            sent.append(_result(message, waiting, place))
        else:
            sent.append(message)
    return sent


def _calls(message: Json) -> list[Json]:
    return message.get("tool_calls") or []


def _with_calls(message: Json, place: int) -> Json:
    """Return a message of an assistant whose calls are whole."""
    said = dict(message)
    old = said.pop("function_call", None)
    calls = said.get("tool_calls") or ([{"function": old}] if old else [])
    if not calls:
        said.pop("tool_calls", None)  # Services refuse an empty list.
        return said
    said["tool_calls"] = [
        {
            **call,
            "id": call.get("id") or f"call_{place}_{number}",
            "type": "function",
            "function": _function(call.get("function") or {}),
        }
        for number, call in enumerate(calls)
    ]
    said.setdefault("content", None)
    return said


def _function(function: Mapping[str, Any]) -> Json:
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    return {**function, "arguments": arguments or "{}"}


def _result(message: Json, waiting: list[tuple[str, str]], place: int) -> Json:
    """Return the result of a call, and take that call off those that wait for theirs."""
    result = {**message, "role": "tool"}
    name = result.get("name")
    id_ = result.get("tool_call_id")
    if not id_:
        named = [one for one, tool in waiting if tool == name]
        id_ = next(iter(named or [one for one, _ in waiting]), f"call_{place}")
        result["tool_call_id"] = id_
    waiting[:] = [entry for entry in waiting if entry[0] != id_]
    return result
