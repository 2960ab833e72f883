"""The shipped assistant: its turns, its texts and its calls."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.dialogue.number_words import with_digits
from pytest_dstfuzz.models.assistant.features import (
    ANY,
    Array,
    Memory,
    Slot,
    SlotsAsked,
    ToolView,
    TurnText,
    ask_call,
    ask_slots,
    ask_tools,
    folded,
    missing,
    read_tools,
    result_rows,
    says,
    turn_text,
)
from pytest_dstfuzz.models.assistant.network import (
    FIXED,
    SlotScores,
    TurnNetwork,
    Weights,
    shipped_weights,
)

GREETING: Final = "Hello! Tell me what you need."
MORE: Final = "Is there more that I can do for you?"
UNABLE: Final = "I have no tool for that. Is there more that I can do for you?"
#: Parts of a result, and values of a list, that are read out.
_TOLD: Final = 5


def question(slot: Slot) -> str:
    """Return the question for an argument that is missing."""
    label = " ".join(slot.label) or slot.name
    if slot.boolean:
        about = slot.description[:1].lower() + slot.description[1:].rstrip(" .")
        return f"Please say yes or no: {about or label}?"
    if 0 < len(slot.values) <= _TOLD:
        listed = ", ".join(slot.values[:-1])
        return f"What {label} would you like: {listed} or {slot.values[-1]}?"
    return f"What {label} would you like?"


def confirmation(tool: ToolView, memory: Memory) -> str:
    """Return the question whether a call is to be made, with its arguments."""
    given = [
        f"{' '.join(slot.label) or slot.name}: {memory.values[slot]}"
        for slot in tool.slots
        if memory.values.get(slot, ANY) != ANY
    ]
    details = ", ".join(given) or " ".join(tool.label)
    return f"Please confirm: {details}. Is that right?"


def results(rows: list[dict[str, str]]) -> str:
    """Return what a tool gave back, as far as one can say it."""
    if not rows:
        return f"That is done. {MORE}"
    count = f"I found {len(rows)}. The first is " if len(rows) > 1 else "Here it is: "
    return f"{count}{_row(rows[0])}. Is that what you had in mind?"


def _row(row: Mapping[str, str]) -> str:
    told = [f"{key.replace('_', ' ')} {value}" for key, value in row.items() if value]
    return ", ".join(told[:_TOLD])


_KEEP, _ANY, _SPAN = range(FIXED)
#: Longest span, in tokens.
_LONGEST_SPAN: Final = 12
_NUMBER: Final = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_LISTED: Final = re.compile(r"\s*(?:,|\band\b|&)\s*")


@dataclass(frozen=True)
class Decision:
    """What comes next. Without ``call`` a text: ``missing`` is asked for, or all is confirmed."""

    tool: ToolView | None
    call: bool
    missing: tuple[Slot, ...] = ()


def take_turn(weights: Weights, memory: Memory, tools: tuple[ToolView, ...], user: str) -> Decision:
    """Read what the user says into the memory and decide; the assistant's turn begins."""
    turn = turn_text(memory.system, user)
    if not tools or len(turn.read) == turn.heard + 1:
        memory.begin_answer()
        return Decision(None, call=False)
    network = TurnNetwork(weights, turn)
    chosen = int(network.tools(ask_tools(turn, tools, memory)).argmax())
    if chosen == 0:
        memory.begin_answer()
        return Decision(None, call=False)
    tool = tools[chosen - 1]
    asked = ask_slots(turn, tool, memory)
    new = 0
    for slot, value in _answers(turn, tool, memory, asked, network.slots(asked)):
        if memory.values.get(slot) != value:
            new += 1
            memory.values[slot] = value
    lacking = tuple(missing(tool, memory))
    call = False
    if not lacking:
        vectors = np.stack([tool.label_vector, tool.about_vector])
        call = network.call(vectors, ask_call(turn, tool, memory, new)) > 0
    memory.active = tool.name
    memory.begin_answer()
    return Decision(tool, call, lacking)


