"""Reader of recorded conversations with tool calls: messages of chat APIs, and tools.

A dialogue is an object ``{"id": "a", "messages": [...], "tools": [...]}``, or a list of messages
alone. A file is JSON Lines with one dialogue per line, a JSON array of dialogues, or a single
dialogue. ``tools`` and ``id`` are optional. ``states`` may give the belief state of each turn.
Messages in the form of Anthropic's API, with the key ``system`` next to ``messages``, are also
accepted.

A turn is a user message with a text. All messages between two turns are stored as recorded
(`Turn.recorded`), and the assistant's calls in the next message are the label of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple, cast

import msgspec

from pytest_dstfuzz.dialogue.anthropic import chat_messages, is_anthropic
from pytest_dstfuzz.dialogue.calls import Tool, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.messages import (
    Json,
    Message,
    MessageCall,
    call_of_json,
    find_recorded_calls,
    text_of_content,
    without_text,
)
from pytest_dstfuzz.dialogue.readers.conversion import (
    chat_form,
    chat_tools,
    find_called_tools,
    is_foreign,
    refuse_misspelt_arguments,
    refuse_misspelt_calls,
)
from pytest_dstfuzz.dialogue.readers.source import (
    HEAD_BYTES,
    OTHER_STATES,
    Oddities,
    Reader,
    ReadOptions,
    SourceFile,
    as_state,
    begun_object,
    convert_checked,
    entries_of_list,
    first_object,
    is_one_a_line,
    json_start,
    read_filled_lines,
    refuse_misspelt,
    shown_keys,
)
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.errors import DataError, did_you_mean, nearest
from pytest_dstfuzz.json_data import parse_json, shorten_value
from pytest_dstfuzz.printable import format_count, format_list

#: An example of a dialogue, for error messages.
DIALOGUE_FORM: Final = (
    '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}], '
    '"tools": [...]}'
)
#: Keys for the id of a dialogue.
_IDS: Final = ("id", "dialogue_id", "conversation_id")
#: Valid roles of messages.
ROLES: Final = ("user", "assistant", "system", "developer", "tool", "function")
#: An example of a message with a call, for error messages.
CALL_FORM: Final = (
    '"tool_calls": [{"id": "call_1", "type": "function", "function": '
    '{"name": "book", "arguments": "{\\"people\\": 2}"}}]'
)
#: Patterns for the keys of a recorded conversation, and for a list of messages alone.
MESSAGES_KEY: Final = re.compile(r'"messages"\s*:\s*\[')
_TOOLS: Final = re.compile(r'"(tools|functions)"\s*:\s*\[')
_BARE: Final = re.compile(r'\[\s*\[?\s*\{[^{}]*"role"\s*:\s*"')


class Entry(NamedTuple):
    """A dialogue in a file, before it is read."""

    raw: dict[str, Any]
    place: str
    #: The id, or a name made from the file if there is no id.
    name: str


class NoTurnsError(DataError):
    """A dialogue has no words of the user."""


class Messages(Reader):
    """Recorded messages in the form of OpenAI's API, Anthropic's API, or another known API."""

    name = "messages"
    about = 'recorded messages, {"messages": [{"role": "user", "content": "..."}], "tools": [...]}'
    keys = (("messages",), ("role", "content"))

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise objects with messages, and lists of messages."""
        start = json_start(file, head)
        if start == "{" and "messages" in (first_object(head) or {}):
            return 0.9
        known = _is_recorded(head) or (start == "[" and _BARE.match(head))
        if start and known:
            return 0.7
        return 0.6 if start and _is_message(begun_object(head)) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file. Note data that looks faulty."""
        odd = Oddities()
        mute: NoTurnsError | None = None
        spoken = False
        for parsed, place, name in values_of(file):
            try:
                dialogue = dialogue_of(_entry(parsed, place, name), how.normalisation, odd)
            except NoTurnsError as error:
                mute = mute or error
                odd.add("Dialogues without words of the user are left out", place)
                continue
            spoken = True
            yield dialogue
        if mute is not None and not spoken:
            raise mute
        odd.tell(how.tell)


def _is_recorded(head: str) -> bool:
    """Return whether the first part of a file shows a recorded conversation.

    Tools alone are enough, because tools come first and may be long.
    """
    cut_off = len(head) > HEAD_BYTES // 5  # A character has up to four bytes.
    return bool(MESSAGES_KEY.search(head) or (cut_off and _TOOLS.search(head)))


def _is_message(value: object) -> bool:
    """Return whether a value is a message of a known form."""
    return isinstance(value, dict) and (
        is_foreign(value) or (value.get("role") in ROLES and "content" in value)
    )


def values_of(file: SourceFile) -> Iterator[tuple[Any, str, str]]:
    """Yield the dialogues of a JSON file, each with its place and a name.

    The dialogues are the lines of JSON Lines, the members of a list, or the whole file. If the
    lines or members are messages, all of them together are one dialogue.

    Raises:
        DataError: If the file or a line is not JSON.
    """
    lines = read_filled_lines(file)
    # The first two lines show whether there is one value per line.
    begun = list(islice(lines, 2))
    if not is_one_a_line(begun):
        whole = entries_of_list(_whole(file))
        if isinstance(whole, list) and not (whole and _is_message(whole[0])):
            for number, one in enumerate(whole):
                yield one, f"{file.place}: dialogue {number}", f"{file.stem}-{number + 1}"
            return
        if whole is not None:
            yield whole, file.place, f"{file.stem}-1"
            return
    parsed = (
        (_line(line, f"{file.place}: line {number}"), number)
        for number, line in chain(begun, lines)
    )
    first = next(parsed, None)
    if first is not None and _is_message(first[0]):
        yield [first[0], *(one for one, _ in parsed)], file.place, f"{file.stem}-1"
        return
    for one, number in chain(() if first is None else (first,), parsed):
        yield one, f"{file.place}: line {number}", f"{file.stem}-{number}"


def _whole(file: SourceFile) -> Any:
    """Parse a file as one JSON value. Return ``None`` if it may be JSON Lines."""
    text = file.text()
    try:
        return parse_json(text)
    except DataError as error:
        if not text.lstrip().startswith("["):
            return None
        told = f"{file.place} {error}; expected a list of dialogues, {DIALOGUE_FORM}"
        raise DataError(told) from None


def _line(line: str, place: str) -> object:
    try:
        return parse_json(line)
    except DataError as error:
        told = f"{place} {error}; expected one dialogue per line, {DIALOGUE_FORM}"
        raise DataError(told) from None


def _entry(parsed: object, place: str, name: str) -> Entry:
    if isinstance(parsed, list):
        parsed = {"messages": parsed}
    if not isinstance(parsed, dict):
        raise DataError(f"{place}: {shorten_value(parsed)} instead of a dialogue, {DIALOGUE_FORM}")
    if "messages" not in parsed:
        raise DataError(
            f"{place} has no 'messages': it is {shown_keys(parsed)}; expected {DIALOGUE_FORM}"
        )
    key = next((key for key in _IDS if parsed.get(key) is not None), None)
    given = name if key is None else parsed[key]
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise DataError(f"{place}: {key}: {shorten_value(given)} instead of a text")
    return Entry(parsed, place, str(given))


def _tools_in(raw: Json, place: str, odd: Oddities) -> tuple[Tool, ...]:
    """Return the tools of an entry, which may have Bedrock's form."""
    config = raw.get("toolConfig")
    listed = config.get("tools") if isinstance(config, dict) else None
    for key in ("functions", "tools"):
        listed = listed if raw.get(key) is None else raw[key]
    given = chat_tools(listed, f"{place}: tools", odd)
    return () if given is None else read_tools(given, f"{place}: tools")


