"""The exit statuses of ``dstfuzz``: each one happens, and the table has no other."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from pytest_dstfuzz import cli
from tools.docs.reference import COMMAND_STATUSES

BOT = """
def track(context):
    return {"hotel-area": word for word in context.user.split() if word == "north"}

def brittle(context):
    return track(context) if context.user.split()[0] else {}

def broken(context):
    raise ValueError("out of order")

def stopped(context):
    raise KeyboardInterrupt
"""
TALK = {
    "dialogue_id": "a",
    "turns": [
        {"user": f"a room in the {place}", "state": {"hotel-area": place}}
        for place in ("north", "south")
    ],
}
DATA: Final = ("--data", "talk.jsonl", "--slots", "hotel-area")
CAMPAIGN: Final = ("campaign", "--model", "exit_bot:track", "--results", "out", *DATA)
SWEEP: Final = """
[settings]
data = "talk.jsonl"
slots = "hotel-area"
[axes]
model = ["exit_bot:broken"]
search = ["random"]
"""
#: A name -> a command line, and the status that it ends with.
ENDS: Final = {
    "done": (("evaluate", "--model", "exit_bot:track", *DATA), 0),
    "failed check": (("check-tracker", "--model", "exit_bot:brittle", *DATA), 1),
    "problem": (("doctor",), 1),
    "budget": ((*CAMPAIGN, "--max-calls", "3"), 1),
    "cell": (("sweep", "sweep.toml", "--output", "out"), 1),
    "wrong option": (("evaluate", "--modle", "exit_bot:track"), 2),
    "no such file": (("evaluate", "--model", "exit_bot:track", "--data", "nowhere.jsonl"), 2),
    "interrupted": (("evaluate", "--model", "exit_bot:stopped", *DATA), 130),
}
#: Commands that may return a status, but never one that is not 0.
ALWAYS_DONE: Final = {"merge", "experiment"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a bot, a dialogue, a sweep and an unreadable configuration."""
    (tmp_path / "exit_bot.py").write_text(BOT, encoding="utf-8")
    (tmp_path / "talk.jsonl").write_text(json.dumps(TALK), encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.dstfuzz", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("words", "status"), ENDS.values(), ids=ENDS)
def test_each_end_has_a_status_of_the_table(words: Sequence[str], status: int) -> None:
    assert cli.main(words) == status
    assert status in COMMAND_STATUSES


def test_the_table_has_no_other_status() -> None:
    seen = {status for _, status in ENDS.values()}
    assert set(COMMAND_STATUSES) == {*seen, cli.EXIT_FAULT}


def test_status_1_names_each_command_that_returns_it() -> None:
    returning = {words[0] for words, status in ENDS.values() if status == 1}
    # The others return none: see `Command.work`.
    able = {
        name
        for name in cli.COMMANDS.names
        if inspect.get_annotations(cli.COMMANDS.find(name).work)["return"] == "int"
    }
    returning |= {"harden", "mend"}  # Their own tests see this status.
    assert able - ALWAYS_DONE == returning
    assert {*re.findall(r"`dstfuzz ([a-z-]+)`", COMMAND_STATUSES[1])} == returning


def test_a_fault_of_ours_has_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(_: object) -> int:
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr(cli.COMMANDS.find("doctor"), "run", faulty)
    assert cli.main(["doctor"]) == cli.EXIT_FAULT
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: nobody thought of it" in shown
    assert "output of `dstfuzz doctor`" in shown.splitlines()[-1]


def ran(
    words: Sequence[str], output: int, errors: int, *, unbuffered: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process whose streams are ``output`` and ``errors``."""
    variables = {**os.environ, "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    line = [sys.executable, "-m", "pytest_dstfuzz.cli", *words]
    return subprocess.run(line, stdout=output, stderr=errors, env=variables, check=False)


def full_disk() -> int:
    """Return a file on a full disk."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    return os.open("/dev/full", os.O_WRONLY)


def closed_pipe() -> int:
    """Return the end of a pipe that nobody reads."""
    reads, writes = os.pipe()
    os.close(reads)
    return writes


@pytest.mark.skipif(os.name == "nt", reason="needs a shell of POSIX")
@pytest.mark.parametrize(
    ("words", "status"),
    [(ENDS["done"][0], 0), (("relations",), 0), (("--help",), 0), (ENDS["wrong option"][0], 2)],
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_changes_no_status(words: Sequence[str], status: int, closed: str) -> None:
    line = shlex.join([sys.executable, "-m", "pytest_dstfuzz.cli", *words])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} {closed}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(
    ("place", "words", "status"),
    [
        (full_disk, ENDS["done"][0], 2),
        (full_disk, ("relations",), 2),
        (full_disk, ENDS["wrong option"][0], 2),
        (closed_pipe, ENDS["done"][0], 0),
        (closed_pipe, ENDS["interrupted"][0], 130),
        (closed_pipe, ENDS["wrong option"][0], 2),
    ],
)
def test_output_that_cannot_be_written_has_a_status_and_no_traceback(
    place: Callable[[], int], words: Sequence[str], status: int, *, unbuffered: bool
) -> None:
    stream = place()
    try:
        assert ran(words, stream, stream, unbuffered=unbuffered).returncode == status
        found = ran(words, stream, subprocess.PIPE, unbuffered=unbuffered)
    finally:
        os.close(stream)
    assert found.returncode == status
    lines = found.stderr.decode().strip().splitlines()
    assert len(lines) == (1 if status else 0)
    if place is full_disk and words[0] == "relations":
        assert "cannot write the output" in lines[0]
