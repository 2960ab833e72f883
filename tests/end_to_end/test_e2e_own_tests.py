"""Suites of users: tests, markers, fixtures, and what they register in a conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from seaside import CALLS, REPLIES, STATES, VIOLATIONS
from user_runs import Done, outcomes, run_apart, run_pytest, variants, violations

DATA = ("--dst-data=stays.jsonl", "--dst-report=report.json")

SUITE = """
import pytest
import statebot


@pytest.fixture(scope="session")
def dst_model():
    return statebot.fragile


@pytest.mark.dst(variants=2, seed=0)
def test_two_variants(dst_turn):
    assert len(dst_turn.result.variants) == 2
    dst_turn.assert_unchanged()


@pytest.mark.dst(edits="emoji,misspelling", validity="strict")
def test_some_edits(dst_turn):
    names = {edit.operator for variant in dst_turn.result.variants for edit in variant.edits}
    assert names <= {"emoji", "misspelling"}


@pytest.mark.dst(relation="value-swap")
def test_the_state_follows(dst_turn):
    dst_turn.assert_changes()


def test_the_view_survives(dst_turn):
    broken = [
        variant.index
        for variant in dst_turn.result.violations
        if any(change.slot == "room-view" for change in variant.changed_slots)
    ]
    assert not broken
    assert dst_turn.turn.user in [turn.user for turn in dst_turn.dialogue.turns]


def test_last(dst_report):
    assert dst_report.summaries()


def test_of_something_else():
    assert True
"""


@pytest.fixture(scope="module")
def suite(new_folder: Callable[[], Path]) -> Done:
    """A run of a suite with a fixture for the bot, markers and a test of something else."""
    folder = new_folder()
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return run_pytest(folder, *DATA, "-v")


def result(done: Done, test: str) -> dict[str, int]:
    """Count how the items of a test ended."""
    words = ("PASSED", "FAILED", "SKIPPED", "XFAIL")
    lines = [line for line in done.printed.splitlines() if f"::{test}" in line]
    return {word: n for word in words if (n := sum(f" {word} " in f"{line} " for line in lines))}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("test_some_edits", {"PASSED": 15}),
        ("test_the_state_follows", {"PASSED": 9, "SKIPPED": 6}),
        ("test_the_view_survives", {"PASSED": 13, "FAILED": 2}),
        ("test_last", {"PASSED": 1}),
        ("test_of_something_else", {"PASSED": 1}),
    ],
)
def test_each_test_has_an_item_for_each_turn(
    suite: Done, test: str, expected: dict[str, int]
) -> None:
    assert result(suite, test) == expected


def test_the_marker_sets_the_variants_of_one_test(suite: Done) -> None:
    found = result(suite, "test_two_variants")
    assert sum(found.values()) == 15
    assert found["FAILED"] > 0
    assert suite.status == 1


def test_the_suite_of_the_plugin_is_not_added(suite: Done) -> None:
    assert "dstfuzz::test_" not in suite.printed


TWO_BOTS = """
import pytest
import statebot


@pytest.fixture(scope="session", params=["fragile", "sturdy"])
def dst_model(request):
    return getattr(statebot, request.param)


def test_each(dst_turn):
    dst_turn.assert_unchanged()
"""


def test_each_bot_has_figures_of_its_own(fresh: Path) -> None:
    (fresh / "test_two.py").write_text(TWO_BOTS, encoding="utf-8")
    done = run_pytest(fresh, *DATA, "--dst-max-failure-rate=10%", "--dst-search=random")
    models = {model["name"]: model for model in done.json()["models"]}
    rates = [models[name]["summary"]["failure_rate"] for name in sorted(models)]
    assert rates == [round(VIOLATIONS["state"] / 75, 4), 0.0]
    assert [models[name]["gate"]["verdict"] for name in sorted(models)] == ["regression", "pass"]
    assert (done.status, done.json()["gate"]["verdict"]) == (1, "regression")


REGISTERED = """
from pytest_dstfuzz import register_relation, register_search, register_tracker
import other_day
import shorthand
import statebot
import vowel_search


def create(lost="nothing"):
    def track(context):
        state = statebot.sturdy(context)
        state.pop(lost, None)
        return state

    return track


