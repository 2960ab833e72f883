"""The command train-tracker: what it refuses, and what it hands to a training."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.models.commands import TRAININGS
from pytest_dstfuzz.models.trade.files import TradeTrainingConfig


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train-tracker", "no tracker was named: choose one of trade, trade-hardened, simpletod"),
        ("train-tracker trade", "required: --data, --output"),
        ("train-tracker simpletod --data x --output y --heads 3", "a multiple of heads (3)"),
        ("train-tracker trad --data x --output y", "unknown tracker to train 'trad'"),
        ("train-tracker trade --data x --output y --epochs few", "--epochs: invalid int value"),
        ("train-tracker trade --data x --output y --epochs 0", "epochs must be at least 1, not 0"),
        ("train-tracker trade --data x --output y --epohcs 1", "did you mean --epochs?"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert cli.main(line.split()) == 2
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert errors.startswith("dstfuzz: error: ")
    assert message in errors


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["train-tracker", "-h"])
    assert ended.value.code == 0
    assert "examples:\n  dstfuzz " in capsys.readouterr().out


@pytest.mark.parametrize("name", list(TRAININGS))
def test_every_setting_of_a_training_is_an_option(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train-tracker", name, "--help"])
    shown = capsys.readouterr().out
    for field in dataclasses.fields(TRAININGS[name].config):
        assert f"--{field.name.replace('_', '-')} " in shown


def test_training_gets_what_was_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TradeTrainingConfig] = []

    def fake(config: TradeTrainingConfig, progress: Any) -> object:
        seen.append(config)
        progress("epoch 1")
        return SimpleNamespace(
            best_epoch=1, joint_goal_accuracy=0.5, model="out", ended_by="epochs"
        )

    monkeypatch.setitem(
        sys.modules, "pytest_dstfuzz.models.trade.training", SimpleNamespace(train_trade=fake)
    )
    line = "train-tracker trade --data d --output o --epochs 3 --layout any --no-pretrained-vectors"
    assert cli.main([*line.split(), "--max-minutes", "2.5", "--resume"]) == 0
    assert seen == [
        TradeTrainingConfig(
            Path("d"),
            Path("o"),
            layout=None,
            epochs=3,
            pretrained_vectors=False,
            max_minutes=2.5,
            resume=True,
        )
    ]
    shown = capsys.readouterr().out
    assert shown.startswith("epoch 1\nbest epoch 1: joint goal accuracy 50.00 % on validation")


def test_training_without_torch_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pytest_dstfuzz.models.trade.training", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert cli.main(["train-tracker", "trade", "--data", "d", "--output", "o"]) == 2
    assert 'pip install "pytest-dstfuzz[trade]"' in capsys.readouterr().err
