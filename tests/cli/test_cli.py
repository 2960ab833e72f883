"""The command line: what it prints, what it refuses, and its exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import __version__, cli
from pytest_dstfuzz.cli.command import ProgressLine
from pytest_dstfuzz.dialogue import load as datasets
from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS
from pytest_dstfuzz.errors import UserError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own as the working folder, with a tracker in it."""
    (tmp_path / "cli_bot.py").write_text(
        "def track(context):\n    return {'hotel-area': 'north'}\n"
        "def broken(context):\n    raise ValueError('too long')\n"
        "class Late:\n"
        "    calls = 0\n"
        "    def predict(self, contexts):\n"
        "        Late.calls += 1\n"
        "        if Late.calls > 12: raise ValueError('too late')\n"
        "        return [{} for _ in contexts]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("cli_bot", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", f"no command was given: choose one of {', '.join(cli.COMMANDS.names)}"),
        ("evalute", "unknown command 'evalute'. Did you mean 'evaluate'?"),
        ("--verson", "unknown argument '--verson'; did you mean --version?"),
        ("evaluate", "required: --model (see dstfuzz evaluate --help)"),
        ("evaluate --model", "argument --model: expected one argument"),
        ("evaluate --model x --splt test", "unknown argument '--splt'; did you mean --split?"),
        ("evaluate --model x more", "unknown argument 'more'"),
        ("evaluate --model x --split tset", "--split: unknown split 'tset'. Did you mean 'test'?"),
        ("evaluate --model x --layout shraded", "unknown layout 'shraded'. Did you mean 'sharded'"),
        (
            "evaluate --model x --normalisation multiwoz-code",
            "unknown normalisation 'multiwoz-code'. Did you mean 'multiwoz-codes'?",
        ),
        (
            "evaluate --model cli_bot:track --layout jsonl",
            "does not have the split 'test' in the layout 'jsonl'",
        ),
        ("evaluate --model x --batch-size 0", "--batch-size: '0' must be a whole number from 1"),
        ("evaluate --model trad", "unknown tracker 'trad'. Did you mean 'trade'?"),
        ("evaluate --model cli_bot:trakc", "no attribute 'trakc'. Did you mean 'track'?"),
        (
            "evaluate --model cli_bot:broken",
            "the tracker raised an exception on a clean context: ValueError",
        ),
        ("evaluate --model cli_bot:Late", "the tracker raised ValueError: too late"),
        ("evaluate --model cli_bot:track --data nowhere", "no such file or folder: 'nowhere'"),
        ("evaluate --model cli_bot:track --domains hotle", "unknown domain 'hotle'"),
        ("fetch", "required: NAME"),
        ("fetch multiwoz25", "unknown data set 'multiwoz25'. Did you mean 'multiwoz2"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert cli.main(line.split()) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("dstfuzz: error: ")
    assert errors.count("\n") == 1
    assert message in errors


@pytest.mark.parametrize("line", ["--help", "evaluate --help", "fetch -h"])
def test_help_shows_examples(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:\n  dstfuzz " in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"dstfuzz {__version__}\n"


def test_the_arguments_of_the_process_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dstfuzz", "nothing"])
    assert cli.main() == 2


def test_evaluate_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "--model", "cli_bot:track", "--domains", "taxi"]) == 0
    shown = capsys.readouterr().out
    assert "tracker               cli_bot:track" in shown
    assert "data                  sample, split test: " in shown
    assert "joint goal accuracy by domain" in shown


def test_evaluate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "--model", "cli_bot:track", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["slots"] == 30
    assert set(figures["domains"]) == {"attraction", "hotel", "restaurant", "taxi", "train"}


def test_evaluate_on_the_strings_of_the_labels(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    state = {"hotel-area": "the north", "hotel-parking": "true"}
    line = {"dialogue_id": "a", "turns": [{"user": "up north, I drive", "state": state}]}
    (folder / "one.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (folder / "other_bot.py").write_text(
        "def track(context):\n    return {'hotel-area': 'north', 'hotel-parking': 'yes'}\n",
        encoding="utf-8",
    )
    command = ["evaluate", "--model", "other_bot:track", "--data", "one.jsonl", "--json"]
    wrong = {}
    for name in NORMALISATIONS:
        assert cli.main([*command, "--normalisation", name]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["normalisation"] == name
        wrong[name] = round((1 - figures["slot_accuracy"]) * figures["slots"])
    # The default of JSON Lines is plain: `true` is no yes, and `the north` not north.
    assert wrong == {"multiwoz": 0, "plain": 2, "multiwoz-codes": 1}


def test_evaluate_says_how_the_data_was_read(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    line = {"dialogue_id": "a", "turns": [{"user": "up north", "state": {"hotel-area": "north"}}]}
    log = [{"text": "up north", "metadata": {}}, {"text": "yes ?", "metadata": {}}]
    (folder / "mine").mkdir()
    (folder / "mine" / "test.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (folder / "mine" / "test.json").write_text(json.dumps({"b": {"log": log}}), encoding="utf-8")
    command = ["evaluate", "--model", "cli_bot:track", "--data", "mine"]
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    assert "layout                original\nnormalisation         multiwoz\nnote      " in shown
    assert "in several layouts: the layout 'original' is read, and 'jsonl' is ignored" in shown
    assert cli.main([*command, "--layout", "jsonl", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["layout"], figures["normalisation"], figures["notes"]) == ("jsonl", "plain", [])
    assert figures["joint_goal_accuracy"] == 1.0


def test_fetch_prints_the_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fake(name: str, progress: Any) -> Path:
        progress("data.zip", 10, 100)
        progress("data.zip", 100, None)
        return Path("cache") / name

    monkeypatch.setattr(datasets, "fetch", fake)
    assert cli.main(["fetch", "multiwoz21"]) == 0
    assert capsys.readouterr().out == f"{Path('cache') / 'multiwoz21'}\n"


@pytest.mark.parametrize("name", cli.COMMANDS.names)
def test_an_interrupt_says_what_was_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def interrupted(_: Sequence[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.COMMANDS.find(name), "run", interrupted)
    assert cli.main([name]) == 130
    assert capsys.readouterr().err == f"\ndstfuzz: interrupted; {cli.COMMANDS.find(name).kept}\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = ["evaluate", "--model", "cli_bot:track", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_dstfuzz.cli", *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        errors = run.stderr.read()
    assert (run.returncode, errors) == (0, b"")


def test_progress_on_a_terminal_rewrites_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = ProgressLine("turns")
    line(5, 10)
    line(1000, None)
    line.close()
    assert capsys.readouterr().err == "\r5 of 10 (50 %) turns\x1b[K\r1,000 turns\x1b[K\r\x1b[K"


def test_progress_elsewhere_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 5.0, 11.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    line = ProgressLine("turns")
    line(1, 10)
    line(2, 10)
    line.close()
    assert capsys.readouterr().err == "2 of 10 (20 %) turns\n"


def test_commands_describe_themselves() -> None:
    commands = [cli.COMMANDS.find(name) for name in cli.COMMANDS.names]
    assert all(command.summary and command.kept for command in commands)
    with pytest.raises(UserError):
        cli.COMMANDS.find("fetch").run(["--nothing"])