def dialogue_of(entry: Entry, normalisation: str, odd: Oddities) -> Dialogue:
    """Return the dialogue of an entry with ``messages`` and perhaps ``tools`` and ``states``."""
    raw, place = entry.raw, entry.place
    tools = _tools_in(raw, place, odd)
    listed = raw["messages"]
    if _is_of_anthropic(raw):
        listed = chat_messages(raw, place, odd)
        place = f"{place}, converted to OpenAI's form"
    elif isinstance(listed, list) and any(map(is_foreign, listed)):
        prompt = text_of_content(raw.get("system"))
        listed = chat_form(listed, f"{place}: messages", odd)
        listed = [*([{"role": "system", "content": prompt}] if prompt else []), *listed]
        place = f"{place}, converted to OpenAI's form"
    messages = read_messages(listed, place, odd)
    _count_unknown(messages, tools, f"{place}: messages", odd)
    turns, closing = turns_of(messages, f"{place}: messages", odd)
    if not turns:
        raise NoTurnsError(f"{place} has no user message with a text; expected {DIALOGUE_FORM}")
    lost = find_called_tools(raw.get("given", raw["messages"])).difference(
        call.name for message in messages for call in message.calls
    )
    if lost:
        odd.add(
            f"Calls are at an unknown place ({format_list(sorted(lost), 3)}), so these dialogues "
            "have no recorded calls as labels",
            place,
        )
    if lost or not (tools or any(message.calls for message in messages)):
        # A recording of an assistant without tools has no information about calls.
        turns = tuple(replace(turn, calls=None) for turn in turns)
    refuse_misspelt(raw, "states", OTHER_STATES, list, place)
    if raw.get("states") is not None:
        turns = _with_states(turns, raw["states"], place, normalisation)
    return Dialogue(entry.name, turns, tools, closing)


