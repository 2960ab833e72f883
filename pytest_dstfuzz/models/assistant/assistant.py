"""The shipped assistant: it processes turns, asks questions and calls tools."""

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
from pytest_dstfuzz.json_data import load_json
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
    fold_value,
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
    load_shipped_weights,
)

GREETING: Final = "Hello! Tell me what you need."
MORE: Final = "Is there more that I can do for you?"
UNABLE: Final = "I have no tool for that. Is there more that I can do for you?"
#: Maximum number of result fields or enum values in a text.
_TOLD: Final = 5


def question(slot: Slot) -> str:
    """Return the assistant's question for a missing argument."""
    label = " ".join(slot.label) or slot.name
    if slot.boolean:
        about = slot.description[:1].lower() + slot.description[1:].rstrip(" .")
        return f"Please say yes or no: {about or label}?"
    if 0 < len(slot.values) <= _TOLD:
        listed = ", ".join(slot.values[:-1])
        return f"What {label} would you like: {listed} or {slot.values[-1]}?"
    return f"What {label} would you like?"


def confirmation(tool: ToolView, memory: Memory) -> str:
    """Return the question that asks the user to confirm a call with its arguments."""
    given = [
        f"{' '.join(slot.label) or slot.name}: {memory.values[slot]}"
        for slot in tool.slots
        if memory.values.get(slot, ANY) != ANY
    ]
    details = ", ".join(given) or " ".join(tool.label)
    return f"Please confirm: {details}. Is that right?"


def results(rows: list[dict[str, str]]) -> str:
    """Return the assistant's text about the result of a tool call."""
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
    """The assistant's next action: a call, or a question about ``missing`` slots or a yes."""

    tool: ToolView | None
    call: bool
    missing: tuple[Slot, ...] = ()


def take_turn(weights: Weights, memory: Memory, tools: tuple[ToolView, ...], user: str) -> Decision:
    """Update the memory with a user utterance. Decide on the next action."""
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
    """Return the slot values that a user turn gives, in the order of the tool's slots."""
    found: list[tuple[Slot, str]] = []
    spans: list[tuple[float, int, int, Slot]] = []
    for number, slot in enumerate(tool.slots):
        if slot.kind == "object":
            continue  # Users cannot say an object. It stays missing, so nothing is called.
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
    """Return the values of text spans, the most certain span first.

    A span is left out if it overlaps a more certain span, or has the name of a tool or slot.
    """
    found: list[tuple[Slot, str]] = []
    taken: set[int] = set()
    for _, start, end, slot in sorted(spans, key=lambda one: -one[0]):
        if taken.isdisjoint(range(start, end + 1)):
            taken.update(range(start, end + 1))
            value = turn.text(start, end)
            if {*turn.plain[start : end + 1]} <= {*slot.label, *slot.about, *tool.label}:
                continue  # The name of a tool or an argument, such as "parcel", is not a value.
            found.append((slot, _whole(value, slot, memory) if start < turn.heard else value))
    return found


def _whole(value: str, slot: Slot, memory: Memory) -> str:
    """Complete a value that the assistant has just named in a result.

    If ``value`` is part of a value in the result, return the whole value, otherwise ``value``.
    """
    part = fold_value(value)
    for one in memory.candidates(slot):
        if one.kind == "result" and one.age == 0 and says(fold_value(one.text), part):
            return one.text
    return value


def _repeated(turn: TurnText, memory: Memory, slot: Slot, value: str) -> bool:
    """Return whether the assistant repeated the current value and the user gave no new one."""
    current = memory.values.get(slot, ANY)
    if ANY in (current, value) or slot.boolean:
        return False
    return says(turn.system_folded, fold_value(current)) and not says(
        turn.user_folded, fold_value(value)
    )


def _span(turn: TurnText, ends: Array) -> tuple[int, int, float]:
    """Return the most likely span of a value: its first and last token, and its log-probability.

    The span lies within one text, of the assistant or of the user.
    """
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
    """Return the first number in a text, in digits or words, or ``None``.

    >>> as_number("for two people"), as_number("$1,250.50"), as_number("soon")
    (2, 1250.5, None)
    """
    found = _NUMBER.search(with_digits(text))
    if found is None:
        return None
    number = float(found[0].replace(",", ""))
    return int(number) if number.is_integer() else number


def json_value(slot: Slot, text: str) -> Any:
    """Convert the text of a slot's value to the JSON type that the schema requires."""
    if slot.kind == "boolean":
        return text.casefold() == "true"
    if slot.number:
        number = as_number(text)
        return text if number is None else number
    if slot.kind == "array":
        return [part for part in _LISTED.split(text) if part]
    return text


def arguments(tool: ToolView, memory: Memory) -> dict[str, Any]:
    """Return the arguments of a call. Slots that may have any value are left out."""
    return {
        slot.name: json_value(slot, memory.values[slot])
        for slot in tool.slots
        if memory.values.get(slot, ANY) != ANY
    }


Message = dict[str, Any]
#: Number of cached dialogue prefixes. Most requests share a prefix with another one.
_KEPT: Final = 4096


class Assistant:
    """Finds the tool to call by the words of the schemas. It runs offline, in numpy.

    Args:
        weights: weights of the network. By default the shipped weights.
    """

    #: The same messages and tools always give the same answer.
    repeatable = True

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = load_shipped_weights() if weights is None else weights
        self._kept: OrderedDict[str, tuple[Memory, Decision | None]] = OrderedDict()
        self._tools: OrderedDict[str, tuple[ToolView, ...]] = OrderedDict()

    @property
    def fingerprint(self) -> str:
        """A text that identifies the weights of the network.

        The answers depend on the weights, the messages and the tools.
        """
        return f"assistant-{self._weights.digest}"

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Message:
        """Return the assistant's next message: a tool call or a text."""
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
        """Process a dialogue, starting after its longest cached prefix.

        Return the memory and the decision.
        """
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
    """Store a message of the assistant or a tool. Ignore unreadable parts."""
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
    """Return the text of a message: its content, or the texts of its parts, one per line."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in found if isinstance(text, str))


def _object(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = load_json(given)
        except ValueError:
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
