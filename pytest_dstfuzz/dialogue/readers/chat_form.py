"""Recorded messages in the form of OpenAI's chat API: checked, and made uniform.

Uniform messages have calls under ``tool_calls``, with an id, and arguments as a JSON text; the
result of each call under ``role: tool`` with its ``tool_call_id``. Other keys stay as they were.
What an endpoint might refuse, but need not, is kept and counted, see `Oddities`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import ToolCall, canonical
from pytest_dstfuzz.dialogue.readers.source import checked
from pytest_dstfuzz.errors import DataError, nearest
from pytest_dstfuzz.json_data import parse_json, shown_value

#: Who may speak in a message.
ROLES: Final = ("user", "assistant", "system", "developer", "tool", "function")
#: What ``system`` is called by some models.
PROMPTS: Final = ("system", "developer")
#: What a message with a call looks like, for messages.
CALL_FORM: Final = (
    '"tool_calls": [{"id": "call_1", "type": "function", "function": '
    '{"name": "book", "arguments": "{\\"people\\": 2}"}}]'
)

Message = dict[str, Any]


class _CalledFunction(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None


class _RecordedCall(msgspec.Struct):
    function: _CalledFunction
    id: str | None = None


class _RecordedMessage(msgspec.Struct):
    role: str
    content: str | list[str | dict[str, Any]] | None = None
    tool_calls: list[_RecordedCall] | None = None
    function_call: _CalledFunction | None = None
    tool_call_id: str | None = None


class _Recording(msgspec.Struct):
    messages: list[_RecordedMessage]


class _Messages(msgspec.Struct):
    messages: list[dict[str, Any]]


class Oddities:
    """What a reader took as it was although it looks like a fault: counted, and told at the end."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, what: str, place: str) -> None:
        """Count one more, found at a place."""
        count, first = self._found.get(what, (0, place))
        self._found[what] = (count + 1, first)

    def tell(self, tell: Callable[[str], None]) -> None:
        """Tell each kind in a sentence: how often, and where first."""
        for what, (count, first) in self._found.items():
            times = "once" if count == 1 else f"{count:,} times, first"
            tell(f"{what} ({times} at {first}).")


def uniform(raw: object, place: str, odd: Oddities) -> list[Message]:
    """Return the recorded messages of a place in the uniform form, or raise a `DataError`."""
    messages: list[Message] = []
    calls = _Calls(odd)
    for number, (typed, given) in enumerate(
        zip(_typed(raw, place), listed_messages(raw, place), strict=True)
    ):
        where = f"{place}: messages[{number}]"
        _check_role(typed, where)
        message = {key: value for key, value in given.items() if key != "function_call"}
        if typed.role == "assistant":
            made = calls.made(typed, given, where)
            message.pop("tool_calls", None)
            if made:
                message["tool_calls"] = made
            message.setdefault("content", None)
            if not made and message["content"] is None:
                odd.add("Messages of the assistant have neither a text nor a call", where)
        elif typed.role in ("tool", "function"):
            message = {**message, "role": "tool", "tool_call_id": calls.answered(typed, where)}
            if typed.role == "function":
                message.pop("name", None)
        messages.append(message)
        if typed.role == "user":
            calls.close(where)
    return messages


def listed_messages(raw: object, place: str) -> list[Message]:
    """Return messages as they are, or raise a `DataError` where one is no object."""
    return checked(_Messages, {"messages": raw}, place).messages


def _typed(raw: object, place: str) -> list[_RecordedMessage]:
    try:
        return checked(_Recording, {"messages": raw}, place).messages
    except DataError as error:
        told = str(error)
        if "tool_calls" in told or "function_call" in told:
            raise DataError(f"{told}; calls are recorded as {CALL_FORM}") from None
        raise


def _check_role(message: _RecordedMessage, where: str) -> None:
    if message.role not in ROLES:
        said = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
        close = said.get(message.role.lower()) or nearest(message.role, ROLES)
        hint = f" Did you mean {close!r}?" if close else ""
        raise DataError(
            f"{where}: unknown role {shown_value(message.role)}.{hint} Valid: {', '.join(ROLES)}."
        )
    if message.content is None and message.role != "assistant":
        raise DataError(f"{where}: a message of the role {message.role!r} needs 'content', a text")


