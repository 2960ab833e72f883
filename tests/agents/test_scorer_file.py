"""Scorers as files: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scorers import ABOUT, random_weights

from pytest_dstfuzz.agents.scorers import SCORER_FILE, load_scorer, save_scorer
from pytest_dstfuzz.agents.searches import SHIPPED_SCORER, training_calls
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.search.registry import (
    CheckedSearch,
    describe_trained,
    find_training,
    search_by_name,
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / SCORER_FILE
    save_scorer(path, random_weights(), ABOUT)
    return path


def damage(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the tensors and the described metadata of a scorer."""
    with safe_open(path, "np") as file:
        described = json.loads(file.metadata()["dstfuzz"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, described)
    save_file(tensors, path, {"dstfuzz": json.dumps(described)})


def test_what_is_written_is_read_in_16_bits(saved: Path) -> None:
    loaded = load_scorer(saved)
    assert loaded.about == ABOUT
    assert set(loaded.scorer._weights) == set(random_weights())
    for name, weight in random_weights().items():
        read = loaded.scorer._weights[name]
        assert read.dtype == np.float32
        assert np.array_equal(read, weight.astype(np.float16).astype(np.float32))
    # A folder stands for the scorer in it.
    assert load_scorer(saved.parent).fingerprint == loaded.fingerprint
    assert re.fullmatch("[0-9a-f]{12}", loaded.fingerprint)


def test_the_same_scorer_is_the_same_bytes(saved: Path) -> None:
    before = saved.read_bytes()
    assert len(before) < 2 * sum(weight.size for weight in random_weights().values()) + 2000
    save_scorer(saved, dict(reversed(random_weights().items())), ABOUT)
    assert saved.read_bytes() == before
    again = load_scorer(saved)
    save_scorer(saved, again.scorer._weights, again.about)
    assert saved.read_bytes() == before
    save_scorer(saved, random_weights(), replace(ABOUT, seed=6))
    assert saved.read_bytes() != before
    assert [path.name for path in saved.parent.iterdir()] == [SCORER_FILE]


def test_what_diverged_is_not_written(saved: Path) -> None:
    before = saved.read_bytes()
    weights = {**random_weights(), "out.bias": np.array([np.nan], np.float32)}
    with pytest.raises(UserError, match=r"out\.bias has values that are not finite: the train"):
        save_scorer(saved, weights, ABOUT)
    assert saved.read_bytes() == before


@pytest.mark.parametrize("size", [70_000.0, -1e30])
def test_what_is_too_large_for_16_bits_is_not_written(saved: Path, size: float) -> None:
    weights = {**random_weights(), "out.bias": np.array([size], np.float32)}
    with pytest.raises(UserError, match=r"out\.bias has values that are not finite: the train"):
        save_scorer(saved, weights, ABOUT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda _, about: about.update(format="other"),
            "its metadata does not have the format 'dstfuzz-scor",
        ),
        (lambda _, about: about.clear(), "its metadata does not have the format 'dstfuzz-scorer'"),
        (
            lambda _, about: about.update(version=0),
            "it has the format version 0, but this release reads 1: train it again",
        ),
        (lambda _, about: about.pop("version"), "it has the format version None"),
        (lambda _, about: about.pop("about"), "its metadata is damaged: .*tracker"),
        (lambda _, about: about["about"].pop("calls"), "its metadata is damaged: .*calls"),
        (lambda _, about: about["about"].update(calls="many"), "its metadata is damaged: .*calls"),
        (lambda tensors, _: tensors.pop("pair"), "the tensor 'pair' is missing"),
        (lambda tensors, _: tensors.pop("slot"), "the tensor 'slot' is missing"),
        (
            lambda tensors, _: tensors.pop("hidden.weight"),
            r"tensor 'hidden\.weight' is missing",
        ),
        (
            lambda tensors, _: tensors.update({"more": np.zeros(2, np.float32)}),
            "unknown tensors 'more'",
        ),
        (
            lambda tensors, _: tensors.update({"edit": np.zeros((8, 5), np.float32)}),
            r"'edit' has the shape \[8, 5\], not \[8, \d+\]",
        ),
        (
            lambda tensors, _: tensors.update({"slot": np.array(1, np.float32)}),
            r"'slot' has the shape \[\], not",
        ),
        (
            lambda tensors, _: tensors.update({"out.bias": np.array([np.nan], np.float16)}),
            r"'out\.bias' has values that are not finite",
        ),
        (
            lambda tensors, _: tensors.update({"out.bias": np.zeros(1, np.int64)}),
            r"out\.bias has the type I64, not F16 or F32",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    saved: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], message: str
) -> None:
    damage(saved, change)
    about = rf"bandit\.safetensors is not a scorer of the search bandit: .*{message}"
    with pytest.raises(UserError, match=about) as refused:
        load_scorer(saved)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (SCORER_FILE, b"", "is not a scorer of the search bandit: it is empty"),
        (SCORER_FILE, b"\x00" * 7, "truncated or not a safetensors file"),
        ("notes.txt", b"the notes of a meeting\n", "truncated or not a safetensors file"),
        (SCORER_FILE, pickle.dumps({"slot": 1}), "a pickle, which is never loaded"),
        ("bandit.pt", b"whatever", "a pickle, which is never loaded"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as refused:
        load_scorer(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_policy_of_the_agent_is_no_scorer(saved: Path) -> None:
    save_file(random_weights(), saved, {"dstfuzz": json.dumps({"format": "dstfuzz-agent"})})
    with pytest.raises(UserError, match="its metadata does not have the format 'dstfuzz-scorer'"):
        load_scorer(saved)


def test_a_file_that_is_cut_off_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-1])
    with pytest.raises(UserError, match="truncated or not a safetensors file"):
        load_scorer(saved)


