"""Agents of which one half is a coin."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dstfuzz.agents.policies import COUNT, STATE_SIZE
from pytest_dstfuzz.agents.searches import find_policy
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.search.registry import register_search
from tools.agents.parts import HalfAgent, HalfPolicy
from tools.weaknesses.planted_bot import PlantedBot, dialogues

WHOLE = find_policy("agent").policy
STATE = np.linspace(0, 1, STATE_SIZE, dtype=np.float32)


def test_one_half_is_the_policy_and_the_other_is_drawn() -> None:
    critic, network = HalfPolicy(WHOLE, "parameters"), HalfPolicy(WHOLE, "ranking")
    parameters = WHOLE.parameters(STATE)
    values = WHOLE.values(STATE, parameters)
    assert np.array_equal(critic.values(STATE, parameters), values)
    assert np.array_equal(network.parameters(STATE), parameters)
    drawn = critic.parameters(STATE), critic.parameters(STATE)
    assert drawn[0].shape == parameters.shape
    assert not np.array_equal(*drawn)
    ranks = [network.values(STATE, parameters) for _ in range(2)]
    assert ranks[0].shape == (COUNT,)
    assert not np.array_equal(*ranks)


@pytest.mark.parametrize("half", ["critic", "parameters"])
def test_a_half_proposes_the_same_for_the_same_seed(half: str) -> None:
    register_search(half, lambda seed, k: HalfAgent(find_policy("agent"), half, seed, k))

    def play(seed: int) -> tuple[TurnResult, ...]:
        settings = Settings.of(search=half, seed=seed, variants=2, turns=None, validity="strict")
        return tuple(Campaign(PlantedBot(), dialogues(2), settings))

    assert play(3) == play(3)
    assert play(3) != play(4)