def _is_of_anthropic(raw: Json) -> bool:
    """Return whether messages have Anthropic's form. Other forms may have some of its blocks."""
    messages = raw["messages"] if isinstance(raw["messages"], list) else []
    listed = [one for one in messages if isinstance(one, dict)]
    contents = [one["content"] for one in listed if isinstance(one.get("content"), list)]
    parts = [part for content in contents for part in content if isinstance(part, dict)]
    own = all("role" in one for one in listed) and all("type" in part for part in parts)
    return own and is_anthropic(raw)


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


def read_messages(raw: object, place: str, odd: Oddities) -> list[Message]:
    """Check and convert recorded messages.

    In the returned messages, each call has an id and its arguments as a JSON text. The result of a
    call has the role ``tool`` and the id of the call. Other keys are unchanged. Oddities that an
    endpoint may reject are kept and counted.

    Raises:
        DataError: If a message or call is malformed.
    """
    messages: list[Message] = []
    calls = _Calls(odd)
    typed_messages = _typed(raw, place)
    for number, (typed, given) in enumerate(
        zip(typed_messages, cast("list[Json]", raw), strict=True)
    ):
        where = f"{place}: messages[{number}]"
        _check_role(typed, where)
        left_out = {"role", "content", "function_call"}
        role, answers = typed.role, None
        made: tuple[MessageCall, ...] = ()
        if role == "assistant":
            refuse_misspelt_calls(given, where)
            made = calls.made(typed, given, where)
            left_out |= {"tool_calls"}
            if not made and typed.content is None:
                odd.add("Assistant messages have no text and no call", where)
        elif role in ("tool", "function"):
            answers = calls.answered(typed, where)
            left_out |= {"tool_call_id"} | ({"name"} if role == "function" else set())
            role = "tool"
        more = {key: value for key, value in given.items() if key not in left_out}
        messages.append(Message(role, given.get("content"), made, answers, more))
        if role == "user":
            calls.close(where)
    return messages


def _typed(raw: object, place: str) -> list[_RecordedMessage]:
    try:
        return convert_checked(_Recording, {"messages": raw}, place).messages
    except DataError as error:
        told = str(error)
        if "tool_calls" in told or "function_call" in told:
            raise DataError(f"{told}; the form of calls is {CALL_FORM}") from None
        raise


def _check_role(message: _RecordedMessage, where: str) -> None:
    if message.role not in ROLES:
        said = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
        close = said.get(message.role.lower()) or nearest(message.role, ROLES)
        hint = f" Did you mean {close!r}?" if close else ""
        raise DataError(
            f"{where}: unknown role {shorten_value(message.role)}.{hint} Valid: {', '.join(ROLES)}."
        )
    if message.content is None and message.role != "assistant":
        raise DataError(
            f"{where}: a message with the role {message.role!r} needs 'content', a text"
        )


