"""Policies as files: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from pytest_dstfuzz.agents import searches as policy_file
from pytest_dstfuzz.agents.policies import (
    COUNT,
    PASS_SIZE,
    POLICY_FILE,
    SPACE,
    STATE_SIZE,
    PolicyAbout,
    load_policy,
    save_policy,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.search.registry import CheckedSearch, describe_trained, search_by_name

ABOUT = PolicyAbout(
    tracker="bakery:track",
    tracker_fingerprint="0123456789ab",
    data="bakery val+test",
    held_out=("bakery001", "bakery007"),
    order="distance",
    validity="strict",
    attack="hybrid",
    reward="broken",
    ks=(1, 3),
    attempts=8,
    seed=5,
    calls=1234,
)


def random_weights(hidden: int = 8) -> dict[str, np.ndarray]:
    """Return the weights of two small perceptrons."""
    rng = np.random.default_rng(0)
    sizes = {
        "parameters": (STATE_SIZE, hidden, SPACE.dimension),
        "critic": (PASS_SIZE, hidden, hidden, COUNT),
    }
    found = {}
    for name, widths in sizes.items():
        for number, (before, after) in enumerate(pairwise(widths)):
            weight = rng.normal(size=(after, before)) / 10
            found[f"{name}.{number}.weight"] = weight.astype(np.float32)
            found[f"{name}.{number}.bias"] = rng.normal(size=after).astype(np.float32)
    return found


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / POLICY_FILE
    save_policy(path, random_weights(), ABOUT)
    return path


def damage(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the tensors and the described metadata of a policy."""
    with safe_open(path, "np") as file:
        described = json.loads(file.metadata()["dstfuzz"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, described)
    save_file(tensors, path, {"dstfuzz": json.dumps(described)})


def test_what_is_written_is_read(saved: Path) -> None:
    loaded = load_policy(saved)
    assert loaded.about == ABOUT
    state = np.linspace(0, 1, STATE_SIZE).astype(np.float32)
    again = load_policy(saved.parent)
    assert np.array_equal(loaded.policy.parameters(state), again.policy.parameters(state))
    assert len(loaded.fingerprint) == 12
    assert loaded.fingerprint == again.fingerprint


def test_the_same_policy_is_the_same_bytes(saved: Path) -> None:
    before = saved.read_bytes()
    save_policy(saved, dict(reversed(random_weights().items())), ABOUT)
    assert saved.read_bytes() == before
    save_policy(saved, random_weights(), replace(ABOUT, seed=6))
    assert saved.read_bytes() != before
    assert [path.name for path in saved.parent.iterdir()] == [POLICY_FILE]


def test_weights_may_be_of_16_bits(saved: Path) -> None:
    whole = load_policy(saved)
    half = {name: weight.astype(np.float16) for name, weight in random_weights().items()}
    save_policy(saved, half, ABOUT)  # type: ignore[arg-type]
    loaded = load_policy(saved)
    state = np.linspace(0, 1, STATE_SIZE).astype(np.float32)
    assert loaded.policy.parameters(state).dtype == np.float32
    assert loaded.policy.parameters(state) == pytest.approx(
        whole.policy.parameters(state), abs=1e-2
    )


def test_weights_that_are_no_numbers_are_not_written(tmp_path: Path) -> None:
    weights = random_weights()
    weights["critic.0.bias"][3] = np.nan
    with pytest.raises(UserError, match=r"critic\.0\.bias has values that are not finite"):
        save_policy(tmp_path / "new" / "a.safetensors", weights, ABOUT)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*agent"):
        save_policy(tmp_path / "file" / "agent", random_weights(), ABOUT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda _, meta: meta.update(format="other"),
            "its metadata does not have the format 'dstfuzz-agent'",
        ),
        (lambda _, meta: meta.clear(), "its metadata does not have the format 'dstfuzz-agent'"),
        (
            lambda _, meta: meta.update(version=1),
            "format version 1, but this release reads 2: train it again with 'dstfuzz train-agent'",
        ),
        (lambda _, meta: meta.pop("version"), "format version None, but this release reads 2"),
        (
            lambda _, meta: meta["action_space"].update(dimension=44),
            f"dimension of its action space is 44, but {SPACE.dimension} in this release",
        ),
        (
            lambda _, meta: meta["action_space"]["blocks"].update(word_drop=[1, 2]),
            "blocks of its action space differ from those in this release",
        ),
        (lambda _, meta: meta.pop("action_space"), "its metadata lacks 'action_space'"),
        (
            lambda _, meta: meta["features"].update(state=3),
            f"state of its features is 3, but {STATE_SIZE} in this release: train it again",
        ),
        (lambda _, meta: meta.pop("about"), "its metadata is damaged: lacks 'tracker'"),
        (
            lambda _, meta: meta["about"].update(seed="1"),
            "seed: '1' instead of a whole number",
        ),
        (
            lambda _, meta: meta["about"].update(calls=True),
            "calls: True instead of a whole number",
        ),
        (lambda _, meta: meta["about"].update(ks="123"), "ks: '123' instead of a list"),
        (
            lambda _, meta: meta["about"].update(held_out=[1]),
            r"held_out\[0\]: 1 instead of a text",
        ),
        (
            lambda _, meta: meta["about"].update(order="random"),
            "its order is 'random', which is not one of reading, distance",
        ),
        (
            lambda _, meta: meta["about"].update(validity="lax"),
            "its validity is 'lax', which is not one",
        ),
        (
            lambda tensors, _: tensors["critic.1.weight"].fill(np.nan),
            r"'critic\.1\.weight' has values that are not finite",
        ),
        (
            lambda tensors, _: tensors["critic.1.bias"].fill(np.inf),
            r"'critic\.1\.bias' has values that are not finite",
        ),
        (
            lambda tensors, _: tensors.pop("parameters.0.bias"),
            r"the tensor 'parameters\.0\.bias' is missing",
        ),
        (
            lambda tensors, _: [tensors.pop(f"critic.{i}.weight") for i in range(3)],
            r"the tensor 'critic\.0\.weight' is missing",
        ),
        (
            lambda tensors, _: tensors.update({"critic.9.bias": np.zeros(2, np.float32)}),
            r"unknown tensors 'critic\.9\.bias'",
        ),
        (
            lambda tensors, _: tensors.update({"critic.1.weight": np.zeros((8, 5), np.float32)}),
            r"'critic\.1\.weight' has the shape \[8, 5\], not \[8, 8\]",
        ),
        (
            lambda tensors, _: tensors.update({"parameters.0.weight": np.array(1, np.float32)}),
            r"'parameters\.0\.weight' has the shape \[\], not",
        ),
        (
            lambda tensors, _: tensors.update(
                {
                    "parameters.1.weight": np.zeros((4, 8), np.float32),
                    "parameters.1.bias": np.zeros(4, np.float32),
                }
            ),
            f"parameters has 4 outputs, not {SPACE.dimension}",
        ),
        (
            lambda tensors, _: tensors.update({"critic.0.bias": np.zeros(8, np.int64)}),
            r"critic\.0\.bias has the type I64, not F16 or F32",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    saved: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], message: str
) -> None:
    damage(saved, change)
    with pytest.raises(
        UserError, match=rf"agent\.safetensors is not a policy of the agent: .*{message}"
    ):
        load_policy(saved)


