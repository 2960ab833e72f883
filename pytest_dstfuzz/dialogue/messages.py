"""Messages of chat APIs: conversion from and to OpenAI's JSON, and the calls in answers.

A recorded dialogue stores messages as texts, see `Turn.recorded`. `decode_message` parses such a
text and `Message.encoded` writes it. Each call in a message has an id, and its arguments are a JSON
text. The result of a call has the same id. `readers.messages` checks both when it reads a file.
Unknown keys are kept unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_dstfuzz.dialogue.calls import ToolCall, canonical
from pytest_dstfuzz.errors import DataError, MalformedAnswerError
from pytest_dstfuzz.json_data import load_json, parse_json
from pytest_dstfuzz.printable import SHOWN, describe, shorten_text

__all__ = ["Message", "calling"]

#: A message, or a tool, as JSON.
Json = dict[str, Any]
#: Roles whose messages are instructions. Some models call ``system`` ``developer``.
PROMPTS: Final = ("system", "developer")

_LONGEST: Final = 100_000
#: Maximum depth of the arguments of a call.
_DEEPEST: Final = 100
#: Maximum number of calls in one message. A model that makes more calls is repeating itself.
_MOST: Final = 100
#: Keys for the arguments of a call: those of OpenAI, LangChain and Anthropic.
_ARGUMENTS: Final = ("arguments", "args", "input")
#: Other valid keys of a call. If a call has no arguments, any further key is an error, because it
#: may be a misspelt key for the arguments.
_BESIDE: Final = ("name", "id", "type", "index", "function", "caller")


@dataclass(frozen=True, slots=True)
class MessageCall:
    """A tool call in a message."""

    name: str
    #: A JSON text. It is an object unless the model made a mistake.
    arguments: str
    id: str
    #: Further keys of the call, and of its function.
    more: Mapping[str, Any] = field(default_factory=dict)
    of_function: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> Json | None:
        """The parsed arguments, or ``None`` if they are not a JSON object."""
        return arguments_of(self.arguments)

    @property
    def call(self) -> ToolCall | None:
        """The call with parsed arguments, or ``None`` if they are not a JSON object."""
        values = self.values
        return None if values is None else ToolCall(self.name, values)

    def to_json(self) -> Json:
        """Return the call in the form of OpenAI's API."""
        function = {"name": self.name, "arguments": self.arguments, **self.of_function}
        return {"id": self.id, "type": "function", "function": function, **self.more}


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    role: str
    #: A text or a list of parts. ``None`` for a message that only makes calls.
    content: str | list[Any] | None = None
    calls: tuple[MessageCall, ...] = ()
    #: The id of the call, if the message is the result of one.
    answers: str | None = None
    #: Further keys.
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text, see `text_of_content`."""
        return text_of_content(self.content)

    def to_json(self) -> Json:
        """Return the message in the form of OpenAI's API."""
        made: Json = {"role": self.role, "content": self.content, **self.more}
        if self.calls:
            made["tool_calls"] = [call.to_json() for call in self.calls]
        if self.answers is not None:
            made["tool_call_id"] = self.answers
        return made

    def encoded(self) -> str:
        """Return the message as text. Equal messages give equal texts."""
        return canonical(self.to_json())


def calling(said: str | None, calls: Iterable[ToolCall], ids: Iterable[str]) -> Message:
    """Return an assistant message that makes calls with these ids."""
    made = (
        MessageCall(call.name, canonical(dict(call.arguments)), given)
        for call, given in zip(calls, ids, strict=True)
    )
    return Message("assistant", said, tuple(made))


def decode_message(text: str) -> Message:
    """Parse a message written by `Message.encoded`."""
    return of_json(json.loads(text))


def of_json(raw: Mapping[str, Any]) -> Message:
    """Convert a message from the form of OpenAI's API, without checks."""
    return Message(
        raw.get("role", ""),
        raw.get("content"),
        tuple(map(call_of_json, raw.get("tool_calls") or ())),
        raw.get("tool_call_id"),
        _without(raw, "role", "content", "tool_calls", "tool_call_id"),
    )


