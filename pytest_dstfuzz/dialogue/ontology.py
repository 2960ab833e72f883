"""Slots and arguments, and their known values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from pytest_dstfuzz.dialogue import normalise
from pytest_dstfuzz.dialogue.calls import (
    Tool,
    ToolCall,
    arguments_in,
    calls_outcome,
    members_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.dialogue.messages import MessageCall, decode_message
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.corpora import schema_values
from pytest_dstfuzz.dialogue.readers.source import SourceFile, as_state, convert_checked
from pytest_dstfuzz.dialogue.readers.tools import enum_members
from pytest_dstfuzz.dialogue.sampling import gather_dialogues
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.printable import format_count

__all__ = ["with_slots"]


_Pairs = Iterable[tuple[str, object]]


def read_ontology(file: SourceFile, normalisation: str) -> Ontology:
    """Read ``slot -> list of values``, or the ``schema.json`` of MultiWOZ 2.2 or SGD."""
    parsed = file.json()
    pairs = _of_schema(file) if isinstance(parsed, list) else _of_object(parsed, file.place)
    return _collect(pairs, normalisation, file.place)


def ontology_of(values: Mapping[str, Sequence[object]], normalisation: str, place: str) -> Ontology:
    """Return the ontology for slots and their known values."""
    return _collect(_of_object(values, place), normalisation, place)


def complete_ontology(
    known: Ontology | None, dialogues: Iterable[Dialogue], normalisation: str
) -> Ontology | None:
    """Fill slots without values in ``known`` with the values from the labels.

    With the normalisation ``multiwoz``, closed slots get all their values. Slots outside of
    MultiWOZ's 30 are dropped if they are in no label, such as the phone numbers in its schemas. The
    result is incomplete if labels are its only source. Return ``None`` if there is no ontology, no
    label, and no slot of MultiWOZ.
    """
    states = (turn.state for dialogue in dialogues for turn in dialogue.turns)
    # Deduplicate, because states repeat from turn to turn.
    pairs = dict.fromkeys(pair for state in states if state for pair in state.items())
    labels = _collect(pairs, normalisation, "the labels")
    values = dict(labels.values)
    for slot in normalise.SLOTS if normalisation == "multiwoz" else ():
        values[slot] = tuple(
            sorted({*values.get(slot, ()), *normalise.values_of_closed_slot(slot)})
        )
    if known is not None:
        values |= {
            slot: found or values.get(slot, ())
            for slot, found in known.values.items()
            if normalisation != "multiwoz" or slot in values
        }
    if not values:
        return None
    complete = known is not None or normalisation == "multiwoz"
    return Ontology(dict(sorted(values.items())), complete, normalisation)


def _of_object(parsed: object, place: str) -> Iterator[tuple[str, object]]:
    for slot, raw in convert_checked(dict[str, Any], parsed, f"{place}: the ontology").items():
        yield slot, ""  # Keep slots without known values.
        for value in convert_checked(list[Any], raw, f"{place}: the values of slot {slot!r}"):
            yield slot, value


def _of_schema(file: SourceFile) -> Iterator[tuple[str, object]]:
    for name, values in schema_values(file):
        yield name, ""
        for value in values:
            yield name, value


def _collect(pairs: _Pairs, normalisation: str, place: str) -> Ontology:
    """Group values by slot. Each member of a list is a separate value.

    ``dontcare`` and absence are not values of an ontology.
    """
    values: dict[str, dict[str, None]] = {}
    for raw_slot, raw_value in pairs:
        slot = normalise_slot(raw_slot, normalisation)
        if slot is None:
            continue
        known = values.setdefault(slot, {})
        state: Mapping[str, str] = (
            as_state({raw_slot: raw_value}, f"{place}: a value", normalisation) or {}
        )
        for value in members_of(state.get(slot, DONTCARE)):
            if value != DONTCARE:
                known[value] = None
    return Ontology(
        {slot: tuple(sorted(known)) for slot, known in sorted(values.items())},
        normalisation=normalisation,
    )


def with_slots(data: DialogueSet, names: Sequence[str]) -> DialogueSet:
    """Return a data set restricted to the named slots.

    The named slots keep their known values. Labels of other slots are removed, because no
    prediction of the named slots can match them. Names may have any spelling that the normalisation
    of the data accepts. If ``names`` is empty, return the data unchanged.
    """
    if not names:
        return data
    known = data.ontology
    slots = []
    for name in names:
        slot = normalise_slot(name, data.normalisation)
        if slot is None or (known is not None and known.complete and slot not in known.values):
            raise UserError(f"slots: {unknown_name('slot', name, known.slots if known else ())}")
        slots.append(slot)
    values = {} if known is None else known.values
    ontology = Ontology(
        {slot: values.get(slot, ()) for slot in sorted(set(slots))},
        normalisation=data.normalisation,
        source="the option slots (--dst-slots must name all slots of the bot)",
    )

    def cut(turn: Turn) -> Turn:
        kept = {slot: v for slot, v in (turn.state or {}).items() if slot in ontology.values}
        return turn if turn.state is None else replace(turn, state=BeliefState(kept))

    dialogues = (replace(each, turns=tuple(map(cut, each.turns))) for each in data.dialogues)
    return replace(data, ontology=ontology, dialogues=gather_dialogues(dialogues))


def partial_labels(data: DialogueSet) -> str:
    """Return how many turns have labels, or ``""`` if all or none have labels."""
    if data.labelled:
        return ""
    counts = [sum(turn.state is not None for turn in one.turns) for one in data.dialogues]
    if not any(counts):
        return ""
    return (
        f"{sum(counts):,} of {data.turn_count():,} turns have labels, in "
        f"{sum(map(bool, counts)):,} of {len(counts):,} dialogues"
    )


def labels_note(data: DialogueSet) -> tuple[str, ...]:
    """Return a note if only some turns have labels, and other slots may exist."""
    text = partial_labels(data)
    if not text or data.ontology is None or data.ontology.complete:
        return ()
    count = len(data.ontology.slots)
    note = f"{text}; they name {format_count(count, 'slot')}, but there may be more"
    return (f"{note}: list all slots in the option slots (--dst-slots) or in an ontology file.",)


#: A text with more words is a message to pass on, not one of several known values.
_MOST_WORDS: Final = 6
#: Booleans, which people do not mention by these names.
_FLAGS: Final = frozenset({"true", "false"})
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN_WORDS: Final = (
    "add all and any are book buy check create delete do find for get has have in is list look "
    "make max min new not num of or order play reserve schedule search see set show the to update "
    "value with"
)
#: Words in names of tools and arguments that do not tell the purpose of a value.
_NO_CUES: Final = frozenset(_PLAIN_WORDS.split())


def call_ontology(data: DialogueSet) -> Ontology | None:
    """Return the arguments of all tools with their recorded values and enum members.

    Known slots of belief states are kept. The ontology is incomplete, because a call may have
    arguments that are in no schema and no recorded call.
    """
    known = data.ontology
    values: dict[str, dict[str, None]] = {}
    for tool in data.tools:
        for path, member in enum_members(tool):
            _enter(values, f"{tool.name}.{path}", member)
    for dialogue in data.dialogues:
        for slot, value in iterate_recorded_values(dialogue):
            _enter(values, slot, value)
    if not values:
        return known
    if known is not None:
        values |= {slot: dict.fromkeys(found) for slot, found in known.values.items()}
    return Ontology(
        {slot: tuple(sorted(found)) for slot, found in sorted(values.items())},
        complete=False,
        normalisation=known.normalisation if known is not None else "plain",
        source="the schemas of the tools and the recorded calls",
    )


def arguments_of(tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the tools and their arguments as reports show them: ``book``, ``book.people``."""
    return tuple(
        name
        for tool in tools
        for name in (tool.name, *(f"{tool.name}.{one}" for one in _properties(tool)))
    )


