"""``dstfuzz calibrate``: percentiles of recorded and of own replies, and the threshold between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.comparisons.embedding import Calibration

TOWNS = ("Oslo", "Lima", "Quito", "Turin", "Perth", "Leeds", "Dakar", "Hanoi", "Kyoto", "Basel")
KINDS = ("museum", "market", "harbour", "library", "bakery", "tower")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {
            "dialogue_id": town,
            "turns": [
                {
                    "user": f"where is the {kind}",
                    "answer": f"The {kind} of {town} is near the {KINDS[n - 1]}.",
                }
                for n, kind in enumerate(KINDS)
            ],
        }
        for town in TOWNS
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_the_threshold_is_between_own_replies_and_those_to_other_questions() -> None:
    found = Calibration((0.5, 0.6, 0.7, 0.8), (0.1, 0.2, 0.3))
    assert 0.3 <= found.threshold < 0.5
    assert Calibration(tuple(n / 100 for n in range(100))).threshold == 0.05


def test_recorded_replies_and_those_of_a_bot_are_measured(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wobbling_bot.py").write_text(
        "from itertools import count\n"
        "number = count()\n"
        "def reply(messages):\n"
        "    thing = messages[-1]['content'].split()[-1]\n"
        "    return ('You find the {} near the station.', 'It is near the station, the {}.')["
        "next(number) % 2].format(thing)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    line = ["calibrate", "--data", str(data)]
    assert cli.main(line) == 0
    alone = capsys.readouterr().out
    assert "recorded replies to different questions (4,000)" in alone
    assert "embedding:threshold=0." in alone
    assert "own replies" not in alone
    assert cli.main(line) == 0
    assert capsys.readouterr().out == alone
    assert cli.main([*line, "--model", "wobbling_bot:reply", "--turns", "12"]) == 0
    both = capsys.readouterr().out
    assert "own replies to one question (36)" in both
    assert "one question: 0.0% of the pairs count as different" in both


def test_a_bot_that_never_replies_is_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "silent_bot.py").write_text(
        "from pytest_dstfuzz import TrackerError\n"
        "class Bot:\n"
        "    def predict(self, contexts):\n"
        "        return [TrackerError('it is asleep') for _ in contexts]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    line = ["calibrate", "--data", str(data), "--model", "silent_bot:Bot", "--turns", "3"]
    assert cli.main(line) == 2
    assert "it is asleep" in capsys.readouterr().err


def test_too_few_replies_and_votes_are_one_message_each(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text(data.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    for words, message in (
        (["--data", str(few)], "needs at least 50 recorded replies, and the data"),
        (["--data", str(data), "--model", "x:y", "--votes", "1"], "own replies needs at least two"),
    ):
        assert cli.main(["calibrate", *words]) == 2
        assert message in capsys.readouterr().err