def call_of_json(raw: Mapping[str, Any]) -> MessageCall:
    """Convert a call from the form of OpenAI's API, without checks."""
    function = raw["function"]
    given = function.get("arguments") or ""
    return MessageCall(
        function.get("name", ""),
        given if isinstance(given, str) else canonical(given),
        raw.get("id") or "",
        _without(raw, "id", "type", "function"),
        _without(function, "name", "arguments"),
    )


def _without(raw: Mapping[str, Any], *keys: str) -> Json:
    return {key: value for key, value in raw.items() if key not in keys}


def arguments_of(text: str) -> Json | None:
    """Parse the arguments of a call. Return ``None`` if they are not a JSON object.

    >>> arguments_of('{"people": 2}'), arguments_of(""), arguments_of("[2]")
    ({'people': 2}, {}, None)
    """
    if not text.strip():
        return {}
    try:
        found = parse_json(text)
    except DataError:
        return None
    return found if isinstance(found, dict) else None


def find_recorded_calls(messages: Iterable[Message]) -> list[ToolCall] | None:
    """Return the calls in the answer to a user, or ``None`` if they are unknown.

    Consecutive assistant messages are one answer, because some recordings have a separate message
    for each of several parallel calls. Messages after a tool result are not part of the answer.
    """
    found: list[ToolCall] = []
    spoke = False
    for message in messages:
        if message.role in PROMPTS:
            continue
        if message.role != "assistant":
            break
        spoke = True
        for made in message.calls:
            call = made.call
            if call is None:
                return None
            found.append(call)
    return found if spoke else None


def text_of_content(content: object) -> str:
    r"""Return the text of a message: its content, or the texts of its parts, one per line.

    >>> text_of_content([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"])
    'a\nb'
    """
    if isinstance(content, str):
        return content
    texts = [_text_of_part(part) for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if text is not None)


def without_text(content: object) -> list[Any]:
    """Return the parts of a message's content that are not text: pictures, files, sound."""
    parts = content if isinstance(content, list) else []
    return [part for part in parts if _text_of_part(part) is None]


def _text_of_part(part: object) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None


def calls_of(message: object) -> tuple[ToolCall, ...]:
    """Return the tool calls in an assistant message, in order.

    Args:
        message: a message in the form of OpenAI's API, as a dictionary or as an object with the
            same attributes, such as a message of LangChain. A message of Anthropic's API, with
            calls as blocks of its content, is accepted too. The text of a message is not searched
            for calls.

    Raises:
        MalformedAnswerError: If it is not a message, or if a call cannot be read. The error names
            the call.
    """
    given = _part(message, "tool_calls")
    if broken := _part(message, "invalid_tool_calls"):  # LangChain stores them separately.
        given = [*_listed(given or []), *_listed(broken)]
    if given is None:
        given = _blocks(message)
    if given is None:
        if (old := _part(message, "function_call")) is not None:
            return (_call(old, "the call"),)
        if _part(message, "content") is None and _part(message, "role") is None:
            raise MalformedAnswerError(
                f"the assistant returned {describe(message)} instead of a message: a dictionary "
                'with "content", "tool_calls" or both'
            )
        return ()
    given = _listed(given)
    if len(given) > _MOST:
        raise MalformedAnswerError(
            f"the assistant made {len(given):,} calls in one message; at most {_MOST} are allowed"
        )
    return tuple(_calls(given))


def _listed(given: object) -> Sequence[object]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise MalformedAnswerError(
            f"the assistant's tool_calls are {describe(given)} instead of a list"
        )
    return given


def _blocks(message: object) -> list[object] | None:
    """Return the call blocks of a message of Anthropic's API, or ``None`` for other messages."""
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
    where = f"{where} of {shorten_text(name, SHOWN)!r}"
    parts = (_part(function, key) for key in _ARGUMENTS)
    arguments = next((part for part in parts if part is not None), None)
    if arguments is None and isinstance(function, Mapping):
        for key in function:
            if key not in (*_ARGUMENTS, *_BESIDE):
                raise MalformedAnswerError(
                    f"{where} has a key {shorten_text(str(key), SHOWN)!r} but no 'arguments'"
                )
    return ToolCall(name, _checked_arguments(arguments, where))


