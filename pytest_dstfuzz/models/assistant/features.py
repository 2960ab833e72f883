"""A turn as arrays: what the network is asked, in training as in use."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pytest_dstfuzz.models.assistant.memory import ANY, EarlierValue, Memory
from pytest_dstfuzz.models.assistant.schema import Described, Slot, ToolView
from pytest_dstfuzz.models.assistant.words import (
    LONGEST,
    WIDTH,
    Array,
    TextToken,
    directions,
    folded,
    plain,
    says,
    shapes,
    tokens,
)

#: Numbers that each thing has beside its vectors.
PAIR: Final = 6
SLOT: Final = 12
VALUE: Final = 15
CANDIDATE: Final = 18
TOOL: Final = 10
CALL: Final = 14
#: Numbers below this are thought of where they are not said.
_FEW: Final = 7
_FIGURE: Final = re.compile(r"[0-9]{1,9}(?:,[0-9]{3})*(?:\.[0-9]{1,9})?")
#: What comes after a number that is an hour.
_HOURS: Final = (("am",), ("pm",), ("a.m.",), ("p.m.",), ("a.m",), ("p.m",), ("o'clock",))
_KINDS: Final = ("result", "argument", "other")


@dataclass(frozen=True)
class TurnText:
    """The assistant's last text and the user's, as one row of tokens with a gap between them."""

    read: list[TextToken]
    #: Tokens of the assistant's text; the gap comes after them, then the user's.
    heard: int
    system: str
    user: str
    system_folded: str
    user_folded: str
    #: The tokens as values are looked for among them.
    plain: tuple[str, ...]
    #: Directions ``[tokens, WIDTH]`` and shapes ``[tokens, SHAPE]``; the gap's are zero.
    vectors: Array
    shapes: Array

    def text(self, start: int, end: int) -> str:
        """Return what tokens ``start`` to ``end`` (inclusive) say, as it is written."""
        whole = self.system if start < self.heard else self.user
        return whole[self.read[start].start : self.read[end].end]


_GAP: Final = TextToken("", 0, 0, "")


def turn_text(system: str, user: str) -> TurnText:
    """Read both texts of a turn."""
    heard, spoken = tokens(system)[-LONGEST:], tokens(user)[:LONGEST]
    gap_vector, gap_shape = np.zeros((1, WIDTH), np.float32), np.zeros((1, 16), np.float32)
    vectors = [
        directions([token.lower for token in heard])[0],
        gap_vector,
        directions([token.lower for token in spoken])[0],
    ]
    looks = [shapes(heard, user=False), gap_shape, shapes(spoken, user=True)]
    return TurnText(
        [*heard, _GAP, *spoken],
        len(heard),
        system,
        user,
        folded(system),
        folded(user),
        (*(plain(one.lower) for one in heard), "", *(plain(one.lower) for one in spoken)),
        np.concatenate(vectors),
        np.concatenate(looks),
    )


@dataclass(frozen=True)
class ToolsAsked:
    """The tools of a turn: vectors ``[tools, 2, WIDTH]`` (name, description), ``[tools, TOOL]``."""

    vectors: Array
    facts: Array


@dataclass(frozen=True)
class ValuesAsked:
    """The values that the schema lists for a slot."""

    #: ``[values, WIDTH]``
    vectors: Array
    #: ``[values, VALUE]``
    facts: Array
    #: ``[values, tokens]``: 1 where the text says the value.
    hits: Array


@dataclass(frozen=True)
class SlotsAsked:
    """The slots of one tool at a turn."""

    #: As they are asked: one for a number lists those of the texts.
    slots: tuple[Slot, ...]
    #: ``[slots, 2, WIDTH]``: name and description.
    vectors: Array
    #: ``[slots, SLOT]``
    facts: Array
    #: ``[slots, tokens, PAIR]``
    pairs: Array
    values: list[ValuesAsked]
    #: For each slot its candidates, with facts ``[candidates, CANDIDATE]``.
    candidates: list[tuple[list[EarlierValue], Array]]


def _overlap(turn: TurnText, rows: Array) -> tuple[float, float]:
    """Return how well words are met by the assistant's text and by the user's, on average."""
    if not len(rows):
        return 0.0, 0.0
    met = rows @ turn.vectors.T
    heard = met[:, : turn.heard].max(axis=1).mean() if turn.heard else 0.0
    spoken = met[:, turn.heard + 1 :]
    return float(heard), float(spoken.max(axis=1).mean()) if spoken.shape[1] else 0.0


def ask_tools(turn: TurnText, tools: tuple[ToolView, ...], memory: Memory) -> ToolsAsked:
    """Return the tools of a turn as the network sees them."""
    vectors = np.stack([np.stack([one.label_vector, one.about_vector]) for one in tools])
    facts = np.zeros((len(tools), TOOL), np.float32)
    for number, tool in enumerate(tools):
        filled = sum(slot in memory.values for slot in tool.slots)
        facts[number, :4] = (*_overlap(turn, tool.label_rows), *_overlap(turn, tool.about_rows))
        facts[number, 4] = memory.active == tool.name
        facts[number, 5] = tool.name in memory.calls
        facts[number, 6] = filled / max(len(tool.slots), 1)
        facts[number, 7] = memory.active is None
        facts[number, 8] = len(tools) == 1
        facts[number, 9] = memory.after_results
    return ToolsAsked(vectors, facts)


def ask_slots(turn: TurnText, tool: ToolView, memory: Memory) -> SlotsAsked:
    """Return the slots of a tool as the network sees them."""
    slots = tuple(_listed(turn, slot) for slot in tool.slots)
    open_slots = missing(tool, memory)
    facts = np.zeros((len(slots), SLOT), np.float32)
    pairs = np.zeros((len(slots), len(turn.read), PAIR), np.float32)
    values, candidates = [], []
    for number, (slot, known) in enumerate(zip(slots, tool.slots, strict=True)):
        current = memory.values.get(known)
        met = pairs[number]
        _meet(met, turn, slot, current)
        facts[number] = (
            current is not None,
            current == ANY,
            slot.name in tool.required,
            bool(slot.values),
            slot.boolean,
            slot.number,
            open_slots[:1] == [known],
            open_slots == [known],
            memory.active == tool.name,
            current is not None and says(turn.system_folded, folded(current)),
            memory.after_results,
            tool.name in memory.calls,
        )
        found = memory.candidates(known)
        vectors_of = slot.value_vectors if slot.values else _NOTHING
        facts_of = _values(turn, slot, current, found)
        values.append(ValuesAsked(vectors_of, facts_of, _hits(turn, slot)))
        # A value of a list is chosen from the list.
        found = [] if slot.values else found
        candidates.append((found, _candidates(turn, slot, tool, current, found)))
    vectors = np.zeros((len(slots), 2, WIDTH), np.float32)
    for number, slot in enumerate(slots):
        vectors[number] = slot.label_vector, slot.about_vector
    return SlotsAsked(slots, vectors, facts, pairs, values, candidates)


def _listed(turn: TurnText, slot: Slot) -> Slot:
    """Return a slot for a number without a list with the numbers that one may mean."""
    if not slot.number or slot.values:
        return slot
    said = {word for word in turn.plain if _FIGURE.fullmatch(word)}
    found = said | {str(number) for number in range(1, _FEW)}
    ordered = sorted(found, key=lambda word: (float(word.replace(",", "")), word))
    return replace(slot, values=tuple(ordered))


_NOTHING: Final = np.zeros((0, WIDTH), np.float32)


def _meet(met: Array, turn: TurnText, slot: Slot, current: str | None) -> None:
    """Write what each token has to do with a slot."""
    for place, rows in ((0, slot.label_rows), (1, slot.about_rows)):
        if len(rows):
            met[:, place] = (turn.vectors @ rows.T).max(axis=1)
    held = frozenset(folded(current).split()) if current is not None else frozenset()
    about = {*slot.label, *slot.about}
    for place, token in enumerate(turn.read):
        low = token.lower
        if low:
            met[place, 2] = low in slot.vocabulary
            met[place, 3] = low in held
            met[place, 4] = low in about
    if slot.values and not slot.boolean:
        rows = slot.value_vectors
        met[:, 5] = (turn.vectors @ rows.T).max(axis=1)


def _values(turn: TurnText, slot: Slot, current: str | None, found: list[EarlierValue]) -> Array:
    before = {one.text.casefold() for one in found if one.kind == "argument"}
    given = {one.text.casefold() for one in found if one.kind == "result"}
    table = np.zeros((len(slot.values), VALUE), np.float32)
    held = None if current is None else folded(current)
    for number, value in enumerate(slot.folded_values):
        yes, no = value in ("true", "yes"), value in ("false", "no", "none")
        table[number, :8] = (
            not (yes or no) and says(turn.user_folded, value),
            not (yes or no) and says(turn.system_folded, value),
            yes,
            no,
            value.replace(".", "").isdigit(),
            held == value,
            len(slot.values) == 2,
            1 / (1 + number),
        )
        table[number, 14] = slot.default is not None and slot.values[number] == slot.default
        table[number, 12] = slot.values[number].casefold() in before
        table[number, 13] = slot.values[number].casefold() in given
        if not (yes or no):
            table[number, 8:10] = _overlap(turn, slot.value_rows[number])
    # What only one value of all has counts for more than what all of them have.
    for place in (8, 9):
        if len(table) > 1:
            table[:, place + 2] = table[:, place] >= table[:, place].max() - 1e-6
    return table


def _hits(turn: TurnText, slot: Slot) -> Array:
    table = np.zeros((len(slot.values), len(turn.read)), np.float32)
    for number, wanted in enumerate(slot.value_tokens):
        if wanted and wanted[0] in turn.plain:
            for place in range(len(turn.plain) - len(wanted) + 1):
                end = place + len(wanted)
                hour = wanted[0].isdigit() and turn.plain[end : end + 1] in _HOURS
                if turn.plain[place:end] == wanted and not hour:
                    table[number, place:end] = 1
    return table


def _candidates(
    turn: TurnText, slot: Slot, tool: ToolView, current: str | None, found: list[EarlierValue]
) -> Array:
    table = np.zeros((len(found), CANDIDATE), np.float32)
    held = None if current is None else current.casefold()
    fit = frozenset(slot.folded_values)
    kinds = [one.kind for one in found]
    for number, one in enumerate(found):
        low = folded(one.text)
        source = one.source
        table[number] = (
            *(one.kind == kind for kind in _KINDS),
            float(slot.label_vector @ source.label_vector),
            _about(slot, source),
            source.name == slot.name,
            one.age == 0,
            one.age is not None and one.age > 0,
            0.0 if one.age is None else 1 / (1 + one.age),
            says(turn.user_folded, low),
            held == one.text.casefold(),
            kinds.count(one.kind) == 1,
            number == kinds.index(one.kind),
            one.tool == tool.name,
            any(map(str.isdigit, one.text)),
            ":" in one.text,
            low in fit,
            held is not None,
        )
    return table


def _about(slot: Slot, source: Described) -> float:
    other = source.about_vector if source.about else source.label_vector
    return float(slot.about_vector @ other)


def ask_call(turn: TurnText, tool: ToolView, memory: Memory, new: int) -> Array:
    """Return what speaks for calling now ``[CALL]``; ``new`` values were filled at this turn."""
    given = {
        slot.name: memory.values[slot] for slot in tool.slots if memory.values.get(slot, ANY) != ANY
    }
    last = memory.calls.get(tool.name)
    same = last is not None and {k: v.casefold() for k, v in last.items()} == {
        k: v.casefold() for k, v in given.items()
    }
    told = [says(turn.system_folded, folded(value)) for value in given.values()]
    asked = turn.system.rstrip().endswith("?") or "confirm" in turn.system_folded
    return np.array(
        (
            last is not None,
            same,
            new > 0,
            min(new, 4) / 4,
            memory.active == tool.name,
            memory.active is None,
            sum(told) / max(len(told), 1),
            len(told) > 1 and all(told),
            memory.after_results,
            asked,
            "?" in turn.user,
            len(tool.required) / 5,
            (len(given) - len(tool.required)) / 5,
            not turn.system,
        ),
        np.float32,
    )


def missing(tool: ToolView, memory: Memory) -> list[Slot]:
    """Return the required slots that have no value yet, in the order of the schema."""
    by_name = {slot.name: slot for slot in tool.slots}
    return [by_name[name] for name in tool.required if by_name[name] not in memory.values]
