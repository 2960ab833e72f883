"""dstfuzz campaign: the results and the report of pytest, and the folder that survives a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

from pytest_dstfuzz import Settings, UserError
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.scale.commands import CAMPAIGN_OPTIONS, campaign_settings, check_outputs

BOT = """
import time

WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}

def heard(context):
    said = " ".join(context.user_utterances).lower().split()
    return {slot: word for word, slot in WORDS.items() if word in said}

def slow(context):
    time.sleep(0.004)
    return heard(context)
"""
#: In the profile `natural`, each process would learn for seconds how slips are read.
OPTIONS = (
    *("--turns=60", "--variants=3", "--relation=metamorphic,value-swap"),
    "--validity=strict",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wordbot.py").write_text(BOT, encoding="utf-8")
    return tmp_path


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", *words, cwd=folder)


def campaign(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ran(folder, "pytest_dstfuzz.cli", "campaign", *words)


def report(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del found["run"]
    return found


def test_it_reports_what_pytest_does(folder: Path) -> None:
    given = [word.replace("--", "--dst-", 1) for word in OPTIONS]
    said = ran(
        folder,
        *("pytest", "--dst-model=wordbot:heard", *given, "--dst-report=a.json", "-q", "--tb=no"),
        *("-p", "no:cacheprovider"),
    )
    assert (folder / "a.json").is_file(), said.stdout + said.stderr
    line = ("--model=wordbot:heard", *OPTIONS, "--results=found", "--report=b.json")
    done = campaign(folder, *line)
    assert done.returncode == 0, done.stderr
    assert report(folder / "b.json") == report(folder / "a.json")
    assert "violation" in done.stdout
    again = campaign(folder, *line)
    assert again.returncode == 0
    assert report(folder / "b.json") == report(folder / "a.json")


def test_a_killed_run_goes_on(folder: Path) -> None:
    line = ("--model=wordbot:slow", *OPTIONS, "--results=found")
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest_dstfuzz.cli", "campaign", *line],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lines = folder / "found" / "results-0001.jsonl"
    while not (lines.exists() and lines.stat().st_size):
        assert started.poll() is None
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    started.wait()
    before = lines.read_bytes()
    done = campaign(folder, *line, "--report=a.json")
    assert done.returncode == 0, done.stderr
    assert lines.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert campaign(folder, *line[:-1], "--results=whole", "--report=b.json").returncode == 0
    assert report(folder / "a.json") == report(folder / "b.json")


def test_what_is_missing_is_told_in_a_line(folder: Path) -> None:
    for words, text in (
        (("--model=trade",), "--results"),
        (("--results=found",), "--model"),
        (("--model=wordbot:heard", "--results=wordbot.py"), "wordbot.py is not a folder"),
        (("--model=wordbot:heard", "--results=found", "--turn=3"), "--turns"),
    ):
        done = campaign(folder, *words)
        assert done.returncode == 2
        assert text in done.stderr
        assert "Traceback" not in done.stderr


def test_a_run_that_ends_early_says_so(folder: Path) -> None:
    line = ("--model=wordbot:heard", *OPTIONS, "--results=found")
    done = campaign(folder, *line, "--max-calls=90")
    assert done.returncode == 1
    assert "run the same command to continue in found" in done.stdout


def test_all_turns_are_no_default() -> None:
    parser = Parser("dstfuzz campaign", "")
    parser.shared(*CAMPAIGN_OPTIONS, required=("model",))
    line = ["--model=wordbot:heard"]
    assert campaign_settings(parser.parse_all(line)).data.turns == Settings().data.turns
    assert campaign_settings(parser.parse_all([*line, "--turns=all"])).data.turns is None


FULL_DISK = """
import resource, signal, sys
from pytest_dstfuzz.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of the size of files")
def test_a_full_disk_is_one_message_and_the_run_goes_on(folder: Path) -> None:
    words = ("campaign", "--model=wordbot:heard", *OPTIONS, "--results=run")
    done = run_python("-c", FULL_DISK, *words, cwd=folder)
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert ran(folder, "pytest_dstfuzz.cli", *words).returncode == 0


def test_a_run_that_asks_nothing_says_so(folder: Path) -> None:
    words = ("--model=wordbot:heard", "--turns=5", "--results=run")
    assert "from earlier calls" not in campaign(folder, *words, "--report=first.json").stdout
    again = campaign(folder, *words, "--report=again.json")
    assert "from earlier calls" in again.stdout
    text = (folder / "again.json").read_text(encoding="utf-8")
    assert "first.json" not in text
    run = json.loads(text)["run"]
    assert run["contexts"]["asked"] == 5  # Each of the five turns, to see that the bot is the same.
    assert "again.json" in run["command"]


def test_a_command_promises_no_tracker_of_a_conftest(folder: Path) -> None:
    shown = campaign(folder, "--help").stdout
    assert "--model" in shown
    assert "conftest" not in shown


def test_a_report_replaces_no_dialogues_and_no_part_of_the_results(tmp_path: Path) -> None:
    data, folder = tmp_path / "talks.json", tmp_path / "results"
    data.write_text('{"dialogue_id": "a", "users": ["hello"]}', encoding="utf-8")
    with pytest.raises(UserError, match="same file"):
        check_outputs(Settings.of(data=str(data), report=str(data)), folder)
    with pytest.raises(UserError, match="same file"):
        check_outputs(Settings.of(tools=str(data), report=str(data)), folder)
    with pytest.raises(UserError, match="folder of results"):
        check_outputs(Settings.of(report=str(folder / "run.json")), folder)
    check_outputs(Settings.of(data=str(data), report=str(tmp_path / "report.json")), folder)
