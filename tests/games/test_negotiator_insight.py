"""What a negotiator would do is what it does; and what it learns from games."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_talks import write_talks

from pytest_dstfuzz import UserError
from pytest_dstfuzz.cli import main as dstfuzz
from pytest_dstfuzz.games import DealGame, GoalSelection, TalkLine, TransparentAgent

pytest.importorskip("torch")

import torch

from pytest_dstfuzz.games.game import TargetView
from pytest_dstfuzz.games.negotiation.__main__ import main
from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent
from pytest_dstfuzz.games.negotiation.hardening import ATTACK_FILE, HardenConfig, harden
from pytest_dstfuzz.games.negotiation.network import TalkReader, load_network
from pytest_dstfuzz.games.negotiation.reinforce import (
    ReinforceConfig,
    play_games,
    train_reinforced,
)
from pytest_dstfuzz.games.negotiation.supervised import (
    MODEL_FILE,
    SupervisedConfig,
    train_supervised,
)
from pytest_dstfuzz.models.runs import STATE_FILE

CLOSE = TalkLine(mine=False, text="", closes=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_talks(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run") / "tiny"
    train_supervised(SupervisedConfig(data, output, epochs=2, least=2, batch_size=8), str)
    return output / MODEL_FILE


@pytest.fixture(scope="module")
def view(model: Path) -> TargetView:
    game = DealGame()
    agent = NegotiatorAgent.load(model)
    assert isinstance(agent, TransparentAgent)
    return TargetView(agent, game, game.scenarios(3, 4)[2])


TALKS = (
    [TalkLine(mine=False, text="all hats for me")],
    [TalkLine(mine=False, text="fine"), TalkLine(mine=True, text="number 3"), CLOSE],
    [TalkLine(mine=False, text="all"), TalkLine(mine=True, text="me"), CLOSE],
)


def test_what_it_would_select_is_what_it_selects(view: TargetView) -> None:
    agent = view.agent
    assert isinstance(agent, NegotiatorAgent)
    agent.start(view.scenario.target)
    for talk, scores in zip(TALKS[1:], view.scores(TALKS[1:]), strict=True):
        assert agent.reply(talk) == view.selections[int(scores.argmax())]
        assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-5)


def test_the_chance_to_select_is_that_of_its_draws(view: TargetView, model: Path) -> None:
    talk = TALKS[0]
    closing = view.agent.closing(view.scenario.target, [talk])
    count = 0
    for seed in range(150):
        agent = NegotiatorAgent.load(model, seed=seed)
        agent.start(view.scenario.target)
        count += isinstance(agent.reply(talk), GoalSelection)
    assert count / 150 == pytest.approx(float(closing.chance[0]), abs=0.1)


def test_drawn_answers_are_those_of_its_play(view: TargetView) -> None:
    agent = view.agent
    assert isinstance(agent, NegotiatorAgent)
    goal = view.scenario.target
    closing = agent.closing(goal, [TALKS[0]])
    (lines,) = agent.drawn_answers(goal, [TALKS[0]], 300)
    share = sum(line is None for line in lines) / len(lines)
    assert share == pytest.approx(float(closing.chance[0]), abs=0.1)
    known = set(agent.network.words)
    assert all(line.split() and known.issuperset(line.split()) for line in lines if line)
    # Neither other talks nor the order of calls change the draws of a talk.
    both = agent.drawn_answers(goal, [[TalkLine(mine=False, text="fine")], TALKS[0]], 300)
    assert both[1] == lines


WORDS = st.lists(st.sampled_from(("all", "hats", "for", "me", "fine", "zebra")), min_size=1)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_talks_read_together_are_read_as_each_alone(
    view: TargetView, said: list[list[str]]
) -> None:
    agent = view.agent
    assert isinstance(agent, NegotiatorAgent)
    reader = TalkReader(agent.network, view.scenario.target)
    lines = [" ".join(words) for words in said]
    talks = view.talks([(False, "all hats"), (True, "fine")], lines)
    together = reader.first_words(talks)
    for talk, row in zip(talks, together, strict=True):
        assert torch.allclose(reader.first_words([talk])[0], row, atol=1e-4)
    surprise = reader.surprise([], lines)
    for line, (nats, words) in zip(lines, surprise, strict=True):
        ((alone, count),) = reader.surprise([], [line])
        assert (nats, words) == (pytest.approx(alone, abs=1e-3), count)


def test_words_that_the_gradient_offers_help_more_than_others(view: TargetView) -> None:
    """A small step towards a word that is offered first lessens the loss, as it says."""
    agent = view.agent
    assert isinstance(agent, NegotiatorAgent)
    network = agent.network
    talk = [TalkLine(mine=False, text="all hats for me"), CLOSE]
    reader = TalkReader(network, view.scenario.target)
    gains = reader.replacements(talk, 0, view.wanted.tolist(), view.selections)
    word = int(gains[1].argmax())
    old = network.numbers["hats"]
    before = view.losses(view.scores([talk]))[0]
    kept = network.embedding.weight.data.clone()
    try:
        step = 0.01 * (kept[word] - kept[old])
        network.embedding.weight.data[old] += step
        after = view.losses(view.scores([talk]))[0]
    finally:
        network.embedding.weight.data.copy_(kept)
    assert after < before
    offered = agent.replacements(
        view.scenario.target, talk, 0, view.wanted.tolist(), view.selections, 3
    )
    assert [len(words) for words in offered] == [3] * 4
    assert offered[1][0] == network.words[word]


def test_the_surprise_of_all_lines_of_one_word_adds_up(view: TargetView) -> None:
    """Lines of one word are some of all lines; their chances are those of the network's words."""
    agent = view.agent
    assert isinstance(agent, NegotiatorAgent)
    words = [word for word in agent.network.words if not word.startswith("<")]
    found = agent.surprise(view.scenario.target, [], words)
    assert {count for _, count in found} == {2}
    assert 0 < sum(np.exp(-nats) for nats, _ in found) < 1
    (fine,) = agent.surprise(view.scenario.target, [], ["fine"])
    (unknown,) = agent.surprise(view.scenario.target, [], ["zebra"])
    assert unknown[0] > fine[0]