def _checked_arguments(given: object, where: str) -> Mapping[str, Any]:
    """Return the JSON arguments of a call, given as a text or an object."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        if len(given) > _LONGEST:
            raise MalformedAnswerError(
                f"{where} has arguments of {len(given):,} characters; at most {_LONGEST:,} are "
                "allowed"
            )
        try:
            given = load_json(given)
        except ValueError as error:
            reason = str(error).partition(":")[0] or type(error).__name__
            raise MalformedAnswerError(
                f"{where} has arguments that are not valid JSON ({reason}): {describe(given)}"
            ) from None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise MalformedAnswerError(
            f"{where} has {describe(given)} as arguments instead of a JSON object"
        )
    if _is_deep(given):
        raise MalformedAnswerError(
            f"{where} has arguments that are nested more than {_DEEPEST} deep"
        )
    try:
        text = json.dumps(given, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedAnswerError(
            f"{where} has arguments that cannot be written as JSON: {error}"
        ) from None
    found: Mapping[str, Any] = json.loads(text)
    return found


def _is_deep(value: object) -> bool:
    """Return whether a JSON value is nested too deeply for recursive functions."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, Mapping | list | tuple)
            for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
    return any(isinstance(one, Mapping | list | tuple) for one in level)


#: Types of items that only the output of a ``Response`` has.
_ITEMS: Final = ("message", "function_call", "custom_tool_call", "reasoning")


def answered_message(answer: object) -> object:
    """Return the message in an API response. Return any other answer unchanged.

    Args:
        answer: a ``ChatCompletion`` or ``Response`` of OpenAI, a ``Message`` of Anthropic or a
            ``GenerateContentResponse`` of Gemini, as an object of its client or as a dictionary.
            Or a list of items, as in the output of a ``Response``. Earlier items may come first.

    >>> answered_message({"choices": [{"message": {"content": "Hello."}}]})
    {'content': 'Hello.'}
    """
    if choice := _first_of(answer, "choices"):
        return _part(choice, "message") or answer
    if candidate := _first_of(answer, "candidates"):
        parts = _sequence(_part(_part(candidate, "content"), "parts"))
    elif items := _new_items(answer):
        parts = [part for item in items for part in _parts_of(item)]
    elif _part(answer, "role") == "assistant" and not _part(answer, "tool_calls"):
        parts = [*_sequence(_part(answer, "content"))]
    else:
        return answer
    if not parts:
        return answer
    called = [_part(one, "function_call") or _part(one, "functionCall") or one for one in parts]
    texts = [_part(one, "text") for one in parts if _part(one, "thought") is not True]
    said = [text for text in texts if isinstance(text, str)]
    calls = [one for one in called if isinstance(_part(one, "name"), str)]
    return {"role": "assistant", "content": "\n".join(said) or None, "tool_calls": calls}


def _new_items(answer: object) -> Sequence[object]:
    """Return the items of a ``Response`` after the user's message and the results of tools."""
    items = _sequence(_part(answer, "output") or answer)
    if not any(_part(item, "type") in _ITEMS for item in items):
        return ()
    given = [
        _part(item, "role") == "user" or _part(item, "type") == "function_call_output"
        for item in items
    ]
    return items[len(items) - [*reversed(given), True].index(True) :]


def _parts_of(item: object) -> Sequence[object]:
    """Return the parts of an item of a ``Response``. It is a call or a message with texts."""
    if _part(item, "type") in ("function_call", "custom_tool_call"):
        return [item]
    return _sequence(_part(item, "content")) if _part(item, "type") == "message" else []


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def _first_of(thing: object, name: str) -> object:
    return next(iter(_sequence(_part(thing, name))), None)


def _part(thing: object, name: str) -> object:
    """Return a part of a dictionary or of a client library's object, ``None`` if it is missing."""
    if isinstance(thing, Mapping):
        return thing.get(name)
    return getattr(thing, name, None)
