"""The bandit learns a planted weakness and finds it with fewer calls than random sampling does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import pytest
from planted import PlantedBot, write_folder

pytest.importorskip("torch")

from pytest_dstfuzz.agents.training.train_bandit import ScorerRun, train_bandit
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

#: Calls that pay for learning, with twelve attempts at a turn.
CALLS = 900


class Found(NamedTuple):
    broken: int  #: Turns.
    calls: int  #: Clean ones included.


def found(data: DialogueSet, search: str, seed: int) -> Found:
    """Return what a search finds with at most six attempts at a turn, none once it is broken."""
    settings = Settings.of(
        search=search, seed=seed, validity="natural", variants=6, stop_at_first=True, shrink=False
    )
    plan = [(dialogue, 0) for dialogue in data.dialogues]
    campaign = CampaignEngine(settings, data, PlantedBot(), load_lexicon(), plan=plan)
    results = list(campaign.run())
    broken = sum(bool(result.violations) for result in results)
    return Found(broken, sum(result.calls for result in results))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bakery"), count=80, turns=1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bandit_needs_fewer_calls_than_random(folder: Path, tmp_path: Path, seed: int) -> None:
    run = ScorerRun("planted:PlantedBot", str(folder), tmp_path, calls=CALLS, seed=seed)
    result = train_bandit(run, lambda _: None, PlantedBot())
    assert result.calls < 1.4 * CALLS

    # Of other dialogues: a split that it was not trained on.
    data = load_dialogues(str(folder), "test")
    data = dataclasses.replace(data, dialogues=data.dialogues[:40])
    bandit, random = found(data, f"bandit:{result.scorer}", seed), found(data, "random", seed)
    assert bandit.broken > random.broken
    assert bandit.calls < 0.75 * random.calls
    # Without the clean calls, which both need: attempts for each turn that they break.
    each = [(one.calls - 40) / one.broken for one in (bandit, random)]
    assert each[0] < 0.6 * each[1]
