"""One file of remembered violations, and several turns, runs and commands that write to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.cli import main

BOT = """
def fragile(context):
    return {"hotel-name": context.user}
"""
USER = "please would you find us some quiet rooms around kilimanjaro for later"
FILE = Path(".dstfuzz", "regressions", "talks.jsonl")
ARGS = (
    "--dst-model=bots:fragile",
    "--dst-data=talks.jsonl",
    "--dst-variants=4",
    "--dst-validity=strict",
    "--dst-search=random",
)


def talks(*names: str) -> None:
    """Write dialogues of one turn; those of a file all have the same words."""
    lines = [{"dialogue_id": name, "turns": [{"system": "", "user": USER}]} for name in names]
    Path("talks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOT)
    pytester.syspathinsert()
    talks("p1")
    return pytester


def during(folder: pytest.Pytester, *code: str) -> str:
    """Let something happen while tests run, as in another terminal; return the option for it."""
    body = "".join(f"        {line}\n" for line in code)
    folder.makepyfile(
        meanwhile="import pathlib, subprocess, sys\nDONE = []\n\n"
        "def pytest_runtest_logfinish():\n"
        f"    if not DONE:\n        DONE.append(1)\n{body}"
    )
    return "-pmeanwhile"


def command(*words: str) -> str:
    """Return code that runs a module of Python."""
    return f"print(subprocess.run([sys.executable, '-m', *{words}], capture_output=True))"


def test_turns_with_the_same_words_end_no_run(folder: pytest.Pytester) -> None:
    talks("p1", "p2", "p3")
    report = "--dst-report=r.json"
    # A later turn of a dialogue may only differ in what a search made of it: with every way to
    # edit allowed, two of three dialogues find the same smallest violation.
    more = ("--dst-variants=20", "--dst-turns=all")
    result = folder.runpytest(*ARGS, *more, "--dst-remember", report)
    result.assert_outcomes(failed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = json.loads(Path("r.json").read_text())["summary"]["violations"]
    names = [entry["id"] for entry in entries()]
    assert names == sorted(set(names))
    # Or this test is about nothing.
    assert len(names) < found
    result.stdout.fnmatch_lines([f"*{len(names)} new violations were remembered*"])


def test_what_is_accepted_during_a_run_stays_accepted(folder: pytest.Pytester) -> None:
    folder.runpytest(*ARGS, "--dst-remember").assert_outcomes(failed=1)
    name = entries()[0]["id"]
    accept = command("pytest_dstfuzz.cli", "accept", name, "--reason", "meanwhile")
    more = ("--dst-remember", "--dst-seed=1", during(folder, accept))
    result = folder.runpytest(*ARGS, *more)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*new violations were remembered*"])
    by_name = {entry["id"]: entry["reason"] for entry in entries()}
    assert by_name[name] == "meanwhile"
    assert len(by_name) > 4


def test_two_runs_at_once_remember_what_both_found(folder: pytest.Pytester) -> None:
    # So few that both together are no more of one weakness than are remembered.
    args = (*ARGS, "--dst-variants=2", "--dst-remember")
    another = command("pytest", *args, "--dst-seed=1")
    result = folder.runpytest(*args, "--dst-seed=0", during(folder, another))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    both = entries()
    FILE.unlink()
    alone = []
    for seed in (0, 1):
        result = folder.runpytest(*args, f"--dst-seed={seed}")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        alone += entries()
        FILE.unlink()
    assert {entry["id"] for entry in both} == {entry["id"] for entry in alone}
    assert len(both) > 2


def test_lines_of_two_branches_are_replayed_once(folder: pytest.Pytester) -> None:
    folder.runpytest(*ARGS, "--dst-remember").assert_outcomes(failed=1)
    ours = FILE.read_text()
    for entry in entries():
        assert main(["accept", entry["id"], "--reason", "theirs"]) == 0
    FILE.write_text(ours + FILE.read_text())
    count = len(ours.splitlines())
    result = folder.runpytest(*ARGS, "--dst-remember")
    result.assert_outcomes(xfailed=count + 1)
    assert result.ret == 0


def test_a_file_that_broke_during_a_run_is_left_alone_and_fails_it(
    folder: pytest.Pytester,
) -> None:
    breaks = (
        f"path = pathlib.Path({str(FILE)!r})",
        "path.parent.mkdir(parents=True)",
        "path.write_text('broken')",
    )
    # Nothing else fails: the session is under a gate that holds.
    more = ("--dst-remember", "--dst-max-failure-rate=100%", "--dst-report=r.json")
    result = folder.runpytest(*ARGS, *more, during(folder, *breaks))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["failed: no violation was remembered: *line 1 is not a violation*"]
    )
    assert FILE.read_text() == "broken"
    assert json.loads(Path("r.json").read_text())["summary"]["violations"] > 0
