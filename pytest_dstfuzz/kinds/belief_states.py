"""Belief states: slots and values that accumulate over a dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, History, Outcome, members_of
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.kinds.kind import AnswerKind, SlotRules, Words


class BeliefStates(AnswerKind):
    """The belief states that a tracker predicts."""

    name = "state"
    has_slots = True
    words = Words(
        who="the tracker",
        what="belief state",
        short="state",
        noun="state",
        several="slots",
        answers="answers",
        labels="labels",
        right="accuracy",
        accuracy=("accuracy", "clean answers", "label"),
        identifier="belief_state",
        nothing="predicts no slot",
        does="believes",
    )

    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the state in the data."""
        return dialogue.turns[index].state

    def adds_up(self, history: History) -> bool:
        """Return true, because a state always covers the whole dialogue."""
        del history
        return True

    def label_values(self, dialogue: Dialogue, index: int) -> Iterator[tuple[str, str]]:
        """Yield each new or changed slot with its value. A list gives one pair per member."""
        before = (self.label(dialogue, index - 1) if index else None) or Outcome()
        for slot, value in (self.label(dialogue, index) or Outcome()).items():
            if before.get(slot) != value:
                for member in members_of(value):
                    yield slot, member

    def slot_values(self, answer: Outcome) -> Mapping[str, str]:
        """Return the state itself."""
        return answer

    def slot_rules(self, data: DialogueSet) -> Mapping[str, SlotRules]:
        """Return the slots and values of the ontology."""
        known = {} if data.ontology is None else data.ontology.values
        return {
            slot: SlotRules(AnswerPath((slot,)), {value: value for value in values})
            for slot, values in known.items()
        }

    def is_closed(self, data: DialogueSet, path: str) -> bool:
        """Return whether an ontology lists the values of a slot. Labels give only examples."""
        ontology = data.ontology
        return ontology is not None and ontology.complete and bool(ontology.values.get(path))

    def values(self, data: DialogueSet, turn: Turn, clean: Outcome | None) -> Iterator[str]:
        """Yield the predicted values of slots that the ontology lacks.

        If the data has no labels or no ontology, all predicted values are yielded.
        """
        known = {} if turn.state is None or data.ontology is None else data.ontology.values
        for slot, value in (clean or {}).items():
            if slot not in known:
                yield value


BELIEF_STATES: Final = BeliefStates()
