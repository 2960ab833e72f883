"""Slots and their known values: from an ontology file, the labels at hand, or the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.sgd import schema_values
from pytest_dstfuzz.dialogue.readers.source import SourceFile, as_state, checked
from pytest_dstfuzz.dialogue.spool import gathered
from pytest_dstfuzz.dialogue.values import members_of
from pytest_dstfuzz.errors import UserError, unknown_name

__all__ = ["with_slots"]

_Pairs = Iterable[tuple[str, object]]


def read_ontology(file: SourceFile, normalisation: str) -> Ontology:
    """Read ``slot -> list of values``, or the ``schema.json`` of MultiWOZ 2.2 or SGD."""
    parsed = file.json()
    pairs = _of_schema(file) if isinstance(parsed, list) else _of_object(parsed, file.place)
    return _collect(pairs, normalisation, file.place)


def complete_ontology(
    known: Ontology | None, dialogues: Iterable[Dialogue], normalisation: str
) -> Ontology | None:
    """Fill the slots for which ``known`` has no values with those of the labels.

    MultiWOZ's closed slots get all of their values, and slots that are neither among its
    30 nor in a label are left out (its schemas have phone numbers). ``None`` where there
    is nothing to know: no ontology, no label, and slots that are not MultiWOZ's. Complete
    unless the labels are all there is.
    """
    states = (turn.state for dialogue in dialogues for turn in dialogue.turns)
    # Once each: states repeat from turn to turn.
    pairs = dict.fromkeys(pair for state in states if state for pair in state.items())
    labels = _collect(pairs, normalisation, "the labels")
    values = dict(labels.values)
    for slot in multiwoz.SLOTS if normalisation == "multiwoz" else ():
        values[slot] = tuple(sorted({*values.get(slot, ()), *multiwoz.closed_values(slot)}))
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
    for slot, raw in checked(dict[str, Any], parsed, f"{place}: the ontology").items():
        yield slot, ""  # A slot without known values is still a slot.
        for value in checked(list[Any], raw, f"{place}: the values of slot {slot!r}"):
            yield slot, value


def _of_schema(file: SourceFile) -> Iterator[tuple[str, object]]:
    for name, values in schema_values(file):
        yield name, ""
        for value in values:
            yield name, value


def _collect(pairs: _Pairs, normalisation: str, place: str) -> Ontology:
    """Group values by slot, those of a list each for itself.

    ``dontcare`` and absence are no values of an ontology.
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
    """Return a data set that has the named slots and no others, as by an ontology.

    Values that are known of them stay known. Labels of other slots are left out: what is not
    asked for can be neither right nor wrong. Names may have any spelling that the normalisation
    of the data knows; without any it stays as it is.
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
        source="the option slots (--dst-slots: all slots of the bot)",
    )

    def cut(turn: Turn) -> Turn:
        kept = {slot: v for slot, v in (turn.state or {}).items() if slot in ontology.values}
        return turn if turn.state is None else replace(turn, state=BeliefState(kept))

    dialogues = (replace(each, turns=tuple(map(cut, each.turns))) for each in data.dialogues)
    return replace(data, ontology=ontology, dialogues=gathered(dialogues))


def partial_labels(data: DialogueSet) -> str:
    """Return how many turns have labels, where it is some and not all; else ``""``."""
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
    """Return the note that labels are partial and name only some of the slots, if they are."""
    text = partial_labels(data)
    if not text or data.ontology is None or data.ontology.complete:
        return ()
    count = len(data.ontology.slots)
    note = f"{text}; the slots that they name ({count}) need not be all: give all with the option"
    return (f"{note} slots (--dst-slots) or in an ontology file.",)
