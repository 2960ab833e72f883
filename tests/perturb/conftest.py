"""Perturbers and turns that the tests of this room share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, Ontology
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon

ONTOLOGY = Ontology(
    {
        "cafe-name": ("frankie and bennys restaurant", "the lucky star", "st johns cafe", "meow"),
        "cafe-area": ("north", "south"),
        "cafe-food": ("italian", "north american", "architecture"),
        "bus-departure": ("new york", "new orleans", "ely"),
        "bus-destination": ("new york", "new orleans", "ely"),
        "bus-leaveat": ("17:15", "09:00"),
        "bus-day": ("monday", "tuesday"),
    }
)
CUES = ("cafe", "wifi", "seats", "table")


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return load_lexicon()


@pytest.fixture(scope="session")
def strict(lexicon: Lexicon) -> Perturber:
    return Perturber(lexicon, validity="strict", ontology=ONTOLOGY, cue_words=CUES)


@pytest.fixture(scope="session")
def edit_rate(lexicon: Lexicon) -> Perturber:
    return Perturber(lexicon, validity="edit-rate", ontology=ONTOLOGY, cue_words=CUES)


@pytest.fixture(scope="session")
def real_turns() -> DialogueSet:
    """The MultiWOZ 2.1 test split."""
    default = Path(__file__).parents[3] / "shared"
    folder = Path(os.environ.get("DSTFUZZ_SHARED", default)) / "data" / "multiwoz21"
    if not folder.is_dir():
        pytest.skip(f"MultiWOZ 2.1 is not at {folder}")
    return load_dialogues(folder, "test")
