"""Remembered violations of each kind: asked again, accepted, retired, made into plain tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seaside import KINDS, STATES, BotKind
from user_runs import Done, run_command, run_pytest

REPORT = ("--dst-report=report.json",)
#: How many lines each run remembers: at most five of one weakness.
REMEMBERED = {"state": 13, "reply": 5, "tool-calls": 15}


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> BotKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def found(kind: BotKind, new_folder: Callable[[], Path]) -> Done:
    """The run that remembers the violations of the weak bot."""
    return run_pytest(new_folder(), *kind.run_options(), *REPORT, "--dst-remember")


@pytest.fixture(scope="module")
def again(kind: BotKind, found: Done) -> Done:
    """The next run of the same bot."""
    return run_pytest(found.folder, *kind.run_options(), "--dst-report=again.json")


def lines(folder: Path, kind: BotKind) -> list[Any]:
    """Return what is remembered, a line each."""
    text = (folder / ".dstfuzz" / "regressions" / kind.data).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def asked_again(done: Done, report: str = "report.json") -> dict[str, tuple[str, str]]:
    """Return status and outcome of the remembered violations of a run."""
    return {one["id"]: (one["status"], one["outcome"]) for one in done.json(report)["regressions"]}


@pytest.fixture
def corpus(kind: BotKind, found: Done, fresh: Path) -> Path:
    """A folder of its own for a test that changes what is remembered."""
    path = Path(".dstfuzz") / "regressions" / kind.data
    (fresh / path).parent.mkdir(parents=True)
    (fresh / path).write_bytes((found.folder / path).read_bytes())
    return fresh


def test_violations_are_remembered_a_line_each(kind: BotKind, found: Done) -> None:
    rows = lines(found.folder, kind)
    assert len(rows) == REMEMBERED[kind.name]
    assert [row["id"] for row in rows] == sorted({row["id"] for row in rows})
    weaknesses = {weakness["id"] for weakness in found.json()["weaknesses"]}
    assert {row["weakness"] for row in rows} == weaknesses
    assert {row["status"] for row in rows} == {"open"}
    broken = {turn["id"] for turn in found.json()["turns"] if turn["outcome"] == "violation"}
    assert {row["turn"] for row in rows} <= broken


def test_they_fail_while_they_are_there(kind: BotKind, found: Done, again: Done) -> None:
    assert again.status == 1
    names = [row["id"] for row in lines(found.folder, kind)]
    assert asked_again(again, "again.json") == dict.fromkeys(names, ("open", "broken"))
    for name in names:
        assert f"regression[{name}]" in again.printed


def test_remembering_again_adds_nothing(kind: BotKind, corpus: Path) -> None:
    before = (corpus / ".dstfuzz" / "regressions" / kind.data).read_text(encoding="utf-8")
    run_pytest(corpus, *kind.run_options(), "--dst-remember")
    after = (corpus / ".dstfuzz" / "regressions" / kind.data).read_text(encoding="utf-8")
    assert after == before


def test_what_is_fixed_is_named_and_retired(kind: BotKind, corpus: Path) -> None:
    names = [row["id"] for row in lines(corpus, kind)]
    done = run_pytest(corpus, *kind.run_options("sturdy"), *REPORT)
    assert done.status == 0
    assert asked_again(done) == dict.fromkeys(names, ("open", "fixed"))
    named = [name for name in names if name in done.printed]
    assert len(named) >= min(len(names), 10)  # A long list is cut off.
    retired = run_command(corpus, "retire", *names[1:])
    assert retired.status == 0
    assert [row["id"] for row in lines(corpus, kind)] == names[:1]


def test_one_is_asked_for_alone(kind: BotKind, found: Done) -> None:
    name = lines(found.folder, kind)[0]["id"]
    done = run_pytest(found.folder, *kind.run_options(), f"--dst-replay={name}")
    assert done.status == 1
    assert "1 failed" in done.printed


def test_the_commands_list_and_show_them(kind: BotKind, found: Done) -> None:
    rows = lines(found.folder, kind)
    listed = run_command(found.folder, "regressions")
    assert listed.status == 0
    assert all(row["id"] in listed.printed and row["turn"] in listed.printed for row in rows)
    shown = run_command(found.folder, "regressions", rows[0]["id"])
    for exchange in rows[0]["dialogue"]:
        assert exchange["user"] in shown.printed
        assert exchange.get("seen", exchange["user"]) in shown.printed
    assert rows[1]["id"] not in shown.printed


def test_an_accepted_one_fails_nothing(kind: BotKind, corpus: Path) -> None:
    first, second = lines(corpus, kind)[:2]
    done = run_command(corpus, "accept", first["id"], "--reason", "nobody says this")
    assert done.status == 0
    kept = {row["id"]: row for row in lines(corpus, kind)}
    assert (kept[first["id"]]["status"], kept[first["id"]]["reason"]) == (
        "accepted",
        "nobody says this",
    )
    assert kept[second["id"]]["status"] == "open"
    for name, status in ((first["id"], 0), (second["id"], 1)):
        done = run_pytest(corpus, *kind.run_options(), "-k", f"regression and {name}")
        assert done.status == status


def test_an_accepted_weakness_fails_no_turn(kind: BotKind, corpus: Path) -> None:
    for weakness in sorted({row["weakness"] for row in lines(corpus, kind)}):
        assert run_command(corpus, "accept", weakness, "--reason", "we ask back").status == 0
    done = run_pytest(corpus, *kind.run_options(), *REPORT)
    assert done.status == 0
    assert {weakness["accepted"] for weakness in done.json()["weaknesses"]} == {"we ask back"}
    # Rates count them all the same.
    assert done.json()["summary"]["violations"] > 0


def test_one_becomes_a_plain_test(kind: BotKind, corpus: Path) -> None:
    name = lines(corpus, kind)[0]["id"]
    written = run_command(corpus, "promote", name, "-o", "test_promoted.py")
    assert written.status == 0
    test = f"test_promoted.py::{_name_of_test(corpus / 'test_promoted.py')}"
    assert name in test
    for bot, status in ((kind.weak, 1), ("sturdy", 0)):
        done = run_pytest(corpus, test, *kind.run_options(bot))
        assert done.status == status
        assert ("FAILED test_promoted.py" in done.printed) == (status == 1)


def _name_of_test(path: Path) -> str:
    (name,) = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return str(name)


def test_a_gate_does_not_count_remembered_ones_as_failed(kind: BotKind, found: Done) -> None:
    gated = ("--dst-max-failure-rate=80%", "--dst-report=gated.json")
    done = run_pytest(found.folder, *kind.run_options(), *gated)
    assert (done.status, done.json("gated.json")["gate"]["verdict"]) == (0, "pass")
    assert set(asked_again(done, "gated.json").values()) == {("open", "broken")}


def test_nothing_is_remembered_unless_asked(folder: Path) -> None:
    run_pytest(folder, *STATES.run_options())
    assert not (folder / ".dstfuzz").exists()


@pytest.mark.parametrize("words", [["retire", "ffff"], ["accept", "ffff", "--reason", "x"]])
def test_an_id_that_is_not_there_is_a_mistake(folder: Path, words: list[str]) -> None:
    done = run_command(folder, *words)
    assert done.status == 2
