"""Relations of both sides on each kind of bot: what they apply to, and what breaks them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seaside import CALLS, REPLIES, STATES, VIOLATIONS, BotKind
from user_runs import Done, changed, run_pytest, variants, violations

REPORT = "--dst-report=report.json"


def run(folder: Path, kind: BotKind, bot: str, relation: str, *options: str) -> Done:
    return run_pytest(
        folder, *kind.run_options(bot), f"--dst-relation={relation}", REPORT, *options
    )


def figures(report: Any) -> dict[str, tuple[int, int, int]]:
    """Return by relation how much it applies to, its valid variants and its violations."""
    return {
        one["name"]: (one["applicable"], one["summary"]["valid"], one["summary"]["violations"])
        for one in report["relations"]
    }


@pytest.mark.parametrize(
    ("kind", "bot", "status", "expected"),
    [
        (STATES, "sturdy", 0, {"value-swap": (9, 29, 0), "removal": (3, 3, 0)}),
        (STATES, "stubborn", 1, {"repair": (9, 29, 29)}),
        (STATES, "sturdy", 1, {"negation": (1, 1, 1), "turn-back": (15, 67, 33)}),
        (STATES, "fragile", 1, {"disfluency": (15, 75, 8), "grammar-errors": (13, 29, 0)}),
        (STATES, "sturdy", 0, {"duplicate": (8, 13, 0), "restart": (8, 15, 0)}),
        (REPLIES, "reply", 0, {"disfluency": (9, 45, 0), "plug-in": (9, 45, 0)}),
        (REPLIES, "reply", 0, {"same-context": (2, 6, 0), "contexts-agree": (2, 8, 0)}),
        (CALLS, "answer", 0, {"value-swap": (7, 29, 0), "tools-distractor": (8, 40, 0)}),
        (CALLS, "answer", 1, {"repair": (7, 29, 18)}),
        (CALLS, "first_tool", 1, {"tools-order": (8, 8, 7), "tools-optional": (5, 5, 0)}),
    ],
    ids=lambda given: "+".join(given) if isinstance(given, dict) else getattr(given, "name", None),
)
def test_what_relations_find_is_that_of_this_seed(
    folder: Path, kind: BotKind, bot: str, status: int, expected: dict[str, tuple[int, int, int]]
) -> None:
    done = run(folder, kind, bot, ",".join(expected))
    assert figures(done.json()) == expected
    assert done.status == status


@pytest.fixture(scope="module")
def both(new_folder: Callable[[], Path]) -> Done:
    """A run under a relation of each side."""
    return run(new_folder(), STATES, "fragile", "metamorphic,turn-back", "--junitxml=junit.xml")


def test_no_figure_is_of_two_relations(both: Done) -> None:
    stays, follows = both.json()["relations"]
    assert (stays["name"], stays["side"]) == ("metamorphic", "should-not-change")
    assert (follows["name"], follows["side"]) == ("turn-back", "should-change")
    assert both.json()["summary"] == stays["summary"]
    assert stays["failures"]["changed"] == stays["summary"]["violations"] == VIOLATIONS["state"]
    assert follows["failures"]["stuck"] == follows["summary"]["violations"] == 67
    assert follows["over_stability"] == 1.0


def test_each_relation_has_items_of_its_own(both: Done) -> None:
    names = re.findall(r'<testcase [^>]*name="([^"]+)"', both.text("junit.xml"))
    assert len(set(names)) == len(names) == 30
    assert sum("anna-t0" in name for name in names) == 2
    relations = [turn["relation"] for turn in both.json()["turns"]]
    assert sorted(relations) == ["metamorphic"] * 15 + ["turn-back"] * 15


def test_what_must_change_says_what_was_expected(both: Done) -> None:
    for turn, variant in variants(both.json()):
        if turn["relation"] != "turn-back" or variant["outcome"] != "violation":
            continue
        (expected,) = variant["expected"]
        slot = expected["slot"]
        assert changed(variant)[slot] == (turn["clean_state"][slot], variant["state"][slot])
        assert variant["failure"] == "stuck"
        assert expected["after"] != expected["before"] == turn["clean_state"][slot]


def test_an_expected_change_is_remembered_with_what_was_expected(fresh: Path) -> None:
    run(fresh, STATES, "stubborn", "repair", "--dst-remember")
    done = run(fresh, STATES, "stubborn", "repair")
    assert {one["outcome"] for one in done.json()["regressions"]} == {"broken"}
    assert all("expected" in line for line in corpus(fresh).splitlines())


def corpus(folder: Path) -> str:
    path = folder / ".dstfuzz" / "regressions" / STATES.data
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "status", "verdict"),
    [
        ("", 0, "pass"),
        ('[tool.dstfuzz.gates.relation.turn-back]\nmax-failure-rate = "50%"\n', 1, "regression"),
        ('[tool.dstfuzz.gates.relation.turn-back]\nmax-failure-rate = "100%"\n', 0, "pass"),
        ('[tool.dstfuzz.gates.relation.metamorphic]\nmax-failure-rate = "1%"\n', 1, "regression"),
    ],
    ids=["unnamed", "under", "over", "stays"],
)
def test_a_relation_that_must_change_has_a_limit_only_by_name(
    fresh: Path, table: str, status: int, verdict: str
) -> None:
    (fresh / "pyproject.toml").write_text(table, encoding="utf-8")
    done = run(fresh, STATES, "fragile", "metamorphic,turn-back", "--dst-max-failure-rate=50%")
    assert (done.status, done.json()["gate"]["verdict"]) == (status, verdict)
    assert done.json()["gate"]["not_judged"] == ([] if "turn-back" in table else ["turn-back"])


def test_a_relation_that_applies_nowhere_decides_nothing(folder: Path) -> None:
    done = run(folder, REPLIES, "reply", "lost-context")
    assert figures(done.json()) == {"lost-context": (0, 0, 0)}
    assert violations(done.json()) == []
    assert sum(done.json()["relations"][0]["inapplicable"].values()) == 9
    assert done.status == 1