def _answers(
    turn: TurnText, tool: ToolView, memory: Memory, asked: SlotsAsked, scores: list[SlotScores]
) -> list[tuple[Slot, str]]:
    """Return the values that a turn gives."""
    found: list[tuple[Slot, str]] = []
    spans: list[tuple[float, int, int, Slot]] = []
    for number, slot in enumerate(tool.slots):
        if slot.kind == "object":
            continue  # Nobody says one: it is asked for, and nothing is called.
        score = scores[number].answers.copy()
        values = asked.slots[number].values
        if values:
            score[_SPAN] = -np.inf
        best = int(score.argmax())
        if best == _ANY:
            found.append((slot, ANY))
        elif best == _SPAN:
            start, end, sure = _span(turn, scores[number].ends)
            spans.append((float(score[_SPAN] - score[_KEEP]) + sure, start, end, slot))
        elif best >= FIXED + len(values):
            found.append((slot, asked.candidates[number][0][best - FIXED - len(values)].text))
        elif best >= FIXED:
            found.append((slot, values[best - FIXED]))
    found += _of_spans(turn, tool, memory, spans)
    return [(slot, value) for slot, value in found if not _repeated(turn, memory, slot, value)]


def _of_spans(
    turn: TurnText, tool: ToolView, memory: Memory, spans: list[tuple[float, int, int, Slot]]
) -> list[tuple[Slot, str]]:
    """Return the values of parts of the texts, the surest first; no word is of two."""
    found: list[tuple[Slot, str]] = []
    taken: set[int] = set()
    for _, start, end, slot in sorted(spans, key=lambda one: -one[0]):
        if taken.isdisjoint(range(start, end + 1)):
            taken.update(range(start, end + 1))
            value = turn.text(start, end)
            if {*turn.plain[start : end + 1]} <= {*slot.label, *slot.about, *tool.label}:
                continue  # A tool or an argument by its name, such as "parcel": no value.
            found.append((slot, _whole(value, slot, memory) if start < turn.heard else value))
    return found


def _whole(value: str, slot: Slot, memory: Memory) -> str:
    """Return the value of a result that the assistant named, where only a part of it was found."""
    part = folded(value)
    for one in memory.candidates(slot):
        if one.kind == "result" and one.age == 0 and says(folded(one.text), part):
            return one.text
    return value


def _repeated(turn: TurnText, memory: Memory, slot: Slot, value: str) -> bool:
    """Whether the assistant said the value that stands, and the user no other."""
    current = memory.values.get(slot, ANY)
    if ANY in (current, value) or slot.boolean:
        return False
    return says(turn.system_folded, folded(current)) and not says(turn.user_folded, folded(value))


def _span(turn: TurnText, ends: Array) -> tuple[int, int, float]:
    """Return the likeliest first and last token within one text, and how sure that is."""
    count = len(turn.read)
    first = np.arange(count)
    length = first[None, :] - first[:, None]
    user = first > turn.heard
    allowed = (length >= 0) & (length < _LONGEST_SPAN) & (user[:, None] == user[None, :])
    allowed[turn.heard] = allowed[:, turn.heard] = False
    logs = ends - np.log(np.exp(ends - ends.max(axis=0)).sum(axis=0)) - ends.max(axis=0)
    table = np.where(allowed, logs[:, None, 0] + logs[None, :, 1], -np.inf)
    start, end = np.unravel_index(int(table.argmax()), table.shape)
    return int(start), int(end), float(table[start, end])


def as_number(text: str) -> int | float | None:
    """Return the first number of a text, written in digits or words; ``None`` = there is none.

    >>> as_number("for two people"), as_number("$1,250.50"), as_number("soon")
    (2, 1250.5, None)
    """
    found = _NUMBER.search(with_digits(text))
    if found is None:
        return None
    number = float(found[0].replace(",", ""))
    return int(number) if number.is_integer() else number


def json_value(slot: Slot, text: str) -> Any:
    """Return a value as the JSON type that the schema asks for."""
    if slot.kind == "boolean":
        return text.casefold() == "true"
    if slot.number:
        number = as_number(text)
        return text if number is None else number
    if slot.kind == "array":
        return [part for part in _LISTED.split(text) if part]
    return text


def arguments(tool: ToolView, memory: Memory) -> dict[str, Any]:
    """Return the arguments of a call; what may be anything is left out."""
    return {
        slot.name: json_value(slot, memory.values[slot])
        for slot in tool.slots
        if memory.values.get(slot, ANY) != ANY
    }


