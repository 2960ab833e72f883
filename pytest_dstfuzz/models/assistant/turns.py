"""What the assistant makes of one user turn: the tool, the values, and whether to call now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.dialogue.number_words import with_digits
from pytest_dstfuzz.models.assistant.features import (
    SlotsAsked,
    TurnText,
    ask_call,
    ask_slots,
    ask_tools,
    missing,
    turn_text,
)
from pytest_dstfuzz.models.assistant.memory import ANY, Memory
from pytest_dstfuzz.models.assistant.network import FIXED, SlotScores, TurnNetwork, Weights
from pytest_dstfuzz.models.assistant.schema import Slot, ToolView
from pytest_dstfuzz.models.assistant.words import Array, folded, says

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