def test_metadata_that_is_no_json_is_refused(saved: Path) -> None:
    save_file(random_weights(), saved, {"dstfuzz": "{"})
    with pytest.raises(UserError, match="its metadata is not valid JSON"):
        load_policy(saved)
    save_file(random_weights(), saved)
    with pytest.raises(UserError, match="its metadata does not have the format"):
        load_policy(saved)


class Trap:
    """Tells when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("it was unpickled",))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"agent.{protocol}", pickle.dumps(Trap(), protocol)) for protocol in (2, 3, 4, 5)),
        ("agent.pkl", pickle.dumps(Trap(), 0)),
        ("agent.pt", b"whatever"),
        ("agent.pth", b"PK\x03\x04 a zip archive of torch.save"),
        ("agent.npz", b"PK\x03\x04 an archive of numpy"),
    ],
)
def test_a_pickle_is_never_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        UserError, match=r"a pickle, which is never loaded because reading it may run code"
    ):
        load_policy(tmp_path / name)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kept", [0, 1, 7, 200, -1])
def test_a_file_that_is_cut_off_is_refused(saved: Path, kept: int) -> None:
    saved.write_bytes(saved.read_bytes()[:kept])
    with pytest.raises(
        UserError, match=r"is not a policy of the agent: it is (empty|truncated or not a safe)"
    ):
        load_policy(saved)


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are the notes of a meeting\n", encoding="utf-8")
    with pytest.raises(
        UserError, match="is not a policy of the agent: it is truncated or not a safetensors"
    ):
        load_policy(path)


def test_a_missing_file_has_a_nearest_name(saved: Path) -> None:
    with pytest.raises(UserError, match=r"no policy of the agent at '.*agnet\.safetensors'\. Did "):
        load_policy(saved.with_name("agnet.safetensors"))
    with pytest.raises(UserError, match=r"no policy of the agent at '.*nowhere/a'\.$"):
        load_policy(saved.parent / "nowhere" / "a")


def test_the_search_agent_takes_a_path(saved: Path) -> None:
    search = search_by_name(f"agent:{saved}", seed=3, k=2)
    assert isinstance(search, CheckedSearch)
    made = search.wrapped
    assert (search.name, made.seed, made.k, search.order) == ("agent", 3, 2, "distance")


def test_the_shipped_policy_has_a_name(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_file, "SHIPPED_AGENT", saved.parent)
    saved.rename(saved.with_name("trade.safetensors"))
    for name in ("agent", "agent:trade"):
        assert search_by_name(name, seed=0, k=1).name == "agent"
    monkeypatch.setattr(policy_file, "SHIPPED_AGENT", saved.with_name("nothing"))
    with pytest.raises(UserError, match="has no trained agent: train one with 'dstfuzz train-a"):
        search_by_name("agent", seed=0, k=1)


@pytest.mark.parametrize("tracker", policy_file.SHIPPED_FOR)
def test_each_shipped_policy_was_trained_on_its_tracker(tracker: str) -> None:
    about = policy_file.find_policy(f"agent:{tracker}").about
    assert (about.tracker, about.validity) == (tracker, "strict")
    search = search_by_name(f"agent:{tracker}", seed=0, k=2)
    assert search.order == about.order


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "agnet",
            r"unknown search 'agnet'. Did you mean 'agent'\? Valid: adaptive, agent, agent:PATH, ",
        ),
        ("agents:x", "unknown search 'agents:x'. Did you mean 'agent"),
        ("agent:", "the search 'agent:' needs a file: write agent:PATH, or agent"),
        ("agent:nowhere", "no policy of the agent at 'nowhere'"),
    ],
)
def test_names_of_agents_that_there_are_not(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        search_by_name(name, seed=0, k=1)


@pytest.mark.parametrize(
    ("model", "checkpoint", "end"),
    [
        ("bakery:track", None, "strict profile"),
        ("other:bot", None, "strict profile, and is used on other:bot"),
        (None, None, "strict profile, and is used on the suite's own tracker"),
        ("bakery:track", "w", "profile, and is used on bakery:track with the checkpoint w"),
    ],
)
def test_a_note_says_whose_agent_it_is(
    saved: Path, model: str | None, checkpoint: str | None, end: str
) -> None:
    name = f"agent:{saved}"
    fingerprint, note = describe_trained(name, model, checkpoint)
    assert fingerprint == load_policy(saved).fingerprint
    assert note.startswith(
        f"the search {name} is a policy (sha256 {fingerprint}) that was trained on the tracker "
        "bakery:track, bakery val+test, "
    )
    assert note.endswith(end)


def test_a_policy_runs_without_torch(saved: Path) -> None:
    program = f"""
import sys
sys.modules["torch"] = None
sys.path.insert(0, {str(Path(__file__).parent)!r})
from planted import PlantedBot, data_of, dialogues
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
settings = Settings.of(search={f"agent:{saved}"!r}, validity="strict", variants=3)
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
