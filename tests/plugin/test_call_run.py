"""Runs of assistants that call tools: the same bytes whoever runs them, remembered and gated."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

BOT = '''
"""Reads only `people` and `taxi` as they are spelled, and writes down what it is asked."""
import json
import os
import re

WORDS = {"two": 2, "three": 3, "four": 4}

def call(name, arguments):
    return {"id": name, "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)}}

def answer(messages, tools):
    with open("asked", "a", encoding="utf-8") as file:
        file.write("asked\\n")
    if len(open("asked").readlines()) > int(os.environ.get("BOT_DIES_AFTER", "1000000")):
        os.kill(os.getpid(), 9)
    last = messages[-1]["content"].lower()
    calls = []
    people = [WORDS[word] for word in re.findall("[a-z]+", last) if word in WORDS]
    if "table" in last:
        known = {"area": "secretshire"}
        if people and "people" in last:
            known["people"] = people[0]
        calls.append(call("book_table", known))
    if "taxi" in last and "could you get us" in last and last.endswith("by the river"):
        calls.append(call("call_taxi", {"first": tools[0]["function"]["name"]}))
    if os.environ.get("BOT_SAYS_NOTHING"):
        calls = []
    if not calls:
        return {"role": "assistant", "content": "What can I do for you?"}
    return {"role": "assistant", "content": None, "tool_calls": calls}

answer.fingerprint = "1"
'''
REVERSED = """
import os
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    if os.environ.get("BACKWARDS"):
        items.reverse()
"""
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object"}},
    }
    for name in ("book_table", "call_taxi")
]
OPTIONS = (
    *("--dst-model=toolbot:answer", "--dst-outcome=tool-calls", "--dst-data=talks.jsonl"),
    *("--dst-variants=3", "--dst-fail-on=gate", "--dst-report=out.json"),
)


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": name, "function": function}]}


def talk(number: int, word: str, people: int) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Help guests."},
        {"role": "user", "content": f"i would like to have a table for {word} people please"},
        call("book_table", {"people": people, "area": "secretshire"}),
        {"role": "tool", "tool_call_id": "book_table", "content": "whispered result"},
        {"role": "assistant", "content": "It is yours."},
        {
            "role": "user",
            "content": "and could you get us a taxi to the restaurant by the river",
        },
        call("call_taxi", {"first": "book_table"}),
    ]
    return {"id": f"d{number}", "messages": messages, "tools": TOOLS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("assistant")
    (path / "toolbot.py").write_text(BOT, encoding="utf-8")
    (path / "conftest.py").write_text(REVERSED, encoding="utf-8")
    talks = [talk(0, "two", 2), talk(1, "three", 3), talk(2, "four", 4)]
    (path / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    return path


def run(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own."""
    known = {**os.environ, **env}
    return run_python("-m", "pytest", *OPTIONS, *options, cwd=folder, env=known)


def report(folder: Path) -> list[str]:
    """Return the report but for settings and what is about the run."""
    lines = (folder / "out.json").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith(('"run": ', '"settings": '))]