register_tracker("guest-book", create)
register_search("vowels", vowel_search.VowelSearch)
register_relation(other_day.OtherDay)
"""
EXTENSION = Path(__file__).parents[2] / "examples" / "extension"


@pytest.fixture(scope="module")
def extended(new_folder: Callable[[], Path]) -> Path:
    """A folder whose conftest.py registers a bot, a search, a relation and an operator."""
    folder = new_folder()
    (folder / "conftest.py").write_text(REGISTERED, encoding="utf-8")
    for name in ("other_day.py", "shorthand.py", "vowel_search.py"):
        (folder / name).write_bytes((EXTENSION / name).read_bytes())
    return folder


# In processes of their own: what a suite registers stays for as long as a process lives.
def test_a_bot_and_a_search_of_a_suite_are_used(extended: Path) -> None:
    own = ("--dst-model=guest-book", "--dst-tracker=lost=meal-kind", "--dst-search=vowels")
    done = run_apart(extended, *own, *DATA)
    assert done.status == 0
    assert done.json()["settings"]["search"] == "vowels"
    assert done.json()["summary"]["clean_accuracy"] == 0.6
    assert done.json()["summary"]["valid"] > 0


def test_an_operator_and_a_relation_of_a_suite_are_used(extended: Path) -> None:
    own = ("--dst-validity=strict", "--dst-edits=shorthand", "--dst-relation=metamorphic,other-day")
    report = run_apart(extended, *STATES.run_options(), "--dst-report=report.json", *own).json()
    stays, follows = report["relations"]
    assert (follows["side"], follows["applicable"] > 0) == ("should-change", True)
    rows = stays["ledger"]["operators"]
    assert [row["operator"] for row in rows if row["generated"]] == ["shorthand"]


@pytest.mark.parametrize(
    ("compare", "violations_"),
    [("exact", 11), ("replybot:same_start", 11), ("numbers", 11)],
)
def test_a_comparison_says_when_replies_are_the_same(
    folder: Path, compare: str, violations_: int
) -> None:
    options = (f"--dst-compare={compare}", "--dst-report=report.json")
    done = run_pytest(folder, *REPLIES.run_options(), *options)
    assert done.json()["summary"]["violations"] == violations_
    assert compare.rpartition(":")[2] in done.json()["outcome"]["compared"]


@pytest.mark.parametrize(
    ("rule", "violations_"),
    [("book_room.balcony=ignore", 21), ("book_room.balcony=exact", VIOLATIONS["tool-calls"])],
)
def test_a_rule_says_when_arguments_are_the_same(folder: Path, rule: str, violations_: int) -> None:
    options = (f"--dst-arguments={rule}", "--dst-report=report.json")
    done = run_pytest(folder, *CALLS.run_options(), *options)
    assert done.json()["summary"]["violations"] == violations_


def test_options_may_stand_in_a_file(fresh: Path) -> None:
    lines = ("dst_model = statebot:fragile", "dst_data = stays.jsonl", "dst_suite = yes")
    lines = ("dst_search = random", *lines)
    (fresh / "pytest.ini").write_text("\n".join(["[pytest]", *lines, ""]), encoding="utf-8")
    done = run_pytest(fresh, "--dst-report=report.json")
    assert (done.status, len(violations(done.json()))) == (1, VIOLATIONS["state"])
    (fresh / "pytest.ini").write_text("\n".join(["[pytest]", *lines[:3], ""]), encoding="utf-8")
    assert run_pytest(fresh).status == 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--dst-turns=3"], {"turns": 3}),
        (["--dst-variants=2"], {"generated": 30}),
        (["--dst-domains=meal"], {"dialogues_tested": 4}),
        (["--dst-stop-at-first"], {"violations": 11}),
        (["--dst-search=greedy"], {"valid": 65, "violations": 39}),
        (["--dst-search=near-value"], {"valid": 75, "violations": 54}),
        (["--dst-attack=non-cumulative"], {"violations": VIOLATIONS["state"], "carried": 0}),
        (["--dst-attack=cumulative"], {"violations": VIOLATIONS["state"], "carried": 16}),
        (["--dst-transformations=1"], {"violations": 19, "carried": 2}),
        (["--dst-shrink=no"], {"violations": VIOLATIONS["state"], "minimiser_calls": 0}),
        (["--dst-validity=strict", "--dst-edits=emoji"], {"valid": 75, "violations": 4}),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_options_decide_what_is_run(
    folder: Path, options: list[str], expected: dict[str, int]
) -> None:
    done = run_pytest(folder, *STATES.run_options(), "--dst-report=report.json", *options)
    summary = done.json()["summary"]
    assert {name: summary[name] for name in expected} == expected


def test_another_seed_makes_other_variants(folder: Path) -> None:
    texts = []
    for seed in ("0", "1"):
        options = (f"--dst-seed={seed}", "--dst-report=report.json")
        done = run_pytest(folder, *STATES.run_options("sturdy"), *options)
        texts.append([variant["text"] for _, variant in variants(done.json())])
        assert outcomes(done.json()) == {"held": 75}
    assert texts[0] != texts[1]


def test_locked_words_are_left_alone(folder: Path) -> None:
    lock = ("--dst-lock=room", "--dst-lock=/arriv\\w+/", "--dst-report=report.json")
    done = run_pytest(folder, *STATES.run_options(), *lock)
    for turn, variant in variants(done.json()):
        for word in ("room", "arriving"):
            said = turn["user"].lower().split()
            assert variant["text"].lower().split().count(word) >= said.count(word)
    assert done.json()["summary"]["violations"] < VIOLATIONS["state"]


def test_an_estimate_needs_its_search(folder: Path) -> None:
    noise = ("--dst-search=noise", "--dst-report=report.json")
    done = run_pytest(folder, *STATES.run_options(), *noise)
    found = done.json()["summary"]["estimated_failures"]
    assert 0 < found["per_1000"] < 1000
    low, high = found["interval"]
    assert low <= found["per_1000"] <= high
    limit = "-odst_max_estimated_failures=0.1"
    assert run_pytest(folder, *STATES.run_options(), *noise, limit).status == 1
    assert run_pytest(folder, *STATES.run_options(), limit).status == 4
