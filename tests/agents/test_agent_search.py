"""The search ``agent`` in a session, and the fixture ``dst_agent``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Loaded before any inner run: such a run forgets the modules that it was the first to load.
import pytest_dstfuzz.agents.searches  # noqa: F401
from pytest_dstfuzz.agents.policies import (
    COUNT,
    PASS_SIZE,
    SPACE,
    STATE_SIZE,
    PolicyAbout,
    load_policy,
    save_policy,
)
from pytest_dstfuzz.plugin.options import read_settings

BOT = '''
def steady(context):
    return {"hotel-area": "north"}

def fragile(context):
    """Changes with every edit of the newest utterance."""
    return {"hotel-name": context.user}

def second_turn_fails(context):
    if len(context.exchanges) == 2:
        raise RuntimeError("no second turn please")
    return {"hotel-area": "north"}
'''
OPTIONS = ("--dst-model=mybot:steady", "--dst-turns=6", "--dst-report=out.json")


def write_policy(path: Path, seed: int = 0) -> str:
    """Write a policy that was trained on nothing, and return its fingerprint."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, before, after in (
        ("parameters", STATE_SIZE, SPACE.dimension),
        ("critic", PASS_SIZE, COUNT),
    ):
        weights[f"{name}.0.weight"] = rng.normal(size=(after, before)).astype(np.float32)
        weights[f"{name}.0.bias"] = rng.normal(size=after).astype(np.float32)
    about = PolicyAbout(
        tracker="trade",
        tracker_fingerprint="",
        data="nothing",
        held_out=(),
        order="distance",
        validity="strict",
        attack="hybrid",
        reward="broken",
        ks=(1,),
        attempts=1,
        seed=seed,
        calls=0,
    )
    save_policy(path, weights, about)
    return load_policy(path).fingerprint