def is_argument(name: str, tools: Iterable[Tool]) -> bool:
    """Return whether a name may be part of a call of these tools, at any depth."""
    for tool in tools:
        if name == tool.name:
            return True
        argument = name.removeprefix(f"{tool.name}.")
        if argument != name:
            known = _properties(tool)
            return not known or re.split(r"[.\[]", argument)[0] in known
    return False


def _properties(tool: Tool) -> Mapping[str, object]:
    found = tool.schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _enter(values: dict[str, dict[str, None]], slot: str, value: object) -> None:
    known = values.setdefault(slot, {})
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return
    text = " ".join(str(value).split())
    if text and text.lower() not in _FLAGS and len(text.split()) <= _MOST_WORDS:
        known[text] = None


def iterate_recorded_values(dialogue: Dialogue) -> Iterator[tuple[str, object]]:
    """Yield the arguments of all recorded calls with their JSON values.

    This includes calls that respond to results instead of a user.
    """
    labels = (turn.calls for turn in dialogue.turns if turn.calls)
    for calls in chain(
        labels, (calls_outcome([call]) for call in iterate_recorded_calls(dialogue))
    ):
        for path, text in arguments_in(calls):
            yield path.part[1], value_of(text)


def iterate_recorded_calls(dialogue: Dialogue) -> Iterator[ToolCall]:
    """Yield all calls in the messages of a dialogue. Skip calls with invalid JSON as arguments."""
    for made in _made(dialogue):
        if (call := made.call) is not None:
            yield call


def unread_tools(dialogue: Dialogue) -> frozenset[str]:
    """Return the tools with a recorded call whose arguments are not a JSON object."""
    return frozenset(made.name for made in _made(dialogue) if made.values is None)


def _made(dialogue: Dialogue) -> Iterator[MessageCall]:
    blocks = [turn.recorded or () for turn in dialogue.turns]
    for text in chain(*blocks, dialogue.closing):
        if '"tool_calls"' in text:  # Fast path: most messages make no calls.
            yield from decode_message(text).calls


def spell_name(name: str) -> str:
    """Return the name of a tool or an argument as ordinary words.

    >>> spell_name("guests.numberOfSeats"), spell_name("pick_up_date")
    ('guests number of seats', 'pick up date')
    """
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def with_call_values(data: DialogueSet) -> DialogueSet:
    """Return data with slots, values and cue words from its tools and recorded calls."""
    ontology = call_ontology(data)
    slots = ontology.slots if ontology is not None else ()
    arguments = [slot for slot in slots if "." in slot]
    words = {word for slot in arguments for word in spell_name(slot).split()} - _NO_CUES
    cues = (word for word in sorted(words) if word.isalpha() and len(word) > 2)
    phrases = {slot: spell_name(slot.rpartition(".")[2]) for slot in arguments}
    return replace(
        data,
        ontology=ontology,
        cue_words=tuple(dict.fromkeys((*data.cue_words, *cues))),
        slot_phrases={**data.slot_phrases, **phrases},
    )
