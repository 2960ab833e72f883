"""The supervised negotiator, on a made-up data set: reading, training, resuming, playing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_talks import write_talks

from pytest_dstfuzz import DataError, UserError
from pytest_dstfuzz.games import DealGame, GoalSelection

pytest.importorskip("torch")

from pytest_dstfuzz.games.deal import ITEMS
from pytest_dstfuzz.games.negotiation.__main__ import main
from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent, negotiate
from pytest_dstfuzz.games.negotiation.corpus import load_negotiations
from pytest_dstfuzz.games.negotiation.supervised import (
    MODEL_FILE,
    SupervisedConfig,
    measure,
    train_supervised,
)
from pytest_dstfuzz.games.playing import play_game
from pytest_dstfuzz.models.runs import STATE_FILE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_talks(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def config(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> SupervisedConfig:
    output = tmp_path_factory.mktemp("run") / "tiny"
    config = SupervisedConfig(folder, output, epochs=4, least=2, batch_size=8)
    train_supervised(config, str)
    return config


def test_both_sides_of_what_is_held_out_are_left_out(folder: Path) -> None:
    splits = load_negotiations(folder)
    assert (len(splits.val), len(splits.test), splits.left_out) == (3, 3, 12)
    assert len(splits.train) == 61 - 12
    held_out = {key for row in (*splits.val, *splits.test) for key in (row.key, row.other_key)}
    assert not held_out & {row.key for row in splits.train}
    assert sum(row.chosen is None for row in splits.train) == 1
    first = splits.train[0]
    assert (first.counts, first.values, first.other_values) == ((1, 3, 1), (4, 2, 0), (0, 2, 4))
    assert first.chosen == (0, 3, 0)


def test_a_damaged_line_is_told_with_its_number(folder: Path, tmp_path: Path) -> None:
    for name in ("data", "val", "test"):
        (tmp_path / f"{name}.txt").write_bytes((folder / f"{name}.txt").read_bytes())
    with (tmp_path / "data.txt").open("a", encoding="utf-8") as file:
        file.write("1 2 3 hello\n")
    with pytest.raises(DataError, match=r"data\.txt, line 62: not a negotiation in the layout of"):
        load_negotiations(tmp_path)


def test_training_learns_and_repeats_itself(
    config: SupervisedConfig, folder: Path, tmp_path: Path
) -> None:
    again = replace(config, output=tmp_path / "again")
    history = train_supervised(again, str)
    assert history[-1].perplexity < history[0].perplexity
    assert (again.output / MODEL_FILE).read_bytes() == (config.output / MODEL_FILE).read_bytes()
    network = NegotiatorAgent.load(config.output / MODEL_FILE).network
    assert measure(network, load_negotiations(folder).val)[0] == pytest.approx(
        min(epoch.perplexity for epoch in history)
    )


def test_a_killed_training_resumes_as_if_nothing_had_been(
    config: SupervisedConfig, tmp_path: Path
) -> None:
    class KilledError(Exception):
        """Stands for a signal."""

    def kill(line: str) -> None:
        if line.startswith("epoch 3/"):
            raise KilledError

    run = replace(config, output=tmp_path / "killed")
    with pytest.raises(KilledError):
        train_supervised(run, kill)
    with pytest.raises(UserError, match="already has a training run"):
        train_supervised(run, str)
    history = train_supervised(replace(run, resume=True), str)
    assert [epoch.epoch for epoch in history] == [1, 2, 3, 4]
    for name in (MODEL_FILE, STATE_FILE):
        assert (run.output / name).read_bytes() == (config.output / name).read_bytes()
    with pytest.raises(UserError, match="seed was '0' and is now '1'"):
        train_supervised(replace(run, resume=True, seed=1), str)
    moved = shutil.copytree(run.data, tmp_path / "moved")
    train_supervised(replace(run, resume=True, data=moved), str)
    for file in moved.glob("*.txt"):
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join(reversed(lines)) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="changed since the earlier run: data"):
        train_supervised(replace(run, resume=True, data=moved), str)


def test_it_plays_and_what_it_does_hangs_on_the_talk_alone(config: SupervisedConfig) -> None:
    agent = NegotiatorAgent.load(config.output / MODEL_FILE)
    assert agent.name == "tiny"
    game = DealGame()
    for scenario in game.scenarios(4, 0):
        played = play_game(game, scenario, agent, ("all hats for me", "fine"))
        assert played == play_game(game, scenario, agent, ("all hats for me", "fine"))
        assert played.selection in game.selections(scenario)


def test_two_of_them_have_nothing_where_they_do_not_agree(config: SupervisedConfig) -> None:
    agent = NegotiatorAgent.load(config.output / MODEL_FILE)
    for scenario in DealGame().scenarios(6, 0):
        scores, agreed = negotiate(scenario, agent, agent)
        assert agreed or scores == (0.0, 0.0)
        assert min(scores) >= 0


def test_the_command_trains_and_measures(
    config: SupervisedConfig, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del config  # what is wrong with a run is told by `train_supervised`, and not trained here
    output = folder / "command"
    words = [
        "supervised",
        "--data",
        str(folder),
        "--output",
        str(output),
        "--epochs",
        "1",
        "--games",
        "2",
    ]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "test: perplexity" in said
    assert "self-play, 2 games:" in said
    assert (output / "negotiation.json").exists()


def test_a_selection_takes_no_more_than_there_is(config: SupervisedConfig) -> None:
    agent = NegotiatorAgent.load(config.output / MODEL_FILE)
    goal = {"book": [1, 1], "hat": [2, 2], "ball": [5, 1]}
    agent.start(goal)
    found = agent._selection(["THEM:", "<selection>"])
    assert isinstance(found, GoalSelection)
    assert all(found[item] <= goal[item][0] for item in ITEMS)