def gradient(data: Path, model: Path, output: Path) -> ReinforceConfig:
    return ReinforceConfig(
        data=data, start=model, partner=model, output=output, rounds=3, steps=2, tables=8, judged=16
    )


class KilledError(Exception):
    """Stands for a signal."""


def kill(line: str) -> None:
    if line.startswith("round 2/"):
        raise KilledError


@pytest.mark.nightly
@pytest.mark.parametrize("aim", ["score", "advantage"])
def test_learning_from_games_resumes_as_if_nothing_had_been(
    data: Path, model: Path, tmp_path: Path, aim: str
) -> None:
    config = replace(gradient(data, model, tmp_path / "whole"), aim=aim)
    train_reinforced(config, str)
    killed = replace(config, output=tmp_path / "killed")
    with pytest.raises(KilledError):
        train_reinforced(killed, kill)
    history = train_reinforced(replace(killed, resume=True), str)
    assert [one.games for one in history] == [16, 32, 48]
    assert (aim == "advantage") == all(one.agreement == 1.0 for one in history)
    for name in (MODEL_FILE, STATE_FILE):
        assert (killed.output / name).read_bytes() == (config.output / name).read_bytes()
    assert (config.output / MODEL_FILE).read_bytes() != model.read_bytes()


@pytest.mark.nightly
def test_hardening_resumes_as_if_nothing_had_been(data: Path, model: Path, tmp_path: Path) -> None:
    config = HardenConfig(
        data=data,
        target=model,
        attack=model,
        partner=model,
        output=tmp_path / "whole",
        rounds=3,
        steps=1,
        tables=8,
        judged=16,
    )
    harden(config, str)
    killed = replace(config, output=tmp_path / "killed")
    with pytest.raises(KilledError):
        harden(killed, kill)
    assert len(harden(replace(killed, resume=True), str)) == 3
    for name in (MODEL_FILE, ATTACK_FILE, STATE_FILE):
        assert (killed.output / name).read_bytes() == (config.output / name).read_bytes()


def test_the_adversary_takes_what_the_target_leaves(model: Path) -> None:
    network = load_network(model)
    assert play_games(network, network, 16, 3, complement=0).agreement == 1.0
    with pytest.raises(UserError, match="from 0 to 999,999"):
        play_games(network, network, 4, 1_000_000)


def test_mistakes_in_the_commands_are_told(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(data), "--rounds", "1"]
    start = ["--start", str(model), "--output", str(tmp_path / "attack"), "--aim", "advantage"]
    with pytest.raises(UserError, match="unknown aim 'advantages'"):
        main(["reinforced", *words, *start[:-1], "advantages"])
    with pytest.raises(UserError, match="unknown training 'reinforce'"):
        main(["reinforce"])
    harden = [
        "harden-negotiator",
        "--game",
        "deal-or-no-deal",
        *words,
        "--output",
        str(tmp_path / "h"),
    ]
    assert dstfuzz([*harden, "--target", str(model), "--attack", "nowhere"]) == 2
    assert "--attack: there is no file nowhere" in capsys.readouterr().err