@pytest.fixture
def bot(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the trackers above in ``mybot.py``, and no test."""
    pytester.makepyfile(mybot=BOT)
    return pytester


@pytest.fixture
def policy(bot: pytest.Pytester) -> str:
    """The fingerprint of a policy in the working folder."""
    return write_policy(bot.path / "mine.safetensors")


def report_of(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_report_names_the_policy(
    bot: pytest.Pytester, policy: str, workers: tuple[str, ...]
) -> None:
    result = bot.runpytest_inprocess(
        *OPTIONS, "--dst-search=agent:mine.safetensors", "-v", *workers
    )
    assert result.ret == 0
    report = report_of(bot)
    assert report["settings"]["search"] == "agent:mine.safetensors"
    assert report["data"]["policy"] == policy
    (note,) = (note for note in report["run"]["notes"] if "policy" in note)
    assert note == (
        f"the search agent:mine.safetensors is a policy (sha256 {policy}) that was trained on the "
        "tracker trade, nothing, strict profile, and is used on mybot:steady"
    )
    assert policy in result.stdout.str().replace("\n", " ")


def test_other_searches_have_no_policy(bot: pytest.Pytester) -> None:
    assert bot.runpytest_inprocess(*OPTIONS).ret == 0
    assert report_of(bot)["data"]["policy"] == ""


def test_a_marker_may_name_another_policy(bot: pytest.Pytester, policy: str) -> None:
    other = write_policy(bot.path / "other.safetensors", seed=1)
    bot.makepyfile(
        "import pytest\n"
        "def test_one(dst_turn): dst_turn.assert_unchanged()\n"
        "@pytest.mark.dst(search='agent:other.safetensors')\n"
        "def test_two(dst_turn): dst_turn.assert_unchanged()\n"
    )
    search = "--dst-search=agent:mine.safetensors"
    assert bot.runpytest_inprocess(*OPTIONS, search).ret == 0
    assert report_of(bot)["data"]["policy"].split() == sorted((policy, other))


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("agent:mien.safetensors", "*no policy of the agent at 'mien.safetensors'. Did you mean*"),
        (
            "agent:torch.pt",
            "*torch.pt is not a policy of the agent: it is a pickle, which is never loaded*",
        ),
        ("agnet:mine.safetensors", "*unknown search 'agnet:mine.safetensors'*"),
    ],
)
def test_a_policy_that_will_not_do_ends_the_session(
    bot: pytest.Pytester, policy: str, search: str, message: str
) -> None:
    assert policy
    (bot.path / "torch.pt").write_bytes(b"PK\x03\x04")
    result = bot.runpytest_inprocess(*OPTIONS, f"--dst-search={search}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])
    assert not (bot.path / "out.json").exists()


PROPOSING = """
def test_first(dst_agent, dst_turn):
    dialogue, index = dst_turn.dialogue, dst_turn.turn.index
    variants = dst_agent.variants(dialogue, index, count=4)
    assert variants == dst_agent.variants(dialogue, index, count=4)
    assert variants[:1] == dst_agent.variants(dialogue, index)
    assert 1 <= len(variants) <= 4
    assert len({variant.text for variant in variants}) == len(variants)
    assert all(variant.valid and variant.text != dst_turn.turn.user for variant in variants)
    assert dst_agent.search.name == "agent"
"""


def test_the_agent_proposes_variants(bot: pytest.Pytester, policy: str) -> None:
    assert policy
    bot.makepyfile(PROPOSING)
    result = bot.runpytest_inprocess(*OPTIONS[:2], "--dst-search=agent:mine.safetensors")
    result.assert_outcomes(passed=6)


def test_the_agent_of_the_fixture_is_the_shipped_one_by_default(
    bot: pytest.Pytester, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy
    (bot.path / "mine.safetensors").rename(bot.path / "trade.safetensors")
    monkeypatch.setattr("pytest_dstfuzz.agents.searches.SHIPPED_AGENT", bot.path)
    bot.makepyfile(PROPOSING)
    bot.runpytest_inprocess(*OPTIONS[:2]).assert_outcomes(passed=6)
    monkeypatch.setattr("pytest_dstfuzz.agents.searches.SHIPPED_AGENT", bot.path / "none")
    result = bot.runpytest_inprocess(*OPTIONS[:2])
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*this installation has no trained agent: train one with*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_tracker_that_fails_still_has_proposals(bot: pytest.Pytester, policy: str) -> None:
    assert policy
    bot.makepyfile(
        "def test_second(dst_agent, dst_turn):\n"
        "    assert dst_agent.variants(dst_turn.dialogue, len(dst_turn.dialogue.turns) - 1)\n"
    )
    model = "--dst-model=mybot:second_turn_fails"
    turns = ("--dst-turns=2", "--dst-search=agent:mine.safetensors")
    bot.runpytest_inprocess(model, *turns).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("options", "search"),
    [
        ("--dst-model=trade", "noise+bandit"),
        ("--dst-model=trade --dst-seed=4", "noise+bandit"),
        ("--dst-model=trade --dst-search=random", "random"),
        ("--dst-model=trade --dst-tracker=checkpoint=elsewhere", "noise+random"),
        ("--dst-model=simpletod", "noise+random"),
        ("--dst-model=mybot:fragile", "noise+random"),
        ("--dst-model=trade --dst-validity=strict", "random"),
        ("--dst-model=simpletod --dst-validity=strict", "random"),
        ("--dst-model=trade --dst-search=near-value", "near-value"),
        ("", "noise+random"),
    ],
)
def test_the_bandit_is_the_default_for_what_it_was_trained_on(
    pytester: pytest.Pytester, options: str, search: str
) -> None:
    assert read_settings(pytester.parseconfig(*options.split())).variant.search == search


def test_an_ini_file_may_name_the_search_too(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndst_search = greedy\n")
    assert read_settings(pytester.parseconfig("--dst-model=trade")).variant.search == "greedy"


@pytest.mark.nightly
def test_the_agent_of_the_other_tracker_ships_too(bot: pytest.Pytester) -> None:
    done = bot.runpytest_inprocess(*OPTIONS, "--dst-search=agent:simpletod")
    assert done.ret == 0
    assert report_of(bot)["settings"]["search"] == "agent:simpletod"
