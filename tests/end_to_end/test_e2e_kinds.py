"""One run of a bot of each kind, and what users see of it: report, status and files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from seaside import KINDS, OUTCOMES, QUESTIONS, REQUESTS, STATES, STAYS, BotKind
from user_runs import (
    Done,
    body,
    changed,
    outcomes,
    run_apart,
    run_command,
    run_pytest,
    variants,
    violations,
)

pytest.importorskip("jinja2")

ALL_FILES = ("--dst-report=report.json", "--dst-report=page.html", "--junitxml=junit.xml")
#: Findings of each run. Noise models, lexicon, reader and seeds decide them, see `OUTCOMES`.
BROKEN = {
    "state": {
        "stays-test-anna-t0": [0, 1, 3, 4],
        "stays-test-ben-t1": [1, 2, 3, 4],
        "stays-test-carla-t0": [2, 4],
        "stays-test-carla-t1": [0, 1, 3],
        "stays-test-dan-t0": [0, 1, 2, 4],
        "stays-test-eve-t1": [1],
        "stays-test-finn-t0": [0, 1, 2, 3, 4],
        "stays-test-finn-t1": [0, 4],
        "stays-test-gita-t0": [0, 3, 4],
        "stays-test-hal-t0": [0, 2, 3, 4],
        "stays-test-hal-t1": [1, 2],
    },
    "reply": {
        "questions-test-anna-t1": [4],
        "questions-test-ben-t0": [3],
        "questions-test-carla-t0": [2, 4],
        "questions-test-dan-t1": [2],
        "questions-test-eve-t0": [0, 2, 3],
        "questions-test-finn-t0": [2, 4],
        "questions-test-gita-t0": [2],
    },
    "tool-calls": {
        "requests-test-anna-t0": [0, 2, 4],
        "requests-test-ben-t0": [3],
        "requests-test-ben-t1": [0, 1, 4],
        "requests-test-carla-t0": [0, 1, 2, 3, 4],
        "requests-test-dan-t0": [0, 2],
        "requests-test-eve-t0": [2],
        "requests-test-finn-t0": [0, 1, 3],
        "requests-test-gita-t0": [0, 1, 2, 4],
    },
}
WEAKNESSES = {
    "state": {
        "misspelt-value-lost-or-changed": 21,
        "slip-in-key-word-value-wrong": 10,
        "slip-in-unrelated-word-value-lost": 3,
    },
    "reply": {"fallback-instead-of-answer": 11},
    "tool-calls": {
        "call-dropped:book_room": 11,
        "call-dropped:cancel_room": 6,
        "different-tool-called:cancel_room": 3,
        "argument-dropped:book_room.balcony": 2,
    },
}
CHANGED = {
    "state": {"room-day", "room-size", "room-view", "meal-kind"},
    "reply": {"reply"},
    "tool-calls": {
        "book_room[0].balcony",
        *("book_room[0].day", "book_room[0].guests", "cancel_room[0].day"),
    },
}


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> BotKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def done(kind: BotKind, new_folder: Callable[[], Path]) -> Done:
    """The run of the weak bot, with all files that it can write."""
    folder = new_folder()
    summary = folder / "summary.md"
    summary.touch()
    return run_pytest(
        folder,
        *kind.run_options(),
        *ALL_FILES,
        "--dst-annotations=yes",
        env={"GITHUB_STEP_SUMMARY": str(summary)},
    )


@pytest.fixture(scope="module")
def report(done: Done) -> Any:
    return done.json()


def broken(report: Any) -> Iterator[Any]:
    return (variant for _, variant in variants(report) if variant["outcome"] == "violation")


def test_violations_fail_the_run(done: Done) -> None:
    assert done.status == 1


def test_the_outcomes_are_those_of_this_seed(kind: BotKind, report: Any) -> None:
    assert outcomes(report) == OUTCOMES[kind.name]


def test_the_violations_are_those_of_this_seed(kind: BotKind, report: Any) -> None:
    expected = [f"{turn}-v{index}" for turn, all_ in BROKEN[kind.name].items() for index in all_]
    assert violations(report) == expected


def test_the_summary_counts_what_the_turns_say(report: Any) -> None:
    summary, found = report["summary"], Counter(outcomes(report))
    counts = ("held", "violations", "carried", "improved", "errors")
    assert summary["valid"] == sum(summary[name] for name in counts)
    assert summary["violations"] == found["violation"]
    assert summary["generated"] == sum(found.values())
    assert summary["failure_rate"] == round(found["violation"] / summary["valid"], 4)
    low, high = summary["failure_rate_interval"]
    assert 0 < low < summary["failure_rate"] < high < 1
    broken_turns = [turn for turn in report["turns"] if turn["outcome"] == "violation"]
    assert summary["turns_broken"] == len(broken_turns) > 0
    assert summary["dialogues_tested"] == len({turn["dialogue_id"] for turn in report["turns"]})


def test_the_ledger_adds_up_to_the_summary(report: Any) -> None:
    total, summary = report["ledger"]["total"], report["summary"]
    for name in ("generated", "valid", "held", "violations", "carried"):
        assert total[name] == summary[name]
    operators = Counter[str]()
    for row in report["ledger"]["operators"]:
        operators[row["transformation"]] += row["generated"]
    assert set(operators) == set(report["ledger"]["transformations"])
    assert sum(report["ledger"]["causes"].values()) == summary["violations"]


def test_the_report_has_its_keys(kind: BotKind, report: Any) -> None:
    assert set(report) >= {
        *("schema_version", "tool", "summary", "gate", "settings", "data", "outcome", "ledger"),
        *("relations", "weaknesses", "regressions", "turns", "run"),
    }
    assert report["outcome"]["kind"] == kind.name
    assert report["settings"]["seed"] == 0
    assert report["gate"] is None
    assert list(report)[-1] == "run"


def test_each_turn_of_the_data_is_tested(kind: BotKind, report: Any) -> None:
    asked = {
        "state": [user for turns in STAYS.values() for _, user, _ in turns],
        "reply": [user for users in QUESTIONS.values() for user in users],
        "tool-calls": [user for requests in REQUESTS.values() for user, _ in requests],
    }[kind.name]
    assert [turn["user"] for turn in report["turns"]] == asked
    assert all(len(turn["variants"]) == 5 for turn in report["turns"])


def test_clean_answers_are_right_by_the_labels(kind: BotKind, report: Any) -> None:
    summary = report["summary"]
    assert summary["clean_answered"] == len(report["turns"])
    assert summary["clean_accuracy"] == (None if kind.name == "reply" else 1.0)
    labels = [turn["label"] for turn in report["turns"]]
    states = [turn["clean_state"] for turn in report["turns"]]
    assert all(states)
    assert labels == (states if kind.name != "reply" else [None] * len(states))


def test_violations_name_what_changed(kind: BotKind, report: Any) -> None:
    found = set().union(*(changed(variant) for variant in broken(report)))
    # A call itself comes and goes with its arguments.
    assert {name for name in found if not name.endswith("]")} == CHANGED[kind.name]
    for variant in broken(report):
        for before, after in changed(variant).values():
            assert before != after


def test_changes_are_those_of_the_answers(report: Any) -> None:
    for turn, variant in variants(report):
        if variant["outcome"] != "violation":
            continue
        for name, (before, after) in changed(variant).items():
            assert turn["clean_state"].get(name) == before
            assert variant["state"].get(name) == after


def test_edits_lead_from_the_turn_to_the_variant(report: Any) -> None:
    for turn, variant in variants(report):
        text = turn["user"]
        for edit in variant["edits"]:
            assert text[edit["start"] : edit["end"]] == edit["before"]
            text = text[: edit["start"]] + edit["after"] + text[edit["end"] :]
        assert text == variant["text"]


def test_minimal_violations_need_fewer_edits(kind: BotKind, report: Any) -> None:
    sizes = [(len(one["minimal"]["edits"]), len(one["edits"])) for one in broken(report)]
    assert all(1 <= minimal <= found for minimal, found in sizes)
    assert any(minimal < found for minimal, found in sizes)
    if kind.name != "tool-calls":  # Where two edits name another tool, one may drop the call.
        for variant in broken(report):
            assert changed(variant["minimal"]).keys() <= changed(variant).keys()


def test_weaknesses_hold_each_violation_once(kind: BotKind, report: Any) -> None:
    found = {weakness["id"]: weakness["count"] for weakness in report["weaknesses"]}
    assert found == WEAKNESSES[kind.name]
    members = [member for weakness in report["weaknesses"] for member in weakness["members"]]
    assert sorted(members) == sorted(violations(report))
    for weakness in report["weaknesses"]:
        assert weakness["example"]["id"] in weakness["members"]


def test_junit_has_a_failure_for_each_broken_turn(done: Done, report: Any) -> None:
    suite = ET.fromstring(done.text("junit.xml")).find("testsuite")  # noqa: S314 - ours
    assert suite is not None
    assert int(suite.attrib["failures"]) == report["summary"]["turns_broken"]
    assert int(suite.attrib["tests"]) == report["summary"]["turns"]
    known = {
        item.attrib["name"]: item.attrib["value"] for item in suite.iterfind("properties/property")
    }
    assert float(known["dst_failure_rate"]) == report["summary"]["failure_rate"]
    assert int(known["dst_violations"]) == report["summary"]["violations"]
    assert known["dst_verdict"] == "violation"


def test_the_page_stands_alone_and_knows_the_turns(done: Done, report: Any) -> None:
    page = done.text("page.html")
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    for turn in report["turns"]:
        assert turn["id"] in page or turn["outcome"] == "held"
    for weakness in report["weaknesses"]:
        assert weakness["id"] in page


def test_the_job_summary_and_annotations_are_written(done: Done, report: Any) -> None:
    summary = done.text("summary.md")
    rate = f"{100 * report['summary']['failure_rate']:.2f}"
    assert rate in summary
    assert [line for line in done.printed.splitlines() if line.startswith("::error ")]


def test_page_and_summary_are_made_again_from_the_report(done: Done) -> None:
    again = run_command(
        done.folder, "report", "report.json", "--html", "again.html", "--markdown", "again.md"
    )
    assert again.status == 0
    assert done.text("again.html") == done.text("page.html")
    assert done.text("again.md") == done.text("summary.md")


def test_the_terminal_has_the_figures(done: Done, report: Any) -> None:
    summary = report["summary"]
    broken, tested = summary["turns_broken"], summary["turns_tested"]
    assert f"verdict       failed: {broken} of {tested} tested turns" in done.printed
    for weakness in report["weaknesses"]:
        assert weakness["description"].split(":")[0].split()[0] in done.printed
    assert re.search(rf"\b{summary['turns_broken']} failed\b", done.printed)


def test_by_default_a_sample_estimates_and_a_search_finds(kind: BotKind, folder: Path) -> None:
    options = [one for one in kind.run_options() if "search" not in one]
    done = run_pytest(folder, *options, "--dst-report=report.json", "--dst-variants=10")
    report = done.json()
    assert report["settings"]["search"] == "noise+random"
    found = [variant for _, variant in variants(report)]
    sample = [variant for variant in found if variant["weight"] is not None]
    assert 0 < len(sample) < len(found)
    assert report["summary"]["estimated_failures"] is not None
    screen = done.printed[done.printed.rindex(" dstfuzz ==") :]
    assert len(screen.splitlines()) <= 30


def test_batches_of_another_size_give_the_same_bytes(kind: BotKind, done: Done) -> None:
    small = ("--dst-report=small.json", "--dst-cache=no", "--dst-batch-size=3")
    run_pytest(done.folder, *kind.run_options(), *small)
    # The size of a batch is a setting.
    assert without_settings(done.folder, "small.json") == without_settings(done.folder)


def test_workers_in_other_processes_give_the_same_bytes(folder: Path) -> None:
    pytest.importorskip("xdist")
    run_pytest(folder, *STATES.run_options(), "--dst-report=alone.json")
    workers = ("--dst-report=workers.json", "--dst-cache=no", "-n2")
    again = run_apart(folder, *STATES.run_options(), *workers)
    assert again.status == 1
    assert body(folder, "workers.json") == body(folder, "alone.json")


def without_settings(folder: Path, name: str = "report.json") -> list[str]:
    return [line for line in body(folder, name) if not line.startswith('"settings": ')]