class _Calls:
    """The calls of one dialogue, matched with their results."""

    def __init__(self, odd: Oddities) -> None:
        self._odd = odd
        self._count = 0
        #: Ids of calls without a result so far, with the names of their tools.
        self._open: dict[str, str] = {}

    def made(self, typed: _RecordedMessage, given: Json, where: str) -> tuple[MessageCall, ...]:
        """Return the calls of a message."""
        found = [
            self._checked(given["tool_calls"][number], call, f"{where}.tool_calls[{number}]")
            for number, call in enumerate(typed.tool_calls or ())
        ]
        if typed.function_call is not None:
            old = {"function": given["function_call"]}
            call = _RecordedCall(typed.function_call)
            found.append(self._checked(old, call, f"{where}.function_call"))
        return tuple(found)

    def _checked(self, raw: Json, call: _RecordedCall, where: str) -> MessageCall:
        name, arguments = call.function.name, call.function.arguments
        if arguments is None:
            refuse_misspelt_arguments(raw["function"], f"{where}.function")
        if not name.strip():
            raise DataError(f"{where} calls a tool without a name; expected {CALL_FORM}")
        if call.id is None and "id" not in raw and "function_call" not in where:
            self._odd.add("Calls have no id; an id was added", where)
        # Some servers use an id again in later messages, so only pending ids must be unique.
        known = call.id or self._free_id()
        if known in self._open:
            raise DataError(
                f"{where}: the id {shorten_value(known)} belongs to an earlier call that has no "
                "result yet; each call needs its own id"
            )
        self._open[known] = name
        if not isinstance(arguments, str):
            arguments = canonical(arguments or {})
        function = {"function": {**raw["function"], "name": name, "arguments": arguments}}
        made = call_of_json({**raw, "id": known, **function})
        if made.values is None:
            self._odd.add(
                "The arguments of calls are not a JSON object: these calls are sent as recorded, "
                "but cannot be labels",
                where,
            )
        return made

    def _free_id(self) -> str:
        """Return a new id for a call that lacks an id."""
        self._count += 1
        while f"call_{self._count}" in self._open:
            self._count += 1
        return f"call_{self._count}"

    def answered(self, typed: _RecordedMessage, where: str) -> str:
        """Return the id of the call that a result belongs to."""
        found = typed.tool_call_id
        if found is None:
            # Results in the old format have no id and follow their calls in order.
            found = next(iter(self._open), None)
            if typed.role == "tool":
                self._odd.add(
                    "Tool results have no 'tool_call_id'; the id of their call was added", where
                )
        if found is None or found not in self._open:
            self._odd.add("Tool results have no call before them that waits for a result", where)
            return found or "call_0"
        del self._open[found]
        return found

    def close(self, where: str) -> None:
        """Count the calls without a result before the next user message."""
        for _ in self._open:
            self._odd.add(
                "Calls have no result before the next user message; endpoints may reject that",
                where,
            )
        self._open.clear()


def turns_of(
    messages: Iterable[Message], place: str, odd: Oddities
) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the turns of messages, and the recorded messages after the last turn."""
    said: list[tuple[str, list[Message]]] = []
    before: list[Message] = []
    for number, message in enumerate(messages):
        text = message.text if message.role == "user" else ""
        if text.strip():
            before += _beside_text(message, f"{place}[{number}]", odd)
            said.append((text, before))
            before = []
        else:
            if message.role == "user":
                odd.add("User messages have no text and are not turns", f"{place}[{number}]")
            before.append(message)
    turns = []
    after = [*(block for _, block in said), before][1:]  # The first block answers no user.
    for index, ((text, block), answered) in enumerate(zip(said, after, strict=True)):
        calls = find_recorded_calls(answered)
        turns.append(
            Turn(
                index,
                _last_text(block),
                text,
                answer=(_last_text(before) or None) if index == len(said) - 1 else None,
                recorded=tuple(one.encoded() for one in block),
                calls=None if calls is None else calls_outcome(calls),
            )
        )
    return tuple(turns), tuple(one.encoded() for one in before)


def _beside_text(message: Message, place: str, odd: Oddities) -> list[Message]:
    """Return a user message's parts that are not text, such as pictures, as a message."""
    if message.more:
        odd.add("User messages have keys besides role and content, which are ignored", place)
    parts = without_text(message.content)
    return [Message("user", parts)] if parts else []


def _last_text(messages: Sequence[Message]) -> str:
    """Return the texts of the assistant after its last call, one per line.

    If there is none, return the last text before.
    """
    said: list[str] = []
    for one in reversed(messages):
        if said and (one.calls or one.role == "tool"):
            break
        if one.role == "assistant" and one.text.strip():
            said.append(one.text)
    return "\n".join(reversed(said))


def _count_unknown(
    messages: Iterable[Message], tools: tuple[Tool, ...], place: str, odd: Oddities
) -> None:
    """Count calls of tools that are not in the list of tools, if the dialogue has a list."""
    names = {tool.name for tool in tools}
    for number, message in enumerate(messages if tools else ()):
        for call in message.calls:
            if call.name not in names:
                hint = did_you_mean(call.name, names, inside=True)
                odd.add(
                    f"The tool {call.name!r} is called, but is not in 'tools'{hint}",
                    f"{place}[{number}]",
                )


def _with_states(
    turns: tuple[Turn, ...], raw: object, place: str, normalisation: str
) -> tuple[Turn, ...]:
    states = convert_checked(list[dict[str, Any] | None], raw, f"{place}: states")
    if len(states) != len(turns):
        raise DataError(
            f"{place} has {format_count(len(states), 'state')} for "
            f"{format_count(len(turns), 'turn')}: 'states' needs one entry for each user message "
            f"with a text"
        )
    return tuple(
        replace(turn, state=as_state(state, f"{place}: states[{turn.index}]", normalisation))
        for turn, state in zip(turns, states, strict=True)
    )
