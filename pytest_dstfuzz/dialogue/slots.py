"""Which slots a data set has: those that the user names, and what is said of partial labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.errors import UserError, unknown_name


def with_slots(data: DialogueSet, names: Sequence[str]) -> DialogueSet:
    """Return a data set that has the named slots and no others, as by an ontology.

    Values that are known of them stay known. Labels of other slots are left out: what is not
    asked for can be neither right nor wrong.

    Args:
        data: the data set.
        names: of slots, in any spelling that its normalisation knows; none = as it is.

    Raises:
        UserError: a name that a complete ontology of the data does not have.
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

    def of(dialogue: Dialogue) -> Dialogue:
        turns = (
            turn
            if turn.state is None
            else replace(
                turn,
                state=BeliefState({s: v for s, v in turn.state.items() if s in ontology.values}),
            )
            for turn in dialogue.turns
        )
        return replace(dialogue, turns=tuple(turns))

    return replace(data, ontology=ontology, dialogues=tuple(map(of, data.dialogues)))


def partial_labels(data: DialogueSet) -> str:
    """Return how many turns have labels, where it is some and not all; else ``""``."""
    turns = [turn for dialogue in data.dialogues for turn in dialogue.turns]
    count = sum(turn.state is not None for turn in turns)
    if count in (0, len(turns)):
        return ""
    dialogues = sum(any(t.state is not None for t in d.turns) for d in data.dialogues)
    return (
        f"{count:,} of {len(turns):,} turns have labels, in {dialogues:,} of "
        f"{len(data.dialogues):,} dialogues"
    )


def labels_note(data: DialogueSet) -> tuple[str, ...]:
    """Return the note that labels are partial and name only some of the slots, if they are."""
    text = partial_labels(data)
    if not text or data.ontology is None or data.ontology.complete:
        return ()
    count = len(data.ontology.slots)
    note = f"{text}; the slots that they name ({count}) need not be all: give all with the option"
    return (f"{note} slots (--dst-slots) or in an ontology file.",)
