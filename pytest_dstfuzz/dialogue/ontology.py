"""Slots and their known values: from an ontology file, else from the labels at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Dialogue, Ontology
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.checks import as_list, as_object, as_state, as_text
from pytest_dstfuzz.dialogue.readers.source import SourceFile

_Pairs = Iterable[tuple[str, object]]


def read_ontology(file: SourceFile, normalisation: str) -> Ontology:
    """Read ``slot -> list of values``, or the ``schema.json`` of MultiWOZ 2.2.

    Raises:
        DataError: another structure; the message names the field.
    """
    parsed = file.json()
    pairs = (
        _of_schema(parsed, file.place)
        if isinstance(parsed, list)
        else _of_object(as_object(parsed, file.place, "the ontology"), file.place)
    )
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
    labels = _collect(_of_labels(dialogues), normalisation, "the labels")
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


def _of_labels(dialogues: Iterable[Dialogue]) -> Iterator[tuple[str, object]]:
    """Yield each pair of slot and value once: states repeat from turn to turn."""
    states = (turn.state for dialogue in dialogues for turn in dialogue.turns)
    yield from dict.fromkeys(pair for state in states if state for pair in state.items())


def _of_object(parsed: Mapping[str, object], place: str) -> Iterator[tuple[str, object]]:
    for slot, raw in parsed.items():
        yield slot, ""  # A slot without known values is still a slot.
        for value in as_list(raw, place, f"the values of slot {slot!r}"):
            yield slot, value


def _of_schema(parsed: list[object], place: str) -> Iterator[tuple[str, object]]:
    for raw in parsed:
        service = as_object(raw, place, "a service")
        for raw_slot in as_list(service.get("slots"), place, "'slots'"):
            slot = as_object(raw_slot, place, "a slot")
            name = as_text(slot.get("name"), place, "the name of a slot")
            yield name, ""
            for value in as_list(slot.get("possible_values", []), place, f"slot {name!r}"):
                yield name, value


def _collect(pairs: _Pairs, normalisation: str, place: str) -> Ontology:
    """Group values by slot; ``dontcare`` and absence are no values of an ontology."""
    values: dict[str, dict[str, None]] = {}
    for raw_slot, raw_value in pairs:
        slot = normalise_slot(raw_slot, normalisation)
        if slot is None:
            continue
        known = values.setdefault(slot, {})
        state = as_state({raw_slot: raw_value}, place, "a value", normalisation)
        value = state.get(slot, DONTCARE)
        if value != DONTCARE:
            known[value] = None
    return Ontology(
        {slot: tuple(sorted(known)) for slot, known in sorted(values.items())},
        normalisation=normalisation,
    )