@pytest.fixture(scope="module")
def whole(folder: Path) -> tuple[list[str], str]:
    """The report of a run, and what it printed; it also remembered and wrote all outputs."""
    done = run(
        folder,
        *("--dst-cache=no", "--dst-remember", "--dst-report=out.html", "--junitxml=out.xml", "-v"),
        *("--dst-baseline=base.json", "--dst-update-baseline"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return report(folder), done.stdout


def test_neither_workers_nor_order_nor_a_cut_changes_a_byte(
    folder: Path, whole: tuple[list[str], str]
) -> None:
    expected, _ = whole
    assert any('"violation"' in line for line in expected)
    (folder / "empty").mkdir()
    alone = "--dst-regressions=empty"
    run(folder, alone, "--dst-cache=no", "-n", "2", BACKWARDS="1", PYTHONHASHSEED="7")
    assert report(folder) == expected

    (folder / "asked").unlink()
    (folder / "out.json").unlink()
    run(folder, alone, BOT_DIES_AFTER="40")
    assert not (folder / "out.json").exists()
    run(folder, alone)
    assert report(folder) == expected
    again = json.loads((folder / "out.json").read_text(encoding="utf-8"))["run"]["contexts"]
    assert again["recalled"] > 0


def test_no_output_speaks_of_trackers(folder: Path, whole: tuple[list[str], str]) -> None:
    page = (folder / "out.html").read_text(encoding="utf-8")
    page = page.partition("<body>")[2].partition('<script type="application')[0]
    page = re.sub("<[^>]*>", " ", page.partition("<h3>Settings</h3>")[0])
    junit = (folder / "out.xml").read_text(encoding="utf-8").replace("dst_accuracy", "")
    quiet = run(folder, "-q", "--dst-fail-on=violation").stdout
    for text in (whole[1], page, junit, quiet):
        # As words: paths of packages may hold them.
        found = re.findall(r"(?i)\b(belief|trackers?|slots?|ontology|accuracy|the bot)\b", text)
        assert found == [], text
    assert "book_table(" in page
    assert "people=" in quiet


def test_what_was_remembered_is_asked_again_promoted_and_accepted(
    folder: Path, whole: tuple[list[str], str]
) -> None:
    assert "remembered in" in whole[1]
    corpus = folder / ".dstfuzz" / "regressions" / "talks.jsonl"
    entries = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    later = next(entry for entry in entries if entry["turn"].endswith("t1"))
    assert later["transcript"]["recorded"][1][0]["role"] == "assistant"

    name = later["id"]
    told = run(folder, "-q", f"--dst-replay={name}").stdout
    assert f"regression {name} is still broken" in told
    shown = dstfuzz(folder, "regressions", name)
    assert "call_taxi(" in shown

    (folder / "test_promoted.py").write_text(dstfuzz(folder, "promote", name), encoding="utf-8")
    tested = run(folder, "-q", "test_promoted.py", "--dst-report=promoted.json").stdout
    assert "the tool calls are not as expected" in tested
    (folder / "test_promoted.py").unlink()

    dstfuzz(folder, "accept", later["weakness"], "--reason", "we ask back")
    strict = run(folder, "-q", f"-k={later['turn']}", "--dst-fail-on=violation").stdout
    assert "1 xfailed" in strict


def dstfuzz(folder: Path, *words: str) -> str:
    done = run_python("-m", "pytest_dstfuzz.cli", *words, cwd=folder)
    done.check_returncode()
    return done.stdout


def test_a_baseline_knows_clean_calls(folder: Path, whole: tuple[list[str], str]) -> None:
    del whole
    same = run(folder, "-q", "--dst-baseline=base.json")
    # There are too few dialogues for more.
    assert (same.returncode, "changed by +0.00 pp" in same.stdout) == (0, True), same.stdout
    silent = run(folder, "-q", "--dst-baseline=base.json", "--dst-cache=no", BOT_SAYS_NOTHING="1")
    assert silent.returncode == 8
    assert "arguments lost" in silent.stdout
    assert "the assistant calls nothing" in silent.stdout


def test_redacted_runs_say_nothing_that_was_said(
    folder: Path, whole: tuple[list[str], str]
) -> None:
    del whole
    done = run(
        folder,
        *("--dst-redact", "--dst-report=hidden.html", "-v", "--junitxml=hidden.xml"),
        *("--dst-relation=metamorphic,tools-order", "--dst-fail-on=violation"),
        *("--dst-baseline=hidden.json", "--dst-update-baseline"),
    )
    texts = [
        done.stdout,
        *(
            path.read_text(encoding="utf-8")
            for path in (
                folder / "out.json",
                folder / "hidden.html",
                folder / "hidden.xml",
                folder / "hidden.json",
            )
        ),
    ]
    for text in texts:
        for said in ("secretshire", "whispered", "Help guests", "restaurant"):
            assert said not in text, text
    assert "tools-order" in texts[0]
