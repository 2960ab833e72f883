"""The part of the contract that is about tool calls: messages and tools in, a message out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pytest_dstfuzz.dialogue.call_trees import made_calls
from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.dialogue.messages import calling, decoded
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS, Outcome
from pytest_dstfuzz.dialogue.readers.messages import read_messages, turns_of
from pytest_dstfuzz.dialogue.readers.source import Oddities
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.errors import DataError, MalformedAnswerError, TrackerError
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.calls.adapters import as_calls
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.shapes import (
    ContractError,
    UnreadableMessageError,
    other_kind,
    shown_without,
)

#: Of a message, one of which each has.
_KEYS: Final = ("tool_calls", "content", "function_call")
#: What an answer must be.
_MESSAGE: Final = (
    'a message, {"role": "assistant", "content": "..."} or {"role": "assistant", "tool_calls": '
    '[{"function": {"name": "...", "arguments": "{...}"}}]}'
)


def call_context(messages: object, tools: object, place: str) -> Context:
    """Return the context of messages and of tools.

    The last message is the user's, or what a tool returned since.

    ``place`` begins the message of a `ContractError`: of what is no message, or no tool.
    """
    odd = Oddities()
    try:
        turns, closing = turns_of(read_messages(messages, place, odd), place, odd)
        listed = () if tools is None else read_tools(tools, place.replace("messages", "tools"))
    except DataError as error:
        raise ContractError(str(error)) from None
    if not turns or (closing and decoded(closing[-1]).role != "tool"):
        raise ContractError(
            f"{place} must end with a message of the user that says something, or with what a "
            "tool returned"
        )
    context = Dialogue("", turns, listed).context(len(turns) - 1)
    told = context.transcript or Transcript(listed)
    return replace(context, transcript=replace(told, after=closing)) if closing else context


def call_contexts(keys: Mapping[str, object], count: int) -> list[Context]:
    """Return the contexts of so many dialogues, of whose messages and tools each has a list."""
    messages, tools = (_lists(keys, name, count) for name in ("messages", "tools"))
    places = (f'"messages"[{place}]' for place in range(count))
    return [call_context(*each) for each in zip(messages, tools, places, strict=True)]


def _lists(keys: Mapping[str, object], name: str, count: int) -> list[object]:
    given = keys.get(name, [None] * count)
    if not isinstance(given, list) or len(given) != count:
        raise ContractError(
            f'"{name}" is {describe(given)}; it must be a list of {count} lists, one for each of '
            'the "dialogues"'
        )
    return given


def read_message(body: object) -> Prediction:
    """Return the prediction of an answer that is the next message of an assistant."""
    if not isinstance(body, Mapping) or not any(key in body for key in _KEYS):
        raise ContractError(
            f"answered with {shown_without(body, _KEYS[0])}; it must be {_MESSAGE}"
            f"{other_kind(body, TOOL_CALLS)}"
        )
    try:
        return as_calls(body)
    except TrackerError as error:
        what = f"answered with a message that cannot be read: {error}"
        if isinstance(error, MalformedAnswerError):
            raise UnreadableMessageError(what) from None
        raise ContractError(what) from None


def message_json(answer: Prediction | Mapping[str, str]) -> dict[str, Any]:
    """Return the message of an assistant with a prediction's calls, which are numbered."""
    calls = answer.calls if isinstance(answer, Prediction) else answer
    made = made_calls(Outcome(calls))
    said = answer.reply if isinstance(answer, Prediction) else None
    return calling(said, made, (f"call_{place + 1}" for place in range(len(made)))).to_json()
