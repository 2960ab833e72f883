"""The shipped dialogues as scenes."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import Scenes


@pytest.fixture(scope="session")
def sample() -> DialogueSet:
    """The shipped dialogues."""
    return load_dialogues(SAMPLE)


@pytest.fixture(scope="session")
def scenes(sample: DialogueSet) -> Scenes:
    """Scenes of the shipped dialogues."""
    lexicon = load_lexicon()
    return Scenes(sample, lexicon, Locks(lexicon, sample.ontology, sample.cue_words), seed=3)
