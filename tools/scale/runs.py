"""Shared by the tools of this folder: campaigns as commands, and reports without ``run``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns


def dstfuzz(*words: str) -> list[str]:
    """Return the words of a ``dstfuzz`` command that uses this checkout."""
    return [sys.executable, "-m", "pytest_dstfuzz.cli", *words]


def carried_out(words: Sequence[str], folder: Path) -> None:
    """Run a command in a folder. If it fails, end this process with its output."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter
    if done.returncode:
        sys.exit(f"{' '.join(words[2:])} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def without_run(path: Path) -> str:
    """Return the text of a JSON report without its section ``run``, with its keys in order."""
    report = json.loads(path.read_text(encoding="utf-8"))
    del report["run"]
    return json.dumps(report)


def turns_of(data: str, split: str, dialogues: int) -> int:
    """Return how many turns the first ``dialogues`` dialogues have that seed 0 draws.

    If there are fewer dialogues, count the turns of all.
    """
    settings = Settings.of(data=data, split=split)
    found = load_dialogues(data, split)
    low, high = 1, sum(found.lengths)
    # The most turns that draw so many dialogues: the last of them is whole.
    while low < high:
        middle = (low + high + 1) // 2
        drawn = sample_turns(found, middle, settings.variant.seed)
        low, high = (middle, high) if len(drawn) <= dialogues else (low, middle - 1)
    return low