class _Calls:
    """The calls of one dialogue, which their results must follow."""

    def __init__(self, odd: Oddities) -> None:
        self._odd = odd
        self._count = 0
        #: Ids of calls that have no result yet, with the names of their tools.
        self._open: dict[str, str] = {}

    def made(self, typed: _RecordedMessage, given: Message, where: str) -> list[Message]:
        """Return the calls of a message in the uniform form."""
        found = []
        for number, call in enumerate(typed.tool_calls or ()):
            raw: Message = given["tool_calls"][number]
            found.append(self._uniform(raw, call, f"{where}.tool_calls[{number}]"))
        if typed.function_call is not None:
            old = {"function": given["function_call"]}
            found.append(
                self._uniform(old, _RecordedCall(typed.function_call), f"{where}.function_call")
            )
        return found

    def _uniform(self, raw: Message, call: _RecordedCall, where: str) -> Message:
        name, arguments = call.function.name, call.function.arguments
        if not name.strip():
            raise DataError(f"{where} calls a tool without a name; expected {CALL_FORM}")
        if call.id is None and "id" not in raw and "function_call" not in where:
            self._odd.add("Calls have no id, and got one", where)
        # Ids are of one message alone for some servers, so they need not be new.
        known = call.id or self._free_id()
        if known in self._open:
            raise DataError(
                f"{where}: the id {shown_value(known)} is that of a call before it, which has no "
                "result yet; each call needs an id of its own"
            )
        self._open[known] = name
        if not isinstance(arguments, str):
            arguments = canonical(arguments or {})
        if arguments_of(arguments) is None:
            self._odd.add(
                "The arguments of calls are no JSON object: the calls stay in what is sent, and "
                "are no label",
                where,
            )
        function = {**raw["function"], "name": name, "arguments": arguments}
        return {**raw, "id": known, "type": "function", "function": function}

    def _free_id(self) -> str:
        """Return an id for a call that has none."""
        self._count += 1
        while f"call_{self._count}" in self._open:
            self._count += 1
        return f"call_{self._count}"

    def answered(self, typed: _RecordedMessage, where: str) -> str:
        """Return the id of the call that a result is of."""
        found = typed.tool_call_id
        if found is None:
            # Old results have no id, and follow their calls in order.
            found = next(iter(self._open), None)
            if typed.role == "tool":
                self._odd.add("Results of tools have no 'tool_call_id', and got one", where)
        if found is None or found not in self._open:
            self._odd.add("Results of tools follow no call that they could be of", where)
            return found or "call_0"
        del self._open[found]
        return found

    def close(self, where: str) -> None:
        """Count calls that have no result when the user goes on."""
        for _ in self._open:
            self._odd.add(
                "Calls have no result before the user goes on: endpoints may refuse that", where
            )
        self._open.clear()


def arguments_of(text: str) -> dict[str, Any] | None:
    """Return the arguments that a call has as a JSON text; ``None`` = it is no JSON object.

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


def recorded_calls(messages: Iterable[Message]) -> list[ToolCall] | None:
    """Return the calls of messages that answer a user; ``None`` = they cannot be known.

    Messages of the assistant that follow one another are one answer: some record each of
    parallel calls in a message of its own. What comes after a result is not of it.
    """
    found: list[ToolCall] = []
    spoke = False
    for message in messages:
        if message["role"] in PROMPTS:
            continue
        if message["role"] != "assistant":
            break
        spoke = True
        for call in message.get("tool_calls") or ():
            arguments = arguments_of(call["function"]["arguments"])
            if arguments is None:
                return None
            found.append(ToolCall(call["function"]["name"], arguments))
    return found if spoke else None


def text_of_content(content: object) -> str:
    r"""Return the text of a message: its content, or the texts of its parts, a line each.

    >>> text_of_content([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"])
    'a\\nb'
    """
    if isinstance(content, str):
        return content
    texts = [_text_of_part(part) for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if text is not None)


def without_text(content: object) -> list[Any]:
    """Return the parts of a content that are no text: pictures, files, sound."""
    parts = content if isinstance(content, list) else []
    return [part for part in parts if _text_of_part(part) is None]


def _text_of_part(part: object) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None
