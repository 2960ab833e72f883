"""Made dialogues of any number, and what a command costs over them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pytest_dstfuzz.dialogue.load import load_dialogues
from tools.scale import synthetic

TOP = Path(__file__).parents[2]


def made(path: Path, turns: int, seed: int = 0) -> Path:
    synthetic.main(["--turns", str(turns), "--output", str(path), "--seed", str(seed)])
    return path


def test_made_dialogues_have_as_many_turns_and_begin_alike(tmp_path: Path):
    few, more = made(tmp_path / "few.jsonl", 123), made(tmp_path / "more.jsonl", 200)
    data = load_dialogues(few)
    assert data.turn_count() == 123
    assert data.labelled
    sample = load_dialogues("sample")
    assert set(data.ontology.values) <= set(sample.ontology.values)
    whole, longer = few.read_text().splitlines(), more.read_text().splitlines()
    assert longer[: len(whole) - 1] == whole[:-1]
    assert made(tmp_path / "other.jsonl", 123, seed=1).read_text() != few.read_text()


def test_values_are_exchanged_in_texts_and_labels(tmp_path: Path):
    shipped = {turn.user for turn in load_dialogues("sample").turns()}
    turns = list(load_dialogues(made(tmp_path / "made.jsonl", 200)).turns())
    assert sum(turn.user not in shipped for turn in turns) > 50
    said = [
        value in turn.user.lower()
        for turn in turns
        for slot, value in turn.state.items()
        if slot == "train-destination"
    ]
    assert any(said)


def measured(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Measure in a process of its own: one that is started has the peak of who started it."""
    command = [sys.executable, "-m", "tools.scale.memory", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=TOP)


def test_the_memory_of_a_command_is_measured():
    command = [sys.executable, "-c", "x = bytearray({} * 10**6)"]
    out = measured("1", "90", "--", *command).stdout
    small, large = (int(found) for found in re.findall(r"\| ([0-9]+) \|$", out, re.MULTILINE))
    assert 60 < large - small < 120
    assert measured("3", "--", sys.executable, "-c", "raise SystemExit({})").returncode == 3


def test_large_data_costs_no_more_memory_than_small_data(tmp_path: Path):
    files = [str(made(tmp_path / f"{turns}.jsonl", turns)) for turns in (1_000, 12_000)]
    (ratio,) = re.findall(r"greatest peak: ([0-9.]+) times", measured(*files).stdout)
    assert float(ratio) < 1.2
