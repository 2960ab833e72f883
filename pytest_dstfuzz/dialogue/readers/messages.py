"""Recorded conversations with tool calls: messages as chat APIs have them, and the tools.

JSON Lines of ``{"id": "a", "messages": [...], "tools": [...]}``, one dialogue a line, or a JSON
array of such objects, or one of them; a list of messages alone is a dialogue, too. ``tools`` and
``id`` may be left out, and ``states`` gives belief states, one for each turn. Messages in the form
of Anthropic's API, with ``system`` beside them, are read likewise.

A turn is a message of the user that has a text. All between two of them is kept as it was recorded
(`Turn.recorded`), and what the assistant called in its next message is the label of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import Tool, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.anthropic_form import chat_messages, is_anthropic
from pytest_dstfuzz.dialogue.readers.chat_form import (
    Message,
    Oddities,
    recorded_calls,
    text_of_content,
    uniform,
    without_text,
)
from pytest_dstfuzz.dialogue.readers.source import (
    HEAD_BYTES,
    Reader,
    ReadOptions,
    SourceFile,
    as_state,
    checked,
    filled_lines,
    first_object,
    is_one_a_line,
    json_start,
)
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.errors import DataError, nearest
from pytest_dstfuzz.json_data import parse_json, shown_value

#: One dialogue, for messages.
DIALOGUE_FORM: Final = (
    '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}], '
    '"tools": [...]}'
)
#: Keys that may name a dialogue.
_IDS: Final = ("id", "dialogue_id", "conversation_id")
#: Keys of a message of the user that a turn has.
_OF_TURNS: Final = frozenset({"role", "content"})


#: The keys of a recorded conversation, and a list of messages alone.
MESSAGES_KEY: Final = re.compile(r'"messages"\s*:\s*\[')
_TOOLS: Final = re.compile(r'"(tools|functions)"\s*:\s*\[')
_BARE: Final = re.compile(r'\[\s*\[?\s*\{[^{}]*"role"\s*:\s*"')


class _Entry(NamedTuple):
    raw: dict[str, Any]
    place: str
    #: What it is called where it has no id.
    name: str


class Messages(Reader):
    """Recorded messages in the form of OpenAI's or Anthropic's API."""

    name = "messages"
    about = 'recorded messages, {"messages": [{"role": "user", "content": "..."}], "tools": [...]}'

    def detect(self, file: SourceFile, head: str) -> float:
        """Know objects with messages, and lists of messages."""
        start = json_start(file, head)
        if start == "{" and "messages" in (first_object(head) or {}):
            return 0.9
        known = _is_recorded(head) or (start == "[" and _BARE.match(head))
        return 0.7 if start and known else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file, and note what looks like a fault and was taken."""
        odd = Oddities()
        for entry in _entries(file):
            yield _dialogue(entry, how.normalisation, odd)
        odd.tell(how.tell)


def _is_recorded(head: str) -> bool:
    """Whether a text begins a recorded conversation, of which tools may be all that is seen."""
    cut_off = len(head) > HEAD_BYTES // 5  # A character has up to four bytes.
    return bool(MESSAGES_KEY.search(head) or (cut_off and _TOOLS.search(head)))


def _entries(file: SourceFile) -> Iterator[_Entry]:
    lines = filled_lines(file)
    # Whether it is one dialogue a line, the first two tell.
    begun = list(islice(lines, 2))
    whole = None if is_one_a_line(begun) else _whole(file)
    if whole is None:
        for number, line in chain(begun, lines):
            yield _entry(
                _line(line, f"{file.place}: line {number}"),
                f"{file.place}: line {number}",
                f"{file.stem}-{number}",
            )
    elif _is_list_of_dialogues(whole):
        for number, one in enumerate(whole):
            yield _entry(one, f"{file.place}: dialogue {number}", f"{file.stem}-{number + 1}")
    else:
        yield _entry(whole, file.place, f"{file.stem}-1")


def _whole(file: SourceFile) -> Any:
    """Return the value of a file that is one value of JSON; ``None`` = it is one a line."""
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
        told = f"{place} {error}; expected one dialogue a line, {DIALOGUE_FORM}"
        raise DataError(told) from None


def _is_list_of_dialogues(whole: object) -> bool:
    """Whether a value is a list of dialogues, not the messages of one."""
    return isinstance(whole, list) and not (
        bool(whole) and isinstance(whole[0], dict) and "role" in whole[0]
    )


