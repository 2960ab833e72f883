"""Turns of the shipped dialogues as tasks."""

from __future__ import annotations

from functools import lru_cache

import pytest
from turns import Tasks

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.search.protocol import SearchTask


@pytest.fixture(scope="session")
def tasks() -> Tasks:
    data = load_dialogues("sample", "test")

    @lru_cache
    def build(
        order: str = "reading",
        count: int = 4,
        only: tuple[str, ...] = (),
        validity: str = "strict",
    ) -> list[SearchTask]:
        perturber = Perturber(
            load_lexicon(),
            validity=validity,
            ontology=data.ontology,
            cue_words=data.cue_words,
            edits=only,
            order=order,
        )
        found = []
        for dialogue in data.dialogues[:count]:
            for turn in dialogue.turns:
                values = sorted((turn.state or {}).values())
                source = perturber.prepare(turn.user, values, turn.system)
                found.append(SearchTask(dialogue, turn.index, None, perturber, source))
        return found

    return build
