"""``dstfuzz train-agent``: its options, its mistakes, and a run of a few seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import training_folder

from pytest_dstfuzz import cli
from pytest_dstfuzz.agents import commands as agent_commands
from pytest_dstfuzz.agents.training.environment import REWARDS
from pytest_dstfuzz.perturb.engine import ORDERS

RUN = f"train-agent {training_folder.GIVEN}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own as the working folder, with a tracker and dialogues in it."""
    training_folder.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("loaf_bot", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train-agent", "required: --model, --data, --output (see dstfuzz train-agent --help)"),
        ("train-agnet", "unknown command 'train-agnet'. Did you mean 'train-agent'?"),
        (f"{RUN} --cals 3", "unknown argument '--cals'; did you mean --calls?"),
        (f"{RUN} --calls many", "--calls: 'many' must be a whole number of at least 1"),
        (f"{RUN} --attempts 0", "--attempts: '0' must be a whole number of at least 1"),
        (f"{RUN} --max-minutes soon", "--max-minutes: 'soon' must be a number of minutes above 0"),
        (f"{RUN} --max-minutes -1", "--max-minutes: '-1' must be a number of minutes above 0"),
        (f"{RUN} --max-dialogues 0", "--max-dialogues: '0' must be a whole number"),
        (f"{RUN} --ks 0,3", "--ks: '0,3' must be whole numbers from 1 to 6, separated by commas"),
        (f"{RUN} --ks few", "--ks: 'few' must be whole numbers from 1 to 6, separated by commas"),
        (f"{RUN} --split val,tset", "unknown split 'tset'. Did you mean 'test'?"),
        (f"{RUN} --split test,testing", "--split: 'test,testing' names a split twice"),
        (f"{RUN} --order raeding", "unknown order of positions 'raeding'. Did you mean 'reading'"),
        (f"{RUN} --reward ginni", "unknown reward 'ginni'. Did you mean 'gini'? Valid: broken, g"),
        (f"{RUN} --dialogues wrong", "unknown choice of dialogues 'wrong'. Valid: all, right"),
        (f"{RUN} --validity lax", "--validity: unknown validity profile 'lax'"),
        (f"{RUN} --model trad", "unknown tracker 'trad'. Did you mean 'trade'?"),
        (f"{RUN} --data nowhere", "no such file or folder: 'nowhere'"),
        (f"{RUN} --split train", "does not have the split 'train'"),
        (f"{RUN} --resume", "cannot resume from out: it has no training.safetensors, so it"),
        (f"{RUN} --max-dialogues 1", "2 dialogues are too few to train on some and hold out 20 %"),
        (
            f"{RUN} --calls 1",
            "calls (1) must be more than the",
        ),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert cli.main(line.split()) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("dstfuzz: error: ")
    assert errors.count("\n") == 1
    if find_spec("torch") is None and "[train]" in errors:
        pytest.skip("what comes after the command line needs torch")
    assert message in errors


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["train-agent", "--help"])
    assert ended.value.code == 0
    assert "examples:\n  dstfuzz train-agent" in capsys.readouterr().out


def test_names_are_those_that_there_are() -> None:
    assert set(agent_commands.ORDERS) == set(ORDERS)
    assert set(agent_commands.REWARDS) == set(REWARDS)


def test_a_run_and_its_continuation(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    pytest.importorskip("torch")
    line = f"{RUN} --calls 120 --attempts 3 --ks 1,2 --seed 4"
    assert cli.main([*line.split(), "--max-minutes", "0.000001"]) == 0
    shown = capsys.readouterr().out
    assert "training dialogues: 8 (8 turns), held out: 2\nround 1: " in shown
    assert "\n1 round, " in shown
    assert "(ended by max_minutes); use it with --dst-search=agent:out" in shown
    assert cli.main([*line.split(), "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "\nresumed after round 1, " in shown
    assert "(ended by calls)" in shown
    assert (folder / "out" / "agent.safetensors").stat().st_size < 500_000


def test_training_gets_what_was_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training import train_agent as training  # noqa: PLC0415

    seen: list[Any] = []

    def fake(run: Any, say: Any) -> object:
        seen.append(run)
        say("round 1")
        return SimpleNamespace(policy=Path("out/agent.safetensors"), history=(), ended_by="calls")

    monkeypatch.setattr(training, "train_agent", fake)
    options = (
        "--split test --calls 99 --attempts 2 --reward gini --order reading --ks 3,1,3 --seed 7 "
        "--validity edit-rate --attack cumulative --tracker device=cuda --batch-size 8 "
        "--tracker checkpoint=w "
        "--max-minutes 5 --max-dialogues 9 --dialogues all --tensorboard board --resume"
    )
    assert cli.main([*RUN.split(), *options.split()]) == 0
    (run,) = seen
    assert (run.model, run.data, run.output) == ("loaf_bot:track", "talks", Path("out"))
    assert (run.splits, run.checkpoint, run.device, run.batch_size) == (("test",), "w", "cuda", 8)
    assert (run.validity, run.attack, run.order) == ("edit-rate", "cumulative", "reading")
    assert (run.max_minutes, run.max_dialogues, run.resume) == (5.0, 9, True)
    assert (run.dialogues, run.tensorboard) == ("all", Path("board"))
    config = run.training
    assert (config.calls, config.attempts, config.reward) == (99, 2, "gini")
    assert (config.ks, config.seed) == ((1, 3), 7)
    assert capsys.readouterr().out.startswith("round 1\n0 rounds, 0 attempts (ended by calls); use")


def test_without_torch_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("pytest_dstfuzz.agents.training.")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert cli.main(RUN.split()) == 2
    assert 'pip install "pytest-dstfuzz[train]"' in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training.trainer import AgentTrainer  # noqa: PLC0415

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AgentTrainer, "run_round", interrupted)
        assert cli.main([*RUN.split(), "--calls", "60"]) == 130
    assert "the same command with --resume continues" in capsys.readouterr().err
    assert cli.main([*RUN.split(), "--calls", "60", "--resume"]) == 0
