"""Make an assistant that can be tested of a function from messages and tools to its next message.

The shortest one::

    # my_bot.py                   pytest --dst-model=my_bot:answer --dst-outcome=tool-calls
    def answer(messages, tools):
        if "taxi" in messages[-1]["content"].lower():
            call = {"name": "call_taxi", "arguments": {"people": 1}}
            return {"role": "assistant", "tool_calls": [{"function": call}]}
        return {"role": "assistant", "content": "What can I do for you?"}

It may be ``async``, take the messages alone, or a `Context`; what it returns may be a message of
a client library, a list of `ToolCall`, or a text, which calls nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Final, cast

from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.dialogue.outcome import History
from pytest_dstfuzz.dialogue.writing import messages_and_tools
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.adapting import FunctionAdapter, as_it_is, made
from pytest_dstfuzz.trackers.replies.adapters import first_parameter
from pytest_dstfuzz.trackers.rolling import RollingCalls
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, declared

_GIVEN: Final = (
    "; your function gets two lists, of messages and of tools, in the form of OpenAI's API"
)


class CallFunction(FunctionAdapter):
    """An assistant made of a function from messages and tools to its next message."""

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self._takes_context = first_parameter(wrapped) == "context"
        self._takes_tools = _parameters(wrapped) != 1
        #: For the message of one that does not take what it is given.
        self.asked_with = "" if self._takes_context else _GIVEN

    def _call(self, context: Context) -> object:
        if self._takes_context:
            return self.wrapped(context)
        asked = messages_and_tools(context)
        return self.wrapped(*(asked if self._takes_tools else asked[:1]))

    def _read(self, answer: object) -> Prediction:
        return as_calls(answer)


def as_caller(candidate: object, history: History = "recorded") -> Tracker:
    """Return what calls tools as a `Tracker`, adapted where necessary; else it is a `UserError`.

    It may be a tracker whose predictions have `Prediction.calls`, a function from messages and
    tools to a message, or a class of one of these that needs no arguments.
    """
    found = made(candidate)
    if callable(declared(found, "predict")):
        caller = as_it_is(found)
    elif callable(found):
        caller = CallFunction(found)
    else:
        raise _no_caller(found)
    if history == "recorded" or isinstance(caller, RollingCalls):
        return caller
    # An error may stand in the place of an answer, as `Tracker` says.
    return cast("Tracker", RollingCalls(caller))


def _no_caller(found: object) -> UserError:
    return UserError(
        f"{describe(found)} calls no tools: give a function from messages and tools to the next "
        "message, as in OpenAI's API"
    )


def as_calls(message: object) -> Prediction:
    """Return the next message of an assistant as a prediction of its tool calls and its text."""
    if isinstance(message, Prediction):
        return message
    if isinstance(message, str):
        return Prediction(calls_outcome(()), reply=message, calls=calls_outcome(()))
    if isinstance(message, Sequence) and not isinstance(message, bytes):
        message = {"tool_calls": message}
    calls: Sequence[ToolCall] = calls_of(message)
    said = message.get("content") if isinstance(message, Mapping) else declared(message, "content")
    outcome = calls_outcome(calls)
    return Prediction(outcome, reply=said if isinstance(said, str) else None, calls=outcome)


def _parameters(function: object) -> int:
    """Return how many positional arguments a function takes; 2 where nobody knows."""
    try:
        found = inspect.signature(cast("type[object]", function)).parameters.values()
    except (TypeError, ValueError):  # Of some objects that are not written in Python.
        return 2
    if any(one.kind is one.VAR_POSITIONAL for one in found):
        return 2
    positional = [one for one in found if one.kind is not one.KEYWORD_ONLY]
    if any(one.name == "tools" for one in positional):
        return 2
    return sum(one.default is one.empty for one in positional)
