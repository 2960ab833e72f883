"""Runs with slow and failing bots: what was answered is kept, what was said is kept back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

BOTS = """\
import os
import time

import pytest

def note():
    with open("calls.txt", "a") as file:
        file.write("x")


def slow(context):
    note()
    time.sleep(0.3)
    return {"hotel-name": "any"}


slow.fingerprint = "1"


class Hangs:
    fingerprint = "1"

    def predict(self, contexts):
        # More than the preflight and the unchanged turns are.
        if len(contexts) > 4:
            said = contexts[0].user
            print("the bot hears", said)
            if os.environ["ENDS"] == "hang":
                time.sleep(30)
            elif os.environ["ENDS"] == "interrupt":
                raise KeyboardInterrupt(said)
            elif os.environ["ENDS"] == "exit":
                pytest.exit(f"no more of {said}")
            elif os.environ["ENDS"] == "skip":
                pytest.skip(f"no more of {said}")
            else:
                pytest.fail(f"no more of {said}")
        return [{"hotel-name": "any"} for _ in contexts]
"""
MARKER = "kilimanjaro"
TALKS = [
    {"dialogue_id": f"p{n}", "users": [f"please find us quiet rooms number {n} at {MARKER}"]}
    for n in range(3)
]
ARGS = ("--dst-data=talks.jsonl", "--dst-search=random", "--dst-relation=metamorphic")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOTS)
    Path("talks.jsonl").write_text("".join(f"{json.dumps(talk)}\n" for talk in TALKS))
    return pytester


def test_runs_that_a_timeout_ends_go_on_where_they_were(folder: pytest.Pytester) -> None:
    run = ("--dst-model=bots:slow", *ARGS, "--dst-variants=3")
    calls, ended = 0, []
    for _ in range(8):
        ran = folder.runpytest_inprocess(*run, "-x", "--timeout=1", "-p", "no:xdist")
        asked = len(Path("calls.txt").read_text())
        assert asked > calls
        calls = asked
        ended.append(ran.ret)
        if ran.ret == pytest.ExitCode.OK:
            break
    assert ended[0] == pytest.ExitCode.TESTS_FAILED
    assert ended[-1] == pytest.ExitCode.OK
    # But for a call or so that each timeout cut short, nothing was asked twice.
    Path("calls.txt").write_text("")
    folder.runpytest_inprocess(*run, "--dst-cache=no", "-p", "no:xdist")
    assert calls <= len(Path("calls.txt").read_text()) + 4 * len(ended)


@pytest.mark.parametrize("ends", ["hang", "interrupt", "exit", "skip", "fail"])
def test_no_way_to_end_shows_what_was_said(
    folder: pytest.Pytester, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDS", ends)
    run = ("--dst-model=bots:Hangs", *ARGS, "--showlocals", "--full-trace", "-rA", "--tb=long")
    files = ("--junitxml=out.xml", "-o", "junit_logging=all", "-p", "no:xdist", "-x")
    files += ("--timeout=2",) if ends == "hang" else ()
    # Ctrl-C would end this run, too.
    runs = folder.runpytest_subprocess if ends == "interrupt" else folder.runpytest_inprocess
    said = runs(*run, *files)
    plain = said.stdout.str() + said.stderr.str() + Path("out.xml").read_text()
    assert MARKER in plain
    ran = runs(*run, *files, "--dst-redact", "--dst-cache=no")
    shown = ran.stdout.str() + ran.stderr.str() + Path("out.xml").read_text()
    assert MARKER not in shown
    assert ran.ret == said.ret
    if ends == "hang":
        assert re.search(r"Timeout \(>2(\.0)?s\) from pytest-timeout", shown)
        assert re.search(r"bots\.py:\d+: in predict", shown)


def test_a_test_of_ones_own_shows_nothing_either(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        test_own="""
        def test_own(dst_turn):
            assert dst_turn.turn.user == "something else"

        def test_without():
            said = "my own text"
            assert said == "another"
        """
    )
    ran = folder.runpytest_inprocess("--dst-model=bots:slow", *ARGS, "--dst-redact", "test_own.py")
    ran.assert_outcomes(failed=4)
    assert MARKER not in ran.stdout.str()
    ran.stdout.fnmatch_lines(["AssertionError: kept back (redact)", "*test_own.py:2: in test_own"])
    assert "my own text" in ran.stdout.str()
