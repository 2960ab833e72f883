"""A small travel agency for these tests: scenes of a few lines, in words of our own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import (
    BySearch,
    Inapplicable,
    Rewrite,
    Scene,
    Scenes,
    begin,
    list_rewrites,
)
from pytest_dstfuzz.relations.should_change.base import ShouldChange

CITIES = ("ely", "norwich", "oslo", "stevenage", "kings lynn")
TIMES = ("08:15", "09:00", "10:30", "12:45", "17:15")
DAYS = ("monday", "tuesday", "friday", "sunday")
VALUES: Mapping[str, tuple[str, ...]] = {
    "hotel-area": ("centre", "east", "north", "south", "west"),
    "hotel-day": DAYS,
    "hotel-garden": ("false", "true"),
    "hotel-kind": ("guesthouse", "hotel", "swimming pool", "museum"),
    "hotel-name": ("the green man", "old mill", "river house", "north gate inn"),
    "hotel-nights": ("1", "2", "3", "4", "5"),
    "hotel-parking": ("no", "yes"),
    "hotel-people": ("1", "2", "3", "4", "6"),
    "hotel-price": ("cheap", "expensive", "moderate"),
    "hotel-web": ("no", "yes"),
    "train-arriveby": TIMES,
    "train-day": DAYS,
    "train-departure": CITIES,
    "train-destination": CITIES,
    "train-leaveat": TIMES,
}

FLAGS = {"hotel-web": ("wifi",)}

#: What the system says, what the user says, and the state after it.
Said = tuple[str, str, Mapping[str, str]]


@cache
def locks() -> Locks:
    return Locks(load_lexicon(), Ontology(VALUES))


def scene(*said: Said, label: Mapping[str, str] | None = None) -> Scene:
    """Return the scene of the last turn; a turn is what the system and the user say, and a state.

    Args:
        said: the turns.
        label: of the last turn; where it is not given, no turn has a label.
    """
    last = None if label is None else BeliefState(label)
    turns = tuple(
        Turn(n, system, user, last if n == len(said) - 1 else None)
        for n, (system, user, _) in enumerate(said)
    )
    dialogue = Dialogue("d", turns)
    data = DialogueSet("agency", "test", (dialogue,), Ontology(VALUES), flag_words=FLAGS)
    scenes = Scenes(data, load_lexicon(), locks(), 0)
    return scenes.of("test", dialogue, len(said) - 1, [BeliefState(state) for _, _, state in said])


def offered(relation: ShouldChange, *said: Said) -> list[Rewrite]:
    """Return the rewrites of a scene."""
    begun = begin(relation, scene(*said))
    assert not isinstance(begun, BySearch)
    return [] if isinstance(begun, Inapplicable) else list_rewrites(begun)


def rewrites(relation: ShouldChange, *said: Said) -> list[Rewrite]:
    """Return the rewrites of a scene, which must be there."""
    found = offered(relation, *said)
    assert found
    return found


def reason(
    relation: ShouldChange,
    *said: Said,
    label: Mapping[str, str] | None = None,
) -> str:
    """Return why a relation says nothing about a scene."""
    begun = relation.begin(scene(*said, label=label))
    assert isinstance(begun, Inapplicable), begun
    assert begun.reason in relation.reasons
    return begun.reason
