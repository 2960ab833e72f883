"""Turns of schema-guided dialogues as rows of arrays, with the right answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pytest_dstfuzz.models.assistant.assistant import hear
from pytest_dstfuzz.models.assistant.features import (
    ANY,
    CANDIDATE,
    VALUE,
    WIDTH,
    Memory,
    Slot,
    SlotsAsked,
    TextToken,
    ToolView,
    TurnText,
    ask_call,
    ask_slots,
    ask_tools,
    label_words,
    missing,
    read_tools,
    turn_text,
)
from tools.assistant.sgd import Gold, SgdDialogue

#: Answers of a slot that are no value of a list: as it was, any, a span of the texts.
FIXED = 3
_KEEP, _ANY, _SPAN = range(FIXED)


class Table:
    """Vectors that many rows share. Rows refer to them by number."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self.rows: list[np.ndarray] = []

    def place(self, vector: np.ndarray) -> int:
        """Return the number of a vector. A vector that was not seen before gets a new one."""
        row = vector.astype(np.float16)
        key = row.tobytes()
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(row)
        return self._places[key]

    def places(self, vectors: np.ndarray) -> np.ndarray:
        """Return the numbers of the vectors ``[..., WIDTH]``."""
        flat = vectors.reshape(-1, WIDTH)
        found = np.array([self.place(row) for row in flat], np.int32)
        return found.reshape(vectors.shape[:-1])


class SlotRow(NamedTuple):
    """The inputs and the right answer for one slot at a turn."""

    vectors: np.ndarray
    facts: np.ndarray
    pairs: np.ndarray
    values: np.ndarray
    value_facts: np.ndarray
    hits: np.ndarray
    candidate_facts: np.ndarray
    #: Which answers are right, ``[FIXED + values + candidates]``; none = not known.
    right: np.ndarray
    #: First and last token of the span, -1 = none.
    span: tuple[int, int]


class Row(NamedTuple):
    """The inputs and the right answers for one turn."""

    vectors: np.ndarray
    common: np.ndarray
    shapes: np.ndarray
    heard: int
    tools: np.ndarray
    tool_facts: np.ndarray
    #: 0 = none of the tools, else its number from 1 on.
    active: int
    slots: tuple[SlotRow, ...]
    call_facts: np.ndarray
    #: 1 = a call comes next, 0 = none, -1 = it cannot be asked.
    call: int


@dataclass
class Reader:
    """Makes rows from dialogues."""

    table: Table
    common: Mapping[str, int]
    rng: np.random.Generator
    #: Tools of other services, put beside those of a dialogue now and then.
    others: Sequence[ToolView] = ()

    def rows(self, dialogue: SgdDialogue) -> Iterator[Row]:
        """Yield the rows of one dialogue. Earlier turns count as answered rightly."""
        tools = read_tools(dialogue.tools)
        for tool in tools:
            self._blur(tool, dialogue.services[tool.name])
        shown = self._shown(tools)
        by_name = {tool.name: tool for tool in tools}
        service_slots: dict[str, dict[str, set[Slot]]] = {}
        for tool in tools:
            owned = service_slots.setdefault(dialogue.services[tool.name], {})
            for slot in tool.slots:
                owned.setdefault(slot.name, set()).add(slot)
        memory = Memory()
        golds = {gold.place: gold for gold in dialogue.turns}
        for place, message in enumerate(dialogue.messages):
            gold = golds.get(place)
            if gold is not None:
                yield self._row(memory, message["content"], gold, shown, by_name)
                follow(memory, gold, service_slots.get(gold.service, {}))
                memory.begin_answer()
            else:
                hear(memory, message, by_name)

    def _blur(self, tool: ToolView, service: str) -> None:
        """Remove words from names and descriptions, as other users' schemas have other words."""
        if self.rng.random() < 0.4:
            # The name of the tool alone, without that of its service.
            vars(tool)["label"] = label_words(tool.name.removeprefix(f"{service}_"))
        for one in (tool, *tool.slots):
            draw = self.rng.random(4)
            about = [word for word in one.about if draw[0] < 0.5 or self.rng.random() > 0.25]
            label = one.label
            if draw[1] < 0.12 and label:
                about = []
            elif draw[1] < 0.24 and about:
                label = []
            vars(one)["about"], vars(one)["label"] = about, label

    def _shown(self, tools: tuple[ToolView, ...]) -> tuple[ToolView, ...]:
        names = {tool.name for tool in tools}
        shown = list(tools)
        if self.others and self.rng.random() < 0.4:
            for _ in range(int(self.rng.integers(1, 4))):
                other = self.others[int(self.rng.integers(len(self.others)))]
                if other.name not in names:
                    names.add(other.name)
                    shown.append(other)
        return tuple(shown[place] for place in self.rng.permutation(len(shown)))

    def _row(
        self,
        memory: Memory,
        user: str,
        gold: Gold,
        tools: tuple[ToolView, ...],
        by_name: Mapping[str, ToolView],
    ) -> Row:
        turn = turn_text(memory.system, user)
        asked = ask_tools(turn, tools, memory)
        active = by_name.get(gold.active or "")
        slots: tuple[SlotRow, ...] = ()
        call_facts, call = np.zeros(0, np.float32), -1
        if active is not None:
            slots = self._slots(turn, ask_slots(turn, active, memory), active, memory, gold)
            then = memory.copy()
            new = 0
            for slot in active.slots:
                if slot.name in gold.after:
                    if memory.values.get(slot) not in gold.after[slot.name]:
                        new += slot.name not in gold.before or not (
                            {*gold.before[slot.name]} & {*gold.after[slot.name]}
                        )
                    then.values[slot] = _spelling(memory, slot, gold)
            if not missing(active, then):
                call_facts = ask_call(turn, active, then, new)
                call = int(gold.call is not None)
        return Row(
            self.table.places(turn.vectors),
            np.array([self.common.get(token.lower, 0) for token in turn.read], np.int16),
            turn.shapes.astype(np.float16),
            turn.heard,
            self.table.places(asked.vectors),
            asked.facts.astype(np.float16),
            0 if active is None else 1 + [tool.name for tool in tools].index(active.name),
            slots,
            call_facts.astype(np.float16),
            call,
        )

    def _slots(
        self, turn: TurnText, asked: SlotsAsked, tool: ToolView, memory: Memory, gold: Gold
    ) -> tuple[SlotRow, ...]:
        found = []
        for number, slot in enumerate(tool.slots):
            values = asked.values[number]
            candidates, candidate_facts = asked.candidates[number]
            texts = [one.text for one in candidates]
            right, span = right_answers(turn, slot, gold, texts, memory.values.get(slot))
            found.append(
                SlotRow(
                    self.table.places(asked.vectors[number]),
                    asked.facts[number].astype(np.float16),
                    asked.pairs[number].astype(np.float16),
                    self.table.places(values.vectors),
                    values.facts.reshape(-1, VALUE).astype(np.float16),
                    values.hits.astype(np.float16),
                    candidate_facts.reshape(-1, CANDIDATE).astype(np.float16),
                    right,
                    span,
                )
            )
        return tuple(found)


