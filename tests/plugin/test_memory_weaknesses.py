"""Remembered violations by weakness: a few of each, accepted and listed as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.regressions.regression import MOST_OF_ONE

SAID = "please would you find us some quiet rooms around here for later"
#: A tracker that understands one utterance word for word, and forgets the area where it is longer
#: or shorter, else the name.
BOT = f"""
def fragile(context):
    state = {{"hotel-name": "acorn", "hotel-area": "north"}}
    if len(context.exchanges) < 2:
        return {{}}
    if context.user != {SAID!r}:
        del state["hotel-name" if len(context.user) == {len(SAID)} else "hotel-area"]
    return state
"""
TURNS = [
    {"system": "", "user": "good morning to all of you"},
    {"system": "hello", "user": SAID},
]
ARGS = ("--dst-data=talks.jsonl", "--dst-search=random", "--dst-variants=12")
ARGS += ("--dst-validity=natural",)
NAME = "name-changed-or-made-up"
FILE = Path(".dstfuzz", "regressions", "talks.jsonl")


def run(folder: pytest.Pytester, *more: str) -> pytest.RunResult:
    return folder.runpytest("--dst-model=bots:fragile", *ARGS, "--dst-edits=char-replace", *more)


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOT)
    dialogue = {"dialogue_id": "p1", "turns": TURNS}
    Path("talks.jsonl").write_text(f"{json.dumps(dialogue)}\n", encoding="utf-8")
    return pytester


def test_of_one_weakness_only_the_plainest_are_remembered(folder: pytest.Pytester) -> None:
    result = run(folder, "--dst-remember", "--dst-report=r.json")
    report = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert [each["id"] for each in report["weaknesses"]] == [NAME]
    (broken,) = (turn for turn in report["turns"] if turn["outcome"] == "violation")
    found = {each["minimal"]["text"] for each in broken["variants"] if each["minimal"]}
    assert len(found) > MOST_OF_ONE
    kept = lines()
    assert [entry["weakness"] for entry in kept] == [NAME] * MOST_OF_ONE
    sizes = sorted(map(len, found))
    assert sorted(len(entry["dialogue"][-1]["seen"]) for entry in kept) == sizes[:MOST_OF_ONE]
    left = len(found) - MOST_OF_ONE
    result.stdout.fnmatch_lines(
        [f"*{MOST_OF_ONE} new violations were remembered in *; {left} more were not *"]
    )
    before = FILE.read_bytes()
    run(folder, "--dst-remember", "--dst-seed=7")
    assert FILE.read_bytes() == before


def test_an_accepted_weakness_fails_no_build_whatever_is_found_of_it(
    folder: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, "--dst-remember")
    assert main(["accept", "name", "--reason", "nobody types this"]) == 0
    told = capsys.readouterr().out
    assert f"accepted the weakness {NAME} in {FILE}: {MOST_OF_ONE} violations" in told
    # Violations that nobody has seen before are of it, too.
    for seed in ("0", "9"):
        result = run(folder, f"--dst-seed={seed}", "-rx", "--dst-annotations=yes")
        result.assert_outcomes(passed=1, xfailed=MOST_OF_ONE + 1)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*accepted: *nobody types this*"])
        result.stdout.no_fnmatch_line("::error*")
    # Another weakness still does.
    result = run(folder, "--dst-edits=word-insert")
    result.assert_outcomes(failed=1, passed=1, xfailed=MOST_OF_ONE)
    result.stdout.fnmatch_lines(["1 weakness"])
    report = run(folder, "--dst-report=r.json")
    assert report.ret == 0
    known = json.loads(Path("r.json").read_text(encoding="utf-8"))["regressions"]
    assert {(each["status"], each["weakness"]) for each in known} == {("accepted", NAME)}


def test_an_accepted_weakness_is_marked_wherever_weaknesses_are_listed(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "job.md")
    files = ("--dst-report=r.json", "--dst-report=r.html", "--dst-annotations=yes")
    run(folder, "--dst-remember", *files)
    (known,) = json.loads(Path("r.json").read_text(encoding="utf-8"))["weaknesses"]
    assert known["accepted"] is None
    assert main(["accept", NAME, "--reason", "nobody types this"]) == 0
    Path("job.md").unlink()
    result = run(folder, *files)
    result.stdout.fnmatch_lines(["  1. *accepted: nobody types this"])
    (known,) = json.loads(Path("r.json").read_text(encoding="utf-8"))["weaknesses"]
    assert known["accepted"] == "nobody types this"
    assert "accepted: nobody types this" in Path("r.html").read_text(encoding="utf-8")
    job = Path("job.md").read_text(encoding="utf-8")
    assert "accepted: nobody types this" in job.replace("&#58;", ":")
    # A reason may say what was said.
    hidden = run(folder, *files, "--dst-redact")
    assert "nobody types this" not in hidden.stdout.str()
    assert "nobody types this" not in Path("r.html").read_text(encoding="utf-8")


def test_a_line_that_another_branch_added_is_accepted_with_its_weakness(
    folder: pytest.Pytester,
) -> None:
    run(folder, "--dst-remember")
    before = FILE.read_text(encoding="utf-8").splitlines(keepends=True)
    FILE.write_text("".join(before[:2]), encoding="utf-8")
    assert main(["accept", NAME, "--reason", "known"]) == 0
    merged = FILE.read_text(encoding="utf-8") + "".join(before[2:])
    FILE.write_text(merged, encoding="utf-8")
    run(folder).assert_outcomes(passed=1, xfailed=MOST_OF_ONE + 1)


def test_retired_with_its_last_violation(folder: pytest.Pytester) -> None:
    run(folder, "--dst-remember")
    assert main(["accept", NAME, "--reason", "known"]) == 0
    names = [entry["id"] for entry in lines()]
    assert main(["retire", *names[1:]]) == 0
    assert run(folder).ret == 0
    assert main(["retire", names[0]]) == 0
    run(folder).assert_outcomes(failed=1, passed=1)


def test_the_list_is_by_weakness(
    folder: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, "--dst-remember")
    run(folder, "--dst-remember", "--dst-edits=word-insert")
    out = next(entry["weakness"] for entry in lines() if entry["weakness"] != NAME)
    count = sum(entry["weakness"] == out for entry in lines())
    assert main(["accept", out, "--reason", "known"]) == 0
    capsys.readouterr()
    assert main(["regressions"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    opened = len(lines()) - count
    assert f"{FILE}: {opened} open, {count} accepted" in told
    assert f"{NAME} ({MOST_OF_ONE} open, 0 accepted)" in told
    assert f"{out} (0 open" in told
    assert (told.index(out) < told.index(NAME)) is (out < NAME)
    assert main(["regressions", "--weakness", "value-made-up"]) == 0
    told = capsys.readouterr().out
    assert NAME not in told
    assert f"{FILE}: 0 open, {count} accepted" in told
    assert main(["regressions", "--weakness", "cue"]) == 2
    assert "unknown weakness 'cue'" in capsys.readouterr().err
    assert main(["accept", "slip-in-key-word-value-wrong", "--reason", "x"]) == 2
    assert "'slip-in-key-word-value-wrong'" in capsys.readouterr().err


def test_lines_of_earlier_versions_get_their_weakness(folder: pytest.Pytester) -> None:
    run(folder, "--dst-remember")
    old = [{k: v for k, v in entry.items() if k != "weakness"} for entry in lines()]
    # As a violation of several edits, of which such a line does not tell which did what.
    old[0]["edits"] *= 2
    FILE.write_text("".join(f"{json.dumps(entry)}\n" for entry in old), encoding="utf-8")
    run(folder).assert_outcomes(failed=MOST_OF_ONE + 1, passed=1)
    assert main(["accept", NAME, "--reason", "known"]) == 0
    kept = lines()
    assert [entry["weakness"] for entry in kept] == ["", *[NAME] * (MOST_OF_ONE - 1)]
    assert [entry["status"] for entry in kept].count("accepted") == MOST_OF_ONE - 1
    # Found again, it is known of this one, too.
    run(folder, "--dst-remember")
    assert {(entry["weakness"], entry["status"]) for entry in lines()} == {(NAME, "accepted")}
