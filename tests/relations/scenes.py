"""Scenes for the tests of relations: small dialogues with labels that stand for answers."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import Scene, Scenes

ONTOLOGY = Ontology(
    {
        "hotel-area": ("north", "south"),
        "hotel-name": ("golden lion",),
        "hotel-price": ("cheap", "dear"),
    }
)


def labelled_talk(
    *said: tuple[str, Mapping[str, str]], ontology: Ontology | None = ONTOLOGY
) -> DialogueSet:
    """Return data of one dialogue: what the user says, and the state after it."""
    turns = [
        Turn(index, "anything else ?" if index else "", user, BeliefState(state))
        for index, (user, state) in enumerate(said)
    ]
    return DialogueSet("toy", "test", (Dialogue("d", tuple(turns)),), ontology)


def scene_of(data: DialogueSet, index: int = 0, relation: str = "toy", seed: int = 0) -> Scene:
    """Return the scene of a turn of the first dialogue, by its labels."""
    lexicon = load_lexicon()
    guards = Locks(lexicon, data.ontology, data.cue_words)
    return Scenes(data, lexicon, guards, seed).labelled(relation, data.dialogues[0], index)
