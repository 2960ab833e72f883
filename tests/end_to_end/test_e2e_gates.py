"""Limits and baselines: what a build is compared with, the verdict, and the exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from seaside import KINDS, STATES, VIOLATIONS, BotKind
from user_runs import Done, body, run_pytest

pytest.importorskip("scipy")

COMPARED = ("--dst-baseline=baseline.json", "--dst-report=report.json")


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> BotKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def known(kind: BotKind, new_folder: Callable[[], Path]) -> Done:
    """A folder with the baseline of the sturdy bot, and the run that wrote it."""
    return run_pytest(new_folder(), *kind.run_options("sturdy"), *COMPARED, "--dst-update-baseline")


@pytest.fixture(scope="module")
def worse(kind: BotKind, known: Done) -> Done:
    """The run of the weak bot, compared with that baseline."""
    return run_pytest(known.folder, *kind.run_options(), *COMPARED, "--junitxml=junit.xml")


def gate(done: Done) -> Any:
    return done.json()["gate"]


def findings(done: Done) -> dict[str, str]:
    """Return the verdict of each limit of the session."""
    return {one["gate"]: one["verdict"] for one in gate(done)["findings"] if not one["part"]}


def test_a_baseline_is_written_and_judges_nothing(known: Done) -> None:
    assert known.status == 0
    assert gate(known) is None
    assert (known.folder / "baseline.json").is_file()


def test_the_same_build_passes(kind: BotKind, known: Done) -> None:
    before = known.text("baseline.json")
    done = run_pytest(known.folder, *kind.run_options("sturdy"), *COMPARED)
    assert (done.status, gate(done)["verdict"]) == (0, "pass")
    assert gate(done)["comparison"]["difference"] == 0
    assert gate(done)["comparison"]["share"] == 1
    assert gate(done)["comparison"]["clean"]["changed"] == []
    assert known.text("baseline.json") == before


def test_a_build_that_breaks_more_is_a_regression(kind: BotKind, worse: Done) -> None:
    assert worse.status == 1
    assert gate(worse)["verdict"] == "regression"
    assert findings(worse) == {
        "max-clean-drift": "pass",
        "max-regression": "regression",
        "max-new-violations": "regression",
    }
    comparison = gate(worse)["comparison"]
    new = VIOLATIONS[kind.name]
    assert len(comparison["new_violations"]) == new
    assert comparison["after"] == worse.json()["summary"]["failure_rate"]
    rise = comparison["after"] - comparison["before"]
    assert comparison["difference"] == pytest.approx(rise, abs=2e-4)
    low, high = comparison["interval"]
    assert 0 < low < comparison["difference"] < high
    assert comparison["weaknesses"]["new"]


def test_a_gate_fails_no_test_of_a_turn(worse: Done) -> None:
    suite = ET.fromstring(worse.text("junit.xml")).find("testsuite")  # noqa: S314 - ours
    assert suite is not None
    failed = [
        case.attrib["name"] for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    assert not [name for name in failed if "-test-" in name]
    verdicts = {item.attrib["name"]: item.attrib["value"] for item in suite.iter("property")}
    assert verdicts["dst_verdict"] == "regression"


def test_other_clean_answers_are_drift(kind: BotKind, known: Done) -> None:
    done = run_pytest(known.folder, *kind.run_options(kind.other), *COMPARED)
    assert (done.status, gate(done)["verdict"]) == (8, "drift")
    clean = gate(done)["comparison"]["clean"]
    assert len(clean["changed"]) == {"state": 6, "reply": 9, "tool-calls": 8}[kind.name]
    assert {answer["turn"] for answer in clean["answers"]} == set(clean["changed"])


def test_another_campaign_is_not_compared(kind: BotKind, known: Done) -> None:
    done = run_pytest(known.folder, *kind.run_options("sturdy"), *COMPARED, "--dst-seed=1")
    assert (done.status, gate(done)["verdict"]) == (9, "not-compared")
    assert len(gate(done)["not_compared"]) == 1


def test_a_build_that_breaks_less_passes(folder: Path) -> None:
    run_pytest(folder, *STATES.run_options(), *COMPARED, "--dst-update-baseline")
    done = run_pytest(folder, *STATES.run_options("sturdy"), *COMPARED)
    assert (done.status, gate(done)["verdict"]) == (0, "pass")
    comparison = gate(done)["comparison"]
    assert comparison["difference"] == round(-VIOLATIONS["state"] / 75, 4)
    assert len(comparison["gone_violations"]) == VIOLATIONS["state"]
    assert comparison["new_violations"] == []
    fixed = {one["id"].split(":")[0] for one in comparison["weaknesses"]["fixed"]}
    assert fixed == {
        "misspelt-value-lost-or-changed",
        "slip-in-key-word-value-wrong",
        "slip-in-unrelated-word-value-lost",
    }


def test_a_baseline_is_the_same_bytes_however_it_is_made(kind: BotKind, known: Done) -> None:
    again = ("--dst-baseline=again.json", "--dst-update-baseline", "--dst-batch-size=2")
    run_pytest(known.folder, *kind.run_options("sturdy"), *again, "--dst-cache=no")
    assert body(known.folder, "again.json") == body(known.folder, "baseline.json")


@pytest.mark.parametrize(
    ("bot", "limits", "status", "verdict"),
    [
        ("fragile", ["--dst-max-failure-rate=45.4%"], 0, "pass"),
        ("fragile", ["--dst-max-failure-rate=45.3%"], 1, "regression"),
        ("fragile", ["--dst-max-failure-rate=50%", "--dst-fail-on=violation"], 1, "pass"),
        ("forgetful", ["-odst_min_accuracy=60%"], 0, "pass"),
        ("forgetful", ["-odst_min_accuracy=61%"], 1, "regression"),
        ("fragile", ["--dst-fail-on=gate"], 0, None),
        ("tired", ["--dst-max-failure-rate=50%"], 1, "infrastructure"),
    ],
)
def test_a_limit_decides_by_the_figure_of_the_run(
    folder: Path, bot: str, limits: list[str], status: int, verdict: str | None
) -> None:
    done = run_pytest(folder, *STATES.run_options(bot), "--dst-report=report.json", *limits)
    found = gate(done)
    assert (done.status, found and found["verdict"]) == (status, verdict)


@pytest.mark.parametrize(
    ("table", "status"),
    [
        ('[tool.dstfuzz.gates.slot."meal-kind"]\nmax-failure-rate = "5%"', 1),
        ('[tool.dstfuzz.gates.slot."room-view"]\nmax-failure-rate = "60%"', 0),
        ('[tool.dstfuzz.gates.domain.room]\nmax-failure-rate = "5%"', 1),
        ('[tool.dstfuzz.gates.transformation.word_insert]\nmax-failure-rate = "90%"', 0),
        ('[tool.dstfuzz.gates]\nmax-failure-rate = "5%"', 1),
    ],
)
def test_a_part_of_the_session_has_a_limit_in_the_file(
    fresh: Path, table: str, status: int
) -> None:
    (fresh / "pyproject.toml").write_text(table + "\n", encoding="utf-8")
    done = run_pytest(fresh, *STATES.run_options(), "--dst-report=report.json")
    assert done.status == status
    (found,) = gate(done)["findings"]
    assert found["verdict"] == ("regression" if status else "pass")


FEW = ("--dst-turns=3", "--dst-baseline=few.json", "--dst-report=report.json")


@pytest.fixture(scope="module")
def few(new_folder: Callable[[], Path]) -> Path:
    """A folder with a baseline of three turns."""
    folder = new_folder()
    run_pytest(folder, *STATES.run_options("sturdy"), *FEW, "--dst-update-baseline")
    return folder


@pytest.mark.parametrize(("policy", "status"), [("warn", 0), ("fail", 7), ("allow", 0)])
def test_few_dialogues_decide_nothing(few: Path, policy: str, status: int) -> None:
    loose = (f"-odst_inconclusive={policy}", "-odst_max_new_violations=100")
    done = run_pytest(few, *STATES.run_options(), *FEW, *loose)
    assert (done.status, gate(done)["verdict"]) == (status, "inconclusive")
    assert findings(done)["max-regression"] == "inconclusive"


def test_a_bot_that_is_not_there_is_no_verdict_on_it(folder: Path) -> None:
    options = ("--dst-baseline=none.json", "--dst-report=dead.json")
    run_pytest(folder, *STATES.run_options("sturdy"), *options, "--dst-update-baseline")
    assert run_pytest(folder, *STATES.run_options("dead"), *options).status == 6
    assert run_pytest(folder, *STATES.run_options("dead")).status == 4
    done = run_pytest(folder, *STATES.run_options("tired"), *options)
    assert (done.status, done.json("dead.json")["gate"]["verdict"]) == (6, "infrastructure")
