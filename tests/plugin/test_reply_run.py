"""Bots that reply, tested from the command line, by fixtures and by markers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from processes import run_python

BOT = """
ANSWERS = {
    "order": "Your order is on its way. It will be with you on Tuesday.",
    "open": "We are open from 9 to 6.",
}

def reply(messages):
    question = messages[-1]["content"].lower()
    known = (answer for word, answer in ANSWERS.items() if word in question)
    return next(known, "Sorry, I did not understand that.")

def same(before, found):
    return before[:5] == found[:5]

def undecided(before, found):
    return None

def silent(messages):
    return " "
"""
ASKED = (
    ["Where is my order?", "And when are you open?"],
    ["I would like to know when you are open"],
    ["Hi, my order has not arrived yet"],
)
ARGUMENTS = ("--dst-model=my_bot:reply", "--dst-outcome=reply", "--dst-data=asked.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bot and questions."""
    path = tmp_path_factory.mktemp("replies")
    path.joinpath("my_bot.py").write_text(BOT, encoding="utf-8")
    lines = [json.dumps({"dialogue_id": f"d{n}", "users": list(u)}) for n, u in enumerate(ASKED)]
    path.joinpath("asked.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path.joinpath("test_own.py").write_text(
        "import pytest\nimport my_bot\n\n"
        "@pytest.fixture(scope='session')\ndef dst_model():\n    return my_bot.reply\n\n"
        "@pytest.fixture(scope='session')\ndef dst_outcome():\n    return 'reply'\n\n"
        "@pytest.fixture(scope='session')\ndef dst_compare():\n    return my_bot.same\n\n"
        "def test_by_fixtures(dst_turn):\n    dst_turn.assert_unchanged()\n\n"
        "@pytest.mark.dst(compare='numbers')\n"
        "def test_marked(dst_turn):\n    dst_turn.assert_unchanged()\n",
        encoding="utf-8",
    )
    return path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, in a terminal of 100 columns."""
    command = ("-m", "pytest", "-p", "no:cacheprovider", "--color=no", *words)
    return run_python(*command, cwd=folder, env={**os.environ, "COLUMNS": "100"})


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """One run of the built-in suite, with its report."""
    return run(folder, *ARGUMENTS, "--dst-suite=yes", "--ignore=test_own.py", "--dst-report=r.json")


def test_ten_lines_find_what_breaks_a_reply(
    done: subprocess.CompletedProcess[str], folder: Path
) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    for line in (
        "replies compared by ",
        "verdict       failed: 3 of 4 tested turns break",
        "change the reply at turn 0 of dialogue d2",
        "before:    Your order is on its way. It will be with you on Tuesday.",
        "replied:   Sorry, I did not understand that.",
        "FAILED dstfuzz::test_reply_survives[asked-test-d2-t0]",
    ):
        assert line in done.stdout
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert report["outcome"]["kind"] == report["settings"]["outcome"] == "reply"
    assert {turn["outcome_kind"] for turn in report["turns"]} == {"reply"}
    assert report["weaknesses"][0]["id"] == "fallback-instead-of-answer"
    for word in ("belief", "tracker"):
        assert word not in done.stdout


def test_who_names_no_questions_is_told_whose_are_asked(
    folder: Path, done: subprocess.CompletedProcess[str]
) -> None:
    found = run(folder, *ARGUMENTS[:2], "--ignore=test_own.py", "--dst-turns=1", "--dst-variants=1")
    head, _, _ = found.stdout.partition("collected")
    assert "questions of the shipped dialogues, about restaurants and hotels" in head
    assert "shipped dialogues" not in done.stdout


def test_fixtures_and_markers_of_a_suite_say_what_is_compared(folder: Path) -> None:
    words = ("test_own.py", "--dst-data=asked.jsonl", "--dst-outcome=reply", "--tb=line", "-v")
    found = run(folder, *words)
    assert found.returncode == 1, found.stdout
    assert "reply with reply: numbers; or same" in found.stdout
    assert "note          settings of tests by markers: compare='numbers'" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dst-compare=my_bot:undecided"], "'my_bot:undecided' returned nothing: it must"),
        (["--dst-model=my_bot:silent"], "an empty reply"),
        (
            ["--dst-model=trade"],
            "trade keeps a belief state and does not reply: leave --dst-outcome",
        ),
        (["--dst-outcome=state"], "add --dst-outcome=reply"),
    ],
)
def test_a_mistake_is_one_message(folder: Path, words: list[str], message: str) -> None:
    found = run(folder, *ARGUMENTS, *words, "--ignore=test_own.py", "-q", "--tb=short")
    assert found.returncode == 4
    printed = found.stdout + found.stderr
    assert message in printed
    assert "Traceback" not in printed
