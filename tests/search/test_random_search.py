"""Random search: every action is a function of seed, dialogue, turn and variant."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.types import Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.search.registry import search_by_name

TALK = Dialogue("talk", (Turn(0, "", "hello"), Turn(1, "hi", "a taxi")))


def actions(
    count: int = 5, seed: int = 0, k: int = 3, dialogue: Dialogue = TALK, turn: int = 0
) -> list[Action]:
    return list(search_by_name("random", seed=seed, k=k).actions(dialogue, turn, count))


def test_the_same_names_give_the_same_actions() -> None:
    assert actions() == actions()
    assert actions(2) == actions(5)[:2]


def test_another_seed_dialogue_or_turn_gives_others() -> None:
    other = Dialogue("other", TALK.turns)
    drawn = [actions(), actions(seed=1), actions(dialogue=other), actions(turn=1)]
    assert len({action.vector for group in drawn for action in group}) == 20


def test_k_is_handed_on() -> None:
    assert [{action.k for action in actions(k=k)} for k in (1, 6)] == [{1}, {6}]


def test_names() -> None:
    assert search_by_name("random", seed=0, k=1).name == "random"
    with pytest.raises(
        UserError, match=r"unknown search 'rnadom'. Did you mean 'random'\? Valid: random"
    ):
        search_by_name("rnadom", seed=0, k=1)
