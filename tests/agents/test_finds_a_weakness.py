"""The agent finds a planted weakness that random sampling rarely does.

It is one that a place in the utterance tells: the parameter network puts out where to edit,
and sees no single word.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from planted import NearsightedBot, write_folder

pytest.importorskip("torch")

from pytest_dstfuzz.agents.policies import load_policy
from pytest_dstfuzz.agents.training.train_agent import AgentRun, train_agent
from pytest_dstfuzz.agents.training.trainer import TrainingConfig
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

#: Training steps, at most; the issue allows 3,000. With 1,500 one training seed of three found
#: 31 of 40 and the others all; with these each of three found all.
STEPS = 2400


def found(data: DialogueSet, search: str, seed: int) -> float:
    """Return the share of dialogues in which a search finds the weakness.

    One dialogue is one turn of some 30 words, and there is one attempt at it.
    """
    settings = Settings.of(
        validity="strict", search=search, seed=seed, variants=1, transformations=1, redraws=8
    )
    plan = [(dialogue, 0) for dialogue in data.dialogues]
    results = list(
        CampaignEngine(settings, data, NearsightedBot(), load_lexicon(), plan=plan).run()
    )
    return sum(bool(result.violations) for result in results) / len(results)


@pytest.mark.nightly
def test_the_agent_finds_what_random_sampling_does_not(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bakery", count=100, turns=1)
    training = TrainingConfig(
        calls=STEPS + 160,
        attempts=1,
        ks=(1,),
        learning_starts=200,
        train_frequency=2,
        exploration_fraction=0.5,
    )
    run = AgentRun("planted:NearsightedBot", str(folder), tmp_path / "agent", training=training)
    result = train_agent(run, lambda _: None, NearsightedBot())
    assert sum(item.attempts for item in result.history) <= 3000

    names = set(load_policy(result.policy).about.held_out)
    splits = [load_dialogues(str(folder), split) for split in ("val", "test")]
    held_out = tuple(d for data in splits for d in data.dialogues if d.id in names)
    assert len(held_out) == 40
    data = dataclasses.replace(splits[0], dialogues=held_out)
    for seed in (0, 1):
        assert found(data, f"agent:{result.policy}", seed) >= 0.8
        assert found(data, "random", seed) <= 0.4
