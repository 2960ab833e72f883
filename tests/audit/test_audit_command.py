"""``dstfuzz audit`` as its users run it: in a terminal, by a file, and once more after leaving."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pytest_dstfuzz.audit.record import open_audit
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.report.json_report import read_report, report_turns

Audit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def audit(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Audit:
    """Runs the command with some typed lines; returns status, output and errors."""

    def run(*options: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in typed)))
        status = main(["audit", str(report), *options])
        return (status, *capsys.readouterr())

    return run


def saved(report: Path) -> Any:
    return json.loads(report.with_name("report.audit.json").read_text("utf-8"))


def test_a_session_that_is_left_goes_on(audit: Audit, report: Path) -> None:
    status, out, _ = audit(typed="kcsq")
    assert status == 0
    assert "10 violations, seed 0" in out
    assert "--- 1 of 10 (" in out
    assert "> clean:  i" in out
    assert "{+" in out
    assert "tracker: train-day" in out
    assert out.endswith("judge: 2 of 10 rows judged; figures come after the last row\n")
    first = saved(report)["judges"]["judge"]
    assert sorted(first.values()) == ["changes", "keeps"]
    # The row that was skipped comes first now; x means nothing and is asked again.
    _, out, _ = audit(typed="xkkkkkkkk")
    assert "--- 3 of 10 (" in out
    assert "--- 2 of 10 (" not in out
    assert "judge: 9 of 10 violations keep the meaning = precision 90.0 % (95 % Wilson" in out
    assert saved(report)["figures"]["judges"]["judge"]["keeps"] == 9
    assert first.items() <= saved(report)["judges"]["judge"].items()


def test_back_mends_an_answer(audit: Audit, report: Path) -> None:
    _, out, _ = audit(typed="bkbcq")
    assert "(so far: keeps)" in out
    assert list(saved(report)["judges"]["judge"].values()) == ["changes"]


def test_the_second_judge_is_blind_to_the_first(audit: Audit, report: Path) -> None:
    audit("--decoys", "5", "--judge", "anna", typed="k" * 15)
    before = saved(report)
    _, out, _ = audit("--judge", "ben", typed="kk")
    assert "10 violations and 5 decoys" in out
    assert "anna" not in out
    assert "keeps the meaning" not in out
    assert "tracker:" not in out
    _, out, _ = audit("--judge", "ben", typed="c" * 13)
    assert "anna: 10 of 10 violations keep" in out
    assert "anna and ben agree on 2 of 15 rows; Cohen's kappa 0.00" in out
    assert "decoys caught: 0 of 5 (value 0 of 1" in out
    after = saved(report)
    assert after["judges"]["anna"] == before["judges"]["anna"]
    assert after["sample"] == before["sample"]
    assert len(after["figures"]["agreements"][0]["disagreements"]) == 13


def test_two_judges_at_a_time_lose_nothing(report: Path) -> None:
    turns = report_turns(read_report(report))
    path = report.with_name("report.audit.json")
    anna, ben = (open_audit(path, turns, {}) for _ in range(2))
    anna.say("anna", {"q001": "keeps"})
    ben.say("ben", {"q001": "changes"})
    anna.say("anna", {"q002": "keeps"})
    assert saved(report)["judges"] == {
        "anna": {"q001": "keeps", "q002": "keeps"},
        "ben": {"q001": "changes"},
    }


def test_judges_who_write_at_the_same_time_lose_nothing(report: Path) -> None:
    turns = report_turns(read_report(report))
    path = report.with_name("report.audit.json")
    names = [f"judge {number}" for number in range(6)]
    ready = Barrier(len(names))

    def judge(name: str) -> None:
        audit = open_audit(path, turns, {})
        ready.wait()
        audit.say(name, {"q001": "keeps"})
        audit.save()

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(judge, names))
    assert sorted(saved(report)["judges"]) == names


def test_a_sheet_keeps_the_verdicts_of_others(report: Path) -> None:
    turns = report_turns(read_report(report))
    path = report.with_name("report.audit.json")
    anna, ben = (open_audit(path, turns, {}) for _ in range(2))
    ben.say("ben", {"q001": "changes"})
    anna.save()
    assert saved(report)["judges"] == {"ben": {"q001": "changes"}}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_sheet_there_and_back(audit: Audit, report: Path, tmp_path: Path, suffix: str) -> None:
    sheet = tmp_path / f"sheet.{suffix}"
    status, out, _ = audit("--decoys", "5", "--sheet", str(sheet))
    assert status == 0
    assert str(sheet) in out
    text = sheet.read_text("utf-8")
    assert not {"violation", "negation", "dropped"} & set(text.replace('"', " ").split())
    assert '"perturbed"' in text or "perturbed,changes,sample,verdict" in text
    if suffix == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        rows = [{**row, "verdict": "Keeps "} for row in rows]
        filled = io.StringIO()
        writer = csv.DictWriter(filled, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        sheet.write_text("\ufeff" + filled.getvalue(), encoding="utf-8")
    else:
        sheet.write_text(text.replace('"verdict": ""', '"verdict": "keeps"'), encoding="utf-8")
    # The sample of the sheet is the sample of the audit from now on.
    _, out, _ = audit("--judgements", str(sheet))
    assert "10 of 10 violations keep the meaning = precision 100.0 %" in out
    assert len(saved(report)["judges"]["judge"]) == 15


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_what_was_judged_can_be_shown_without_what_was_said(
    audit: Audit, report: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"judged.{suffix}"
    draw = ("--decoys", "5", "--fine-decoys", "3")
    assert "a judge must answer all rows first" in audit(*draw, "--export", str(path))[2]
    audit("--judge", "anna", typed="k" * 17)
    assert "a judge must answer" in audit("--export", str(path))[2]
    assert not path.exists()
    audit("--judge", "anna", typed="c")
    audit("--judge", "ben", typed="c")
    status, out, _ = audit("--export", str(path))
    assert status == 0
    assert out.endswith(f"{path}\n")
    text = path.read_text("utf-8")
    if suffix == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
    else:
        rows = [json.loads(line) for line in text.splitlines()]
    key = saved(report)["sample"]["key"]
    assert {row["id"]: row["kind"] for row in rows} == {
        name: entry["kind"] for name, entry in key.items()
    }
    assert sorted(row["verdict anna"] for row in rows) == ["changes", *["keeps"] * 17]
    assert sorted(row["verdict ben"] for row in rows) == [*[""] * 17, "changes"]
    assert all(row["edits"] and row["turn"] in key[row["id"]]["turn"] for row in rows)
    # No four words in a row of any turn, and no utterance.
    said = [turn["user"].split() for turn in json.loads(report.read_text("utf-8"))["turns"]]
    runs = {" ".join(words[at : at + 4]) for words in said for at in range(len(words) - 3)}
    assert not [run for run in runs if run in text]


def test_the_file_does_not_depend_on_the_order_of_answers(audit: Audit, report: Path) -> None:
    audit(typed="k" * 10)
    told = report.with_name("report.audit.json").read_bytes()
    names = list(saved(report)["judges"]["judge"])
    report.with_name("report.audit.json").unlink()
    for half in (names[5:], names[:5]):
        lines = [json.dumps({"id": name, "verdict": "keeps"}) for name in half]
        report.with_name("j.jsonl").write_text("\n".join(lines))
        audit("--judgements", str(report.with_name("j.jsonl")))
    assert report.with_name("report.audit.json").read_bytes() == told


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("{", "line 1 is not valid JSON"),
        ("[1]", "line 1: [1] instead of an object"),
        ('{"id": 1, "verdict": "keeps"}', "line 1: needs an 'id' and a 'verdict'"),
        ('{"id": "q999", "verdict": "keeps"}', "'q999', which is not in the sample"),
        ('{"id": "q001", "verdict": "same"}', "must be keeps or changes, not 'same'"),
        ('{"id": "q001", "verdict": "keeps"}\n' * 2, "line 2: 'q001' is judged twice"),
        ('{"id": "q001", "sample": "0", "verdict": "keeps"}', "is a row of another sample"),
    ],
)
def test_bad_judgements(audit: Audit, tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "judged.jsonl"
    path.write_text(lines)
    status, _, errors = audit("--judgements", str(path))
    assert status == 2
    assert message in errors
    assert errors.count("\n") == 1


def test_other_mistakes(audit: Audit, report: Path, tmp_path: Path) -> None:
    assert "must end in .csv or .jsonl" in audit("--sheet", "sheet.txt")[2]
    assert "--decoys: '-1' must be a whole number" in audit("--decoys", "-1")[2]
    assert "did you mean --judge?" in audit("--jugde", "anna")[2]
    assert "--judge needs a name" in audit("--judge", " ")[2]
    assert "cannot read" in audit("--judgements", str(tmp_path / "none.csv"))[2]
    # Nobody has judged anything yet.
    assert audit("--seed", "2")[0] == audit("--seed", "0")[0] == 0
    audit(typed="k")
    assert (
        "contains judgements of another sample (violations 200, per-dialogue 1"
        in (audit("--seed", "1")[2])
    )
    written = report.with_name("report.audit.json")
    written.write_text('{"schema_version": 1, "sample": {}}')
    assert "report.audit.json is not an audit: lacks 'judges'" in audit()[2]
    # Of a later release, whatever it may hold.
    written.write_text('{"schema_version": 2, "drawn": {}}')
    assert "has the schema version 2, but this package reads 1: update" in audit()[2]


def test_what_was_said_has_to_be_in_the_report(audit: Audit, report: Path) -> None:
    content = json.loads(report.read_text("utf-8"))
    content["settings"]["redact"] = True
    report.write_text(json.dumps(content), encoding="utf-8")
    status, _, errors = audit(typed="k")
    assert status == 2
    assert "was written with --dst-redact" in errors
    assert not report.with_name("report.audit.json").exists()


def test_csv_that_is_none(audit: Audit, tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text('id,verdict\n"q1"x,keeps\n')
    assert "judged.csv, line 2: " in audit("--judgements", str(path))[2]
    path.write_bytes(b"id,verdict\n\xff,keeps\n")
    assert "it is not UTF-8 text" in audit("--judgements", str(path))[2]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_terminal_takes_single_keys_and_an_interrupt_loses_nothing(report: Path) -> None:
    import pty  # noqa: PLC0415 - there is none elsewhere
    import termios  # noqa: PLC0415 - likewise

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest_dstfuzz.cli", "audit", str(report)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = b""

    def until(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            seen += os.read(ours, 4096)
        seen = seen.partition(text)[2]

    try:
        for key, place in ((b"k", b"--- 1 of 10"), (b"c", b"--- 2 of 10")):
            until(place)
            until(b"q quit > ")
            # What is typed before it listens is dropped.
            while termios.tcgetattr(ours)[3] & termios.ICANON:
                time.sleep(0.01)
            os.write(ours, key)
        until(b"--- 3 of 10")
        until(b"q quit > ")
        process.send_signal(2)
        until(b"every answer is saved")
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert sorted(saved(report)["judges"]["judge"].values()) == ["changes", "keeps"]
