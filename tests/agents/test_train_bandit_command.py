"""``dstfuzz train-bandit``: its options, its mistakes, and a run of a few seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import training_folder

from pytest_dstfuzz import cli

RUN = f"train-bandit {training_folder.GIVEN}"


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
        ("train-bandit", "required: --model, --data, --output (see dstfuzz train-bandit --help)"),
        ("train-bandti", "unknown command 'train-bandti'. Did you mean 'train-bandit'?"),
        (f"{RUN} --cals 3", "unknown argument '--cals'; did you mean --calls?"),
        (f"{RUN} --calls many", "--calls: 'many' must be a whole number of at least 1"),
        (f"{RUN} --attempts 0", "--attempts: '0' must be a whole number of at least 1"),
        (f"{RUN} --max-minutes soon", "--max-minutes: 'soon' must be a number of minutes above 0"),
        (f"{RUN} --max-dialogues 0", "--max-dialogues: '0' must be a whole number"),
        (f"{RUN} --split val,tset", "unknown split 'tset'. Did you mean 'test'?"),
        (f"{RUN} --split test,testing", "--split: 'test,testing' names a split twice"),
        (f"{RUN} --validity lax", "--validity: unknown validity profile 'lax'"),
        (f"{RUN} --model trad", "unknown tracker 'trad'. Did you mean 'trade'?"),
        (f"{RUN} --data nowhere", "no such file or folder: 'nowhere'"),
        (f"{RUN} --split train", "does not have the split 'train'"),
        # What training an agent has, and this has not.
        (f"{RUN} --resume", "unknown argument '--resume'"),
        (f"{RUN} --attack hybrid", "unknown argument '--attack'"),
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
        cli.main(["train-bandit", "--help"])
    assert ended.value.code == 0
    assert "examples:\n  dstfuzz train-bandit" in capsys.readouterr().out


def test_help_lists_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "train-bandit" in capsys.readouterr().out


def test_a_run_and_its_use(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    pytest.importorskip("torch")
    line = f"{RUN} --calls 20 --attempts 3 --seed 4"
    assert cli.main(line.split()) == 0
    shown = capsys.readouterr().out
    assert "5 of 5 dialogues, 20 of 20 calls, 15 attempts, " in shown
    assert "\nfitted to 15 attempts, loss " in shown
    assert "\n15 attempts, 20 calls (ended by dialogues); use it with --dst-search=bandit:" in shown
    named = shown.strip().rpartition("--dst-search=")[2]
    assert Path(named.removeprefix("bandit:")) == Path("out", "bandit.safetensors")
    assert (folder / "out" / "bandit.safetensors").stat().st_size < 500_000


def test_training_gets_what_was_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training import train_bandit as training  # noqa: PLC0415

    seen: list[Any] = []

    def fake(run: Any, say: Any) -> object:
        seen.append(run)
        say("fitted")
        return training.ScorerTraining(Path("out/bandit.safetensors"), 12, 3456, "max_minutes")

    monkeypatch.setattr(training, "train_bandit", fake)
    options = (
        "--split test --calls 99 --attempts 2 --seed 7 --validity edit-rate --tracker device=cuda "
        "--batch-size 8 --tracker checkpoint=w --slots a-b,c-d --max-minutes 5 --max-dialogues 9 "
        "--tracker timeout=3"
    )
    assert cli.main([*RUN.split(), *options.split()]) == 0
    (run,) = seen
    assert (run.model, run.data, run.output) == ("loaf_bot:track", "talks", Path("out"))
    assert (run.splits, run.checkpoint, run.device, run.batch_size) == (("test",), "w", "cuda", 8)
    assert (run.slots, run.validity, run.seed) == (("a-b", "c-d"), "edit-rate", 7)
    assert (run.calls, run.attempts, run.max_minutes, run.max_dialogues) == (99, 2, 5.0, 9)
    assert run.adapter == {"timeout": 3.0}
    assert capsys.readouterr().out == (
        "fitted\n12 attempts, 3,456 calls (ended by max_minutes); "
        "use it with --dst-search=bandit:out/bandit.safetensors\n"
    )


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


def test_ctrl_c_says_what_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training import train_bandit as training  # noqa: PLC0415

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training._Learning, "play", interrupted)
    assert cli.main([*RUN.split(), "--calls", "60"]) == 130
    assert "the scorer is fitted to the attempts so far, and saved" in capsys.readouterr().err
