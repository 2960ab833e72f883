"""The shipped dialogues as scenes, and one turn of a user's as a scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.relations.relation import Scene, Scenes

SceneOf = Callable[..., Scene]


@pytest.fixture(scope="session")
def scene_of(scenes: Scenes) -> SceneOf:
    """Make the scene of one turn, under the ontology of the shipped dialogues."""

    def of(user: str, state: Mapping[str, str] | None = None, system: str = "") -> Scene:
        turn = Turn(0, system, user, BeliefState(state or {}))
        return scenes.labelled("paraphrase", Dialogue("d", (turn,)), 0)

    return of
