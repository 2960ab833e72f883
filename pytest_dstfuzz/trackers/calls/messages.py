"""A dialogue as messages and tools in the form of OpenAI's API, and the calls of a message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import ToolCall
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.trackers.replies.messages import OpeningRole, messages_of
from pytest_dstfuzz.trackers.validation import describe

#: Characters of what is wrong that a message of an error shows.
_SHOWN: Final = 60
_LONGEST: Final = 100_000
#: Calls in one message; more is a model that repeats itself.
_MOST: Final = 100

#: How the arguments of a call are called: by OpenAI, LangChain and Anthropic.
_ARGUMENTS: Final = ("arguments", "args", "input")
#: What else a call may have, so that arguments by another name are not lost unseen.
_BESIDE: Final = ("name", "id", "type", "index", "function", "caller")

#: A message, or a tool, as JSON.
Json = dict[str, Any]


class Prompted(NamedTuple):
    """What an assistant is given."""

    messages: list[Json]
    tools: list[Json]


def messages_and_tools(context: Context, opening: OpeningRole = "assistant") -> Prompted:
    """Return a context as messages and tools in the form of OpenAI's API, oldest message first.

    What was recorded stands as it was: system prompts, tool calls, their results. Where only texts
    are known, they are messages as in `messages_of`.
    """
    transcript = context.transcript
    if transcript is None:
        return Prompted([dict(one) for one in messages_of(context, opening)], [])
    messages: list[Json] = []
    for place, exchange in enumerate(context.exchanges):
        before = transcript.before[place] if place < len(transcript.before) else None
        if before is not None:
            messages += map(json.loads, before)
        elif exchange.system:
            role = "assistant" if place else opening
            messages.append({"role": role, "content": exchange.system})
        messages.append({"role": "user", "content": exchange.user})
    messages += map(json.loads, transcript.after)
    return Prompted(messages, [tool.to_json() for tool in transcript.tools])


def calls_of(message: object) -> tuple[ToolCall, ...]:
    """Return the tool calls that a message of an assistant makes, in their order.

    Args:
        message: in the form of OpenAI's API, a dictionary or an object with the same attributes,
            such as a message of LangChain; or one of Anthropic's API, whose content has calls
            among its blocks. A message without calls has none, whatever it says.

    Raises:
        TrackerError: it is no message, or a call in it cannot be read, which is a
            `MalformedAnswerError`; the message says which.
    """
    given = _part(message, "tool_calls")
    if broken := _part(message, "invalid_tool_calls"):  # LangChain keeps them apart.
        given = [*_listed(given or []), *_listed(broken)]
    if given is None:
        given = _blocks(message)
    if given is None:
        if (old := _part(message, "function_call")) is not None:
            return (_call(old, "the call"),)
        if _part(message, "content") is None and _part(message, "role") is None:
            raise TrackerError(
                f"the assistant returned {describe(message)} where a message is expected: a "
                'dictionary with "content", "tool_calls" or both'
            )
        return ()
    given = _listed(given)
    if len(given) > _MOST:
        raise MalformedAnswerError(
            f"the assistant made {len(given):,} calls in one message; {_MOST} count"
        )
    return tuple(_calls(given))


def _listed(given: object) -> Sequence[object]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise TrackerError(f"the assistant's tool_calls are {describe(given)}, which is no list")
    return given


def _blocks(message: object) -> list[object] | None:
    """Return the calls among the blocks of a message of Anthropic's API, or ``None``."""
    content = _part(message, "content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return None
    return [block for block in content if _part(block, "type") == "tool_use"] or None


def _calls(given: Sequence[object]) -> Iterator[ToolCall]:
    for number, one in enumerate(given, start=1):
        where = "the call" if len(given) == 1 else f"call {number}"
        if isinstance(one, ToolCall):
            yield one
            continue
        function = _part(one, "function")
        yield _call(one if function is None else function, where)


def _call(function: object, where: str) -> ToolCall:
    name = _part(function, "name")
    if not isinstance(name, str) or not name:
        raise MalformedAnswerError(f"{where} of the assistant names no tool: {describe(function)}")
    where = f"{where} of {shortened(name, _SHOWN)!r}"
    parts = (_part(function, key) for key in _ARGUMENTS)
    arguments = next((part for part in parts if part is not None), None)
    if arguments is None and isinstance(function, Mapping):
        for key in function:
            if key not in (*_ARGUMENTS, *_BESIDE):
                raise MalformedAnswerError(
                    f"{where} has a key {shortened(str(key), _SHOWN)!r} and no 'arguments'"
                )
    return ToolCall(name, _arguments(arguments, where))


def _arguments(given: object, where: str) -> Mapping[str, Any]:
    """Return the arguments of a call, which are JSON as text, or an object."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        if len(given) > _LONGEST:
            raise MalformedAnswerError(f"{where} has arguments of {len(given):,} characters")
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition(":")[0] or type(error).__name__
            raise MalformedAnswerError(
                f"{where} has arguments that are no JSON ({reason}): {describe(given)}"
            ) from None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise MalformedAnswerError(
            f"{where} has {describe(given)} as arguments, which is no JSON object"
        )
    try:
        text = json.dumps(given, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedAnswerError(f"{where} has arguments that are no JSON: {error}") from None
    found: Mapping[str, Any] = json.loads(text)
    return found


def _part(thing: object, name: str) -> object:
    """Return a part of a dictionary, or of an object of a client library; ``None`` = it lacks."""
    if isinstance(thing, Mapping):
        return thing.get(name)
    return getattr(thing, name, None)
