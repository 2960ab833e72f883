"""Random search: every action is a function of seed, dialogue, turn, variant and draw."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Action
from pytest_dstfuzz.search.protocol import SearchTask
from pytest_dstfuzz.search.registry import default_search, search_by_name
from pytest_dstfuzz.seeding import stream

TALK = Dialogue("talk", (Turn(0, "", "hello"), Turn(1, "hi", "a taxi")))
PERTURBER = Perturber(load_lexicon(), validity="strict")


def actions(
    count: int = 5,
    seed: int = 0,
    k: int = 3,
    dialogue: Dialogue = TALK,
    turn: int = 0,
    draw: int = 0,
) -> list[Action]:
    source = PERTURBER.prepare(dialogue.turns[turn].user)
    task = SearchTask(dialogue, turn, None, PERTURBER, source)
    attempts = search_by_name("random", seed=seed, k=k).turn(task)
    found = [attempts.propose(number, draw, ()) for number in range(count)]
    assert [PERTURBER.apply(source, item.action) for item in found] == [
        item.variant for item in found
    ]
    return [item.action for item in found]


def test_the_same_names_give_the_same_actions() -> None:
    assert actions() == actions()
    assert actions(2) == actions(5)[:2]


def test_another_seed_dialogue_turn_or_draw_gives_others() -> None:
    other = Dialogue("other", TALK.turns)
    drawn = [actions(), actions(seed=1), actions(dialogue=other), actions(turn=1), actions(draw=1)]
    assert len({action.vector for group in drawn for action in group}) == 25


def test_k_is_handed_on() -> None:
    assert [{action.k for action in actions(k=k)} for k in (1, 6)] == [{1}, {6}]


def test_a_first_draw_has_the_stream_of_its_variant() -> None:
    """What campaigns drew before there were redraws, they still draw."""
    rng = stream(7, "search", "random", "talk", 1, 4)
    expected = np.rint(rng.random(50) * 1024) / 1024
    assert actions(seed=7, turn=1)[4].vector == tuple(expected.tolist())


def test_names() -> None:
    assert search_by_name("random", seed=0, k=1).name == "random"
    with pytest.raises(UserError, match=r"unknown search 'rnadom'. Did you mean 'random'\? Valid:"):
        search_by_name("rnadom", seed=0, k=1)


def test_the_default_search_is_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    trade = Settings.of(model="trade")
    assert default_search(trade) == "noise+bandit"
    # Only the profile "natural" has a noise model.
    assert default_search(Settings.of(model="trade", validity="strict")) == "random"
    # The wing of the agents may be a package of its own.
    monkeypatch.setattr(
        "pytest_dstfuzz.search.registry.entry_points", lambda _: metadata.EntryPoints()
    )
    assert default_search(trade) == "noise+random"