def _entry(parsed: object, place: str, name: str) -> _Entry:
    if isinstance(parsed, list):
        parsed = {"messages": parsed}
    if not isinstance(parsed, dict):
        raise DataError(
            f"{place}: {shown_value(parsed)} where a dialogue is expected: {DIALOGUE_FORM}"
        )
    if "messages" not in parsed:
        raise DataError(f"{place} has no 'messages'; expected {DIALOGUE_FORM}")
    key = next((key for key in _IDS if parsed.get(key) is not None), None)
    given = name if key is None else parsed[key]
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise DataError(f"{place}: {key}: {shown_value(given)} where a text is expected")
    return _Entry(parsed, place, str(given))


def _dialogue(entry: _Entry, normalisation: str, odd: Oddities) -> Dialogue:
    raw, place = entry.raw, entry.place
    listed = raw.get("tools") if raw.get("tools") is not None else raw.get("functions")
    tools = () if listed is None else read_tools(listed, f"{place}: tools")
    if is_anthropic(raw):
        raw = {**raw, "messages": chat_messages(raw, place, odd)}
        place = f"{place}, as messages of the chat form"
    messages = uniform(raw["messages"], place, odd)
    _count_unknown(messages, tools, f"{place}: messages", odd)
    turns, closing = turns_of(messages, f"{place}: messages", odd)
    if not turns:
        raise DataError(
            f"{place} has no message of the user that says something; expected {DIALOGUE_FORM}"
        )
    if not tools and not any(message.get("tool_calls") for message in messages):
        # What was recorded of an assistant without tools says nothing about calls.
        turns = tuple(replace(turn, calls=None) for turn in turns)
    if raw.get("states") is not None:
        turns = _with_states(turns, raw["states"], place, normalisation)
    return Dialogue(entry.name, turns, tools, closing)


def turns_of(
    messages: Iterable[Message], place: str, odd: Oddities
) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the turns of uniform messages, and what was recorded after the last of them."""
    said: list[tuple[str, list[Message]]] = []
    before: list[Message] = []
    for number, message in enumerate(messages):
        text = text_of_content(message["content"]) if message["role"] == "user" else ""
        if text.strip():
            before += _beside_text(message, f"{place}[{number}]", odd)
            said.append((text, before))
            before = []
        else:
            if message["role"] == "user":
                odd.add("Messages of the user have no text, and are no turns", f"{place}[{number}]")
            before.append(message)
    turns = []
    after = [*(block for _, block in said), before][1:]  # What came first answers nobody.
    for index, ((text, block), answered) in enumerate(zip(said, after, strict=True)):
        calls = recorded_calls(answered)
        turns.append(
            Turn(
                index,
                _last_text(block),
                text,
                answer=(_last_text(before) or None) if index == len(said) - 1 else None,
                recorded=tuple(map(canonical, block)),
                calls=None if calls is None else calls_outcome(calls),
            )
        )
    return tuple(turns), tuple(map(canonical, before))


def _beside_text(message: Message, place: str, odd: Oddities) -> list[Message]:
    """Return a message of what stands beside the text of the user's message: its pictures."""
    if message.keys() - _OF_TURNS:
        odd.add("Messages of the user have more keys than role and content: those are left", place)
    parts = without_text(message["content"])
    return [{"role": "user", "content": parts}] if parts else []


def _last_text(messages: Iterable[Message]) -> str:
    """Return what the assistant said last; ``""`` = nothing."""
    said = [text_of_content(one["content"]) for one in messages if one["role"] == "assistant"]
    return next((text for text in reversed(said) if text.strip()), "")


def _count_unknown(
    messages: Iterable[Message], tools: tuple[Tool, ...], place: str, odd: Oddities
) -> None:
    """Count calls of tools that are not in the list, where there is one."""
    names = {tool.name for tool in tools}
    for number, message in enumerate(messages if tools else ()):
        for call in message.get("tool_calls") or ():
            name = call["function"]["name"]
            if name not in names:
                close = nearest(name, names)
                hint = f"; did you mean {close!r}?" if close else ""
                odd.add(
                    f"The tool {name!r} is called, and is not in 'tools'{hint}",
                    f"{place}[{number}]",
                )


def _with_states(
    turns: tuple[Turn, ...], raw: object, place: str, normalisation: str
) -> tuple[Turn, ...]:
    states = checked(list[dict[str, Any] | None], raw, f"{place}: states")
    if len(states) != len(turns):
        raise DataError(
            f"{place} has {len(states)} states for {len(turns)} turns: 'states' has one entry "
            "for each message of the user that has a text"
        )
    return tuple(
        replace(turn, state=as_state(state, f"{place}: states[{turn.index}]", normalisation))
        for turn, state in zip(turns, states, strict=True)
    )