def test_a_missing_file_has_a_nearest_name(saved: Path) -> None:
    with pytest.raises(UserError, match=r"no scorer of .* at '.*bandti\.safetensors'\. Did you me"):
        load_scorer(saved.with_name("bandti.safetensors"))
    with pytest.raises(UserError, match=r"no scorer of the search bandit at '.*nowhere/a'\.$"):
        load_scorer(saved.parent / "nowhere" / "a")


def test_the_search_takes_a_path(saved: Path) -> None:
    for name in (f"bandit:{saved}", f"bandit:{saved.parent}"):
        search = search_by_name(name, seed=3, k=2)
        assert isinstance(search, CheckedSearch)
        assert (search.name, search.wrapped.seed, search.order) == ("bandit", 3, "distance")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bandti", r"unknown search 'bandti'. Did you mean 'bandit'\? Valid: .*bandit:PATH"),
        ("bandits:x", "unknown search 'bandits:x'. Did you mean 'bandit"),
        ("bandit:", "the search 'bandit:' needs a file: write bandit:PATH, or bandit"),
        ("bandit:nowhere", "no scorer of the search bandit at 'nowhere'"),
    ],
)
def test_names_of_bandits_that_there_are_not(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        search_by_name(name, seed=0, k=1)


def test_the_shipped_scorer_has_the_name_alone() -> None:
    search = search_by_name("bandit", seed=0, k=1)
    assert search.name == "bandit"
    about = load_scorer(SHIPPED_SCORER).about
    assert (about.tracker, about.validity) == ("trade", "natural")


def test_it_tells_how_it_came_to_be(saved: Path) -> None:
    name = f"bandit:{saved}"
    found = find_training(name)
    assert found is not None
    assert (found.what, found.tracker, found.data) == ("scorer", "bakery:track", "bakery val")
    # It trains on all dialogues of its splits.
    assert found.held_out == ()
    assert training_calls(name) == found.calls == 91
    fingerprint, note = describe_trained(name, "other:bot", None)
    assert fingerprint == load_scorer(saved).fingerprint
    assert note == (
        f"the search {name} is a scorer (sha256 {fingerprint}) that was trained on the tracker "
        "bakery:track, bakery val, natural profile, and is used on other:bot"
    )


def test_a_scorer_runs_without_torch(saved: Path) -> None:
    program = f"""
import sys
sys.modules["torch"] = None
sys.path.insert(0, {str(Path(__file__).parent)!r})
from planted import PlantedBot, data_of, dialogues
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
settings = Settings.of(search={f"bandit:{saved}"!r}, validity="natural", variants=3)
data, bot = data_of(dialogues(3)), PlantedBot()
plan = [(dialogue, 0) for dialogue in data.dialogues]
campaign = CampaignEngine(settings, data, bot, load_lexicon(), plan=plan)
print(sum(variant.valid for result in campaign.run() for variant in result.variants))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 6