Message = dict[str, Any]
#: Beginnings of dialogues that are kept: most requests share one with another.
_KEPT: Final = 4096


class Assistant:
    """Calls tools by the words of their schemas; runs offline, in numpy.

    Args:
        weights: of the network; those that ship where none are given.
    """

    #: The same messages and tools always give the same answer.
    repeatable = True

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = shipped_weights() if weights is None else weights
        self._kept: OrderedDict[str, tuple[Memory, Decision | None]] = OrderedDict()
        self._tools: OrderedDict[str, tuple[ToolView, ...]] = OrderedDict()

    @property
    def fingerprint(self) -> str:
        """What an answer depends on beside messages and tools."""
        return f"assistant-{self._weights.digest}"

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Message:
        """Return the assistant's next message: a call of a tool, or a text."""
        told = json.dumps(list(tools or ()), sort_keys=True, default=str)
        views = self._views(told, tools)
        memory, decision = self._replayed(messages, views, sha256(told.encode()).hexdigest())
        last = messages[-1] if messages else {}
        if decision is not None and last.get("role") == "user":
            return _answer(decision, memory, len(messages))
        if last.get("role") == "tool":
            rows = result_rows(_text_of(last.get("content")))
            return _text(results(rows))
        return _text(GREETING if decision is None else MORE)

    def _views(self, told: str, tools: Sequence[Mapping[str, Any]]) -> tuple[ToolView, ...]:
        if told not in self._tools:
            self._tools[told] = read_tools(tools)
            if len(self._tools) > 256:
                self._tools.popitem(last=False)
        return self._tools[told]

    def _replayed(
        self, messages: Sequence[Mapping[str, Any]], tools: tuple[ToolView, ...], key: str
    ) -> tuple[Memory, Decision | None]:
        """Go through the dialogue, from where a request before this one has been."""
        keys = [key]
        for message in messages:
            text = json.dumps(message, sort_keys=True, default=str)
            keys.append(sha256(f"{keys[-1]} {text}".encode()).hexdigest())
        done = len(messages)
        while done and keys[done] not in self._kept:
            done -= 1
        kept = self._kept.get(keys[done]) if done else None
        memory, decision = kept if kept is not None else (Memory(), None)
        memory = memory.copy()
        by_name = {tool.name: tool for tool in tools}
        for place in range(done, len(messages)):
            message = messages[place]
            if message.get("role") == "user":
                text = _text_of(message.get("content"))
                decision = take_turn(self._weights, memory, tools, text)
                self._keep(keys[place + 1], memory, decision)
            else:
                hear(memory, message, by_name)
        return memory, decision

    def _keep(self, key: str, memory: Memory, decision: Decision) -> None:
        self._kept[key] = memory.copy(), decision
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


def hear(memory: Memory, message: Mapping[str, Any], tools: Mapping[str, ToolView]) -> None:
    """Note a message that is not the user's; what cannot be read of it is passed over."""
    role = message.get("role")
    if role in ("tool", "function"):
        memory.hear_result(memory.active or "", _text_of(message.get("content")))
    elif role == "assistant":
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                given = _object(function.get("arguments"))
                memory.hear_call(tools.get(function["name"]), function["name"], given)
        memory.hear_text(_text_of(message.get("content")))


def _text_of(content: object) -> str:
    """Return the text of a message: its content, or the texts of its parts, a line each."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in found if isinstance(text, str))


def _object(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}


def _answer(decision: Decision, memory: Memory, place: int) -> Message:
    tool = decision.tool
    if tool is None:
        return _text(MORE if memory.active else UNABLE)
    if decision.call:
        given = json.dumps(arguments(tool, memory), ensure_ascii=False)
        call = {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": tool.name, "arguments": given},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if decision.missing:
        return _text(question(decision.missing[0]))
    if tool.name in memory.calls and memory.calls[tool.name] == _as_called(tool, memory):
        return _text(MORE)
    return _text(confirmation(tool, memory))


def _as_called(tool: ToolView, memory: Memory) -> dict[str, str]:
    return {slot.name: memory.values[slot] for slot in tool.slots if slot in memory.values}


def _text(text: str) -> Message:
    return {"role": "assistant", "content": text}
