"""Budgets of calls, and runs that end with the first failure: what a bot is really asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange
from pytest_dstfuzz.trackers.tracker import Prediction

#: Counts every context that it is given, on the disk; it breaks at every third variant or so.
BOT = """
import pathlib

def bot(context):
    with pathlib.Path("asked").open("a") as file:
        file.write(".")
    count = len(context.user)
    return {"hotel-name": "a" if count % LENGTH else "b"}
"""
RUN = ("--dst-model=counted:bot", "--dst-turns=30", "--dst-report=out.json", "--dst-cache=no")


def run(
    pytester: pytest.Pytester, *options: str, length: int = 3
) -> tuple[pytest.RunResult, Any, int]:
    """Run the bot; return the report and how many contexts it was given."""
    pytester.makepyfile(counted=BOT.replace("LENGTH", str(length)))
    asked = pytester.path / "asked"
    asked.unlink(missing_ok=True)
    result = pytester.runpytest_subprocess(*RUN, *options)
    report = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    return result, report, len(asked.read_text(encoding="utf-8"))


@pytest.mark.parametrize("limit", [40, 100])
def test_a_bot_is_asked_no_more_than_the_budget_says(pytester: pytest.Pytester, limit: int) -> None:
    _, _, asked = run(pytester, f"--dst-max-calls={limit}")
    assert asked == limit


def test_a_budget_is_spread_over_the_turns(pytester: pytest.Pytester) -> None:
    result, report, _ = run(pytester, "--dst-max-calls=100", length=100_000)
    counts = Counter(len(turn["variants"]) for turn in report["turns"])
    assert sum(counts.values()) == 30
    assert min(counts) >= 1
    assert max(counts) <= min(counts) + 1
    assert all(turn["left_out"] == 5 - len(turn["variants"]) for turn in report["turns"])
    assert "100 calls" in report["data"]["ended"]
    result.stdout.fnmatch_lines(["not tested *variants of 30 turns*"])
    # It found the first of the violations of a whole run.
    _, whole, _ = run(pytester, length=100_000)
    first = {turn["id"]: turn["variants"] for turn in whole["turns"]}
    for turn in report["turns"]:
        found = [one["text"] for one in turn["variants"]]
        assert found == [one["text"] for one in first[turn["id"]][: len(found)]]
    _, again, _ = run(pytester, "--dst-max-calls=100", length=100_000)
    assert {**again, "run": 0} == {**report, "run": 0}


def test_votes_on_violations_are_paid_for(pytester: pytest.Pytester) -> None:
    # A violation takes nine answers more than a variant that holds.
    options = ("--dst-max-calls=200", "--dst-repeatable=no")
    _, report, asked = run(pytester, *options, length=2)
    found = Counter(turn["outcome"] for turn in report["turns"])
    assert asked == 200
    assert found["violation"] >= 5
    assert found["violation"] + found["held"] >= 15
    # If all hold, every turn has a variant.
    _, report, asked = run(pytester, *options, length=100_000)
    assert asked == 200
    assert all(turn["variants"] for turn in report["turns"])


@pytest.mark.parametrize(("limit", "status"), [(100, 0), (25, 1)])
def test_a_gate_judges_a_run_with_at_least_half_of_the_turns(
    pytester: pytest.Pytester, limit: int, status: int
) -> None:
    options = ("--dst-max-failure-rate=100%", f"--dst-max-calls={limit}")
    result, report, _ = run(pytester, *options, length=4)
    assert result.ret == status
    assert report["gate"]["verdict"] == ("infrastructure" if status else "pass")
    assert bool(report["gate"]["covered"]) == (not status)
    promised = "*enough for about * of these calls*" if not status else "*of 30 turns, too few*"
    result.stdout.fnmatch_lines([f"dstfuzz: the budget of {limit} calls is {promised}"])


def test_the_cost_counts_all_calls_but_those_of_the_check(pytester: pytest.Pytester) -> None:
    result, report, asked = run(pytester)
    assert sum(turn["repeat_calls"] for turn in report["turns"]) > 0
    (line,) = (line for line in result.outlines if line.startswith("cost "))
    found = re.findall(r"\d+(?= calls| more)", line.replace(",", ""))
    assert sum(map(int, found)) == asked - 24


def test_collecting_tells_the_cost(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(counted=BOT.replace("LENGTH", "3"))
    result = pytester.runpytest_subprocess(*RUN, "--collect-only")
    result.stdout.fnmatch_lines(
        ["dstfuzz: about 182 calls, * for 30 turns without violations; up to *"]
    )
    assert len((pytester.path / "asked").read_text(encoding="utf-8")) == 8
    two = pytester.runpytest_subprocess(
        *RUN, "--collect-only", "--dst-relation=metamorphic,negation"
    )
    # The answers to unmodified turns are shared.
    two.stdout.fnmatch_lines(
        ["dstfuzz: about * calls, * under each of 2 relations without violations; *"]
    )


def test_collecting_does_not_need_a_bot_that_answers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(counted="def bot(context):\n    raise ValueError('no model here')\n")
    result = pytester.runpytest_subprocess(*RUN, "--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["dstfuzz: the cost of the run is not known: *no model here*"])


def test_a_budget_that_suffices_changes_nothing(pytester: pytest.Pytester) -> None:
    _, whole, _ = run(pytester)
    _, limited, _ = run(pytester, "--dst-max-calls=5000")
    assert limited["turns"] == whole["turns"]


def test_a_run_that_ends_with_a_failure_asks_for_a_dialogue_at_a_time(
    pytester: pytest.Pytester,
) -> None:
    _, _, everything = run(pytester)
    _, report, asked = run(pytester, "-x")
    assert len(report["turns"]) < 6
    assert asked < everything / 2


def test_batches_that_are_asked_again_in_parts_count() -> None:
    class Refusing:
        """Fails on every batch with one of its contexts."""

        asked = 0

        def predict(self, contexts: list[Context]) -> list[Prediction]:
            self.asked += len(contexts)
            if any("no" in context.user for context in contexts):
                raise RuntimeError
            return [Prediction(BeliefState({"hotel-area": "north"})) for _ in contexts]

    contexts = [Context((Exchange("", f"{'no' if n == 3 else 'yes'} {n}"),)) for n in range(8)]
    bot, budget = Refusing(), Budget(BudgetSettings(max_calls=20))
    answers = Predictor(bot, 8, budget=budget).predict(contexts)
    assert bot.asked <= 20
    assert len(answers) < len(contexts)
    unlimited = Refusing()
    assert len(Predictor(unlimited, 8).predict(contexts)) == len(contexts)
    assert unlimited.asked > 20
