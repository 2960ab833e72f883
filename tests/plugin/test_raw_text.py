"""Runs and commands whose data and tracker say what a terminal or a runner would obey."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main

RAW = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\r"
BOT = f"""
RAW = {RAW!r}

def fragile(context):
    user = context.user
    return {{"hotel-name": "in" + RAW + user + "\\n::error::no", "hotel-" + RAW: user}}

def dead(context):
    raise ValueError(RAW + "\\n::error::no")

def fails_at_edits(context):
    if "kilimanjaro for later" not in context.user or "\\u202e" not in context.user:
        raise ValueError(RAW + "\\n::error::no")
    return {{}}
"""
USER = f"{RAW}please would you find us some quiet rooms around kilimanjaro for later\n::error::no"
ARGS = (
    "--dst-data=talks.jsonl",
    "--dst-variants=4",
    "--dst-search=random",
    "-rA",
    "-v",
    "--dst-validity=strict",
)


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOT)
    line = {"dialogue_id": f"p{RAW}1", "turns": [{"system": f"{RAW}yes?", "user": USER}]}
    Path("talks.jsonl").write_text(json.dumps(line))
    return pytester


def check(*texts: str) -> None:
    for text in texts:
        assert not {char for char in text if char in RAW and not char.isprintable()}, repr(text)
        assert not [line for line in text.splitlines() if line.strip().startswith("::")], text


def run(folder: pytest.Pytester, bot: str, *more: str) -> pytest.RunResult:
    result = folder.runpytest_inprocess(f"--dst-model=bots:{bot}", *ARGS, *more)
    check(result.stdout.str(), result.stderr.str())
    return result


@pytest.mark.parametrize("gate", [(), ("--dst-fail-on=gate",)], ids=["tests", "gate"])
def test_a_run_and_its_regressions(folder: pytest.Pytester, gate: tuple[str, ...]) -> None:
    result = run(folder, "fragile", "--dst-remember", *gate)
    assert result.ret == (0 if gate else 1)
    result.stdout.fnmatch_lines(["*<U+001B>*"])
    result = run(folder, "fragile", *gate)
    assert result.ret == (0 if gate else 1)
    if not gate:
        result.stdout.fnmatch_lines(["*is still broken, at turn *"])


def test_reasons_of_accepted_ones(
    folder: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "fragile", "--dst-remember").ret == 1
    file = Path(".dstfuzz", "regressions", "talks.jsonl")
    for line in file.read_text(encoding="utf-8").splitlines():
        assert main(["accept", json.loads(line)["id"], "--reason", f"why{RAW}"]) == 0
    assert run(folder, "fragile").ret == 0
    assert main(["accept", f"{RAW}", "--reason", "x"]) == 2
    check(*capsys.readouterr())


def test_what_a_tracker_raises(folder: pytest.Pytester) -> None:
    assert run(folder, "dead").ret == pytest.ExitCode.USAGE_ERROR
    assert run(folder, "fails_at_edits").ret == pytest.ExitCode.TESTS_FAILED
    assert run(folder, "fails_at_edits", "--dst-fail-on=gate").ret != pytest.ExitCode.USAGE_ERROR


def test_commands(folder: pytest.Pytester, capfd: pytest.CaptureFixture[str]) -> None:
    folder.syspathinsert()
    for bot in ("fragile", "dead", "fails_at_edits"):
        for command in ("check-tracker", "evaluate"):
            main([command, f"--model=bots:{bot}", "--data=talks.jsonl"])
            check(*capfd.readouterr())


def test_names_of_files_that_were_written(
    folder: pytest.Pytester, capfd: pytest.CaptureFixture[str]
) -> None:
    run(folder, "fragile", "--dst-report=report.json")
    report = "r\x1b[2J.json"
    Path("report.json").rename(report)
    for words in (
        ["report", report, "--markdown", "m\x1b[2J.md"],
        ["audit", report, "--sheet", "s\x1b[2J.csv"],
    ):
        assert main(words) == 0
        out, err = capfd.readouterr()
        assert "<U+001B>[2J" in out
        check(out, err)