def _spelling(memory: Memory, slot: Slot, gold: Gold) -> str:
    given = gold.after[slot.name]
    current = memory.values.get(slot)
    admissible = {*given, *(gold.canonical.get(slot.name, ()) if current else ())}
    if current is not None and current in admissible and not is_new(gold, slot.name):
        return current
    return given[0]


def is_new(gold: Gold, slot: str) -> bool:
    """Return whether a turn filled a slot with a value that it did not have before."""
    if slot not in gold.after:
        return False
    return slot not in gold.before or not {*gold.before[slot]} & {*gold.after[slot]}


def right_answers(
    turn: TurnText, slot: Slot, gold: Gold, candidates: Sequence[str], current: str | None
) -> tuple[np.ndarray, tuple[int, int]]:
    """Return which answers for a slot are right at a turn, and the span that says its value."""
    right = np.zeros(FIXED + len(slot.values) + len(candidates), bool)
    values = gold.after.get(slot.name, [])
    spoken = slot.name in gold.spans
    if not is_new(gold, slot.name) and not (spoken and not slot.values and current is None):
        right[_KEEP] = True
        return right, (-1, -1)
    if list(values) == [ANY]:
        right[_ANY] = True
        return right, (-1, -1)
    if slot.values:
        low = {value.casefold() for value in values}
        for place, value in enumerate(slot.values):
            right[FIXED + place] = value.casefold() in low
        return right, (-1, -1)
    span = (-1, -1)
    if spoken:
        span = token_span(turn.read[turn.heard + 1 :], gold.spans[slot.name], turn.heard + 1)
    else:
        low = {value.casefold() for value in values}
        for place, text in enumerate(candidates):
            right[FIXED + len(slot.values) + place] = text.casefold() in low
        if slot.name in gold.heard:
            start, end = gold.heard[slot.name]
            if turn.system[start:end].casefold() in low:
                span = token_span(turn.read[: turn.heard], (start, end), 0)
    right[_SPAN] = span[0] >= 0
    return right, span


def token_span(read: Sequence[TextToken], place: tuple[int, int], offset: int) -> tuple[int, int]:
    """Return the first and last token that overlap a span, or (-1, -1) if none does."""
    touched = [
        number
        for number, token in enumerate(read)
        if token.start < place[1] and token.end > place[0]
    ]
    return (offset + touched[0], offset + touched[-1]) if touched else (-1, -1)


def follow(memory: Memory, gold: Gold, slots: Mapping[str, set[Slot]]) -> None:
    """Bring the memory to the right state after a turn."""
    for name in gold.after:
        for slot in sorted(slots.get(name, ()), key=lambda one: one.description):
            memory.values[slot] = _spelling(memory, slot, gold)
    if gold.active is not None:
        memory.active = gold.active
