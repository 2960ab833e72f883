"""Rates by group, the heat map, and the verdict that a page begins with."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import YieldsTally
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.report.figures import WhatItTook, WhoJudged
from pytest_dstfuzz.report.json_report import RunInfo, build_report, info_of
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.totals.tallies import (
    EDIT_RATE_RANGES,
    RatesTally,
    edit_rate_range,
    heat_map,
)
from pytest_dstfuzz.trackers.tracker import Disagreement, Usage

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)


def test_rates_by_transformation(results: list[TurnResult]) -> None:
    rows = {row.name: row for row in tally_results(RatesTally(), results).transformations}
    assert list(rows) == ["char_drop", "char_replace", "word_drop", "word_insert"]
    assert rows["word_insert"].counts.failure_rate == 0.0
    assert rows["word_drop"].counts.valid_rate == 0.0
    assert rows["char_replace"].counts.failure_rate == 1.0
    # Of one dialogue alone: nothing says how much another would differ.
    assert rows["char_replace"].failure_interval is None
    assert tally_results(RatesTally(), results[::-1]).transformations == list(rows.values())
    more = [replace(turn, dialogue_id=f"{turn.dialogue_id} {n}") for turn in results for n in "abc"]
    rows = {row.name: row for row in tally_results(RatesTally(), more).transformations}
    low, high = rows["word_insert"].failure_interval or (1.0, 0.0)
    assert low == 0.0 < high


def test_a_violation_of_the_context_is_not_that_of_its_edits(broken: TurnResult) -> None:
    variants = tuple(
        replace(item, cause="context") if item.outcome == "violation" else item
        for item in broken.variants
    )
    rows = {
        row.name: row
        for row in tally_results(RatesTally(), [replace(broken, variants=variants)]).transformations
    }
    assert rows["char_replace"].counts.violations == 0
    assert rows["char_replace"].counts.uncredited == 1


@pytest.mark.parametrize(
    ("rate", "name"),
    [
        (0.0, "none"),
        (0.0001, "0 to 5 %"),
        (0.05, "0 to 5 %"),
        (0.0501, "5 to 10 %"),
        (0.25, "20 to 25 %"),
        (0.2501, "over 25 %"),
        (1.0, "over 25 %"),
    ],
)
def test_ranges_of_edit_rates(rate: float, name: str) -> None:
    assert edit_rate_range(rate) == name
    assert name in EDIT_RATE_RANGES


def test_rates_by_edit_rate(results: list[TurnResult]) -> None:
    found = tally_results(RatesTally(), results).edit_rates
    words, characters = found["words"], found["characters"]
    assert list(words) == ["none", "10 to 15 %"]
    assert (words["none"].counts.valid, words["10 to 15 %"].counts.valid) == (2, 5)
    assert words["none"].counts.failure_rate == 0.5
    assert {name: row.counts.violations for name, row in characters.items()} == {
        "none": 0,
        "0 to 5 %": 1,
    }


def test_heat_map(broken: TurnResult) -> None:
    heat = heat_map(tally_results(YieldsTally(), [broken]), BELIEF_STATES)
    assert heat.domains == ("train",)
    assert [name for name, _ in heat.rows] == ["day", "departure"]
    cells = {name: row[0] for name, row in heat.rows}
    assert cells["day"] is not None
    assert cells["day"].failure_rate == 0.5
    assert cells["departure"] is not None
    assert cells["departure"].failure_rate == 0.0
    assert heat.totals[0] is not None
    assert heat.totals[0].violations == 1


def test_slots_of_several_domains_and_of_none(broken: TurnResult) -> None:
    state = BeliefState({"hotel-area": "north", "size": "large"})
    violation = replace(broken.violations[0], changed_slots=(Difference("size", "large", None),))
    heat = heat_map(
        tally_results(YieldsTally(), [replace(broken, clean_state=state, variants=(violation,))]),
        BELIEF_STATES,
    )
    assert heat.domains == ("", "hotel")
    assert heat.totals[0] is None
    rows = dict(heat.rows)
    assert rows["area"][0] is None
    assert rows["size"][1] is None
    assert rows["size"][0] is not None
    assert rows["size"][0].failure_rate == 1.0


def test_a_table_of_slots_has_room_for_the_most_violated(broken: TurnResult) -> None:
    state = BeliefState({f"d{number:03}-s{number}": "north" for number in range(500)})
    last = Difference("d499-s499", "north", None)
    violation = replace(broken.violations[0], changed_slots=(last,))
    heat = heat_map(
        tally_results(YieldsTally(), [replace(broken, clean_state=state, variants=(violation,))]),
        BELIEF_STATES,
    )
    assert heat.domains[-1] == "d499"
    assert dict(heat.rows)["s499"][-1] is not None
    assert len(heat.domains) == len(heat.rows) == 500 - heat.left_out < 100


def view(results: list[TurnResult], gate: dict[str, Any] | None = None, ended: str = "") -> View:
    info = replace(INFO, ended=ended)
    return View.of(build_report(results, Settings(), info, gate=gate))


def judged(verdict: str, reason: str, **other: Any) -> dict[str, Any]:
    finding = {"part": None, "verdict": verdict, "reason": reason}
    base = {"verdict": verdict, "troubles": [], "not_compared": [], "comparison": None}
    return {**base, "findings": [finding] if reason else [], **other}


def test_verdict_without_a_gate(results: list[TurnResult]) -> None:
    whole = view(results, ended="interrupted")
    assert whole.verdict.kind == "bad"
    assert whole.verdict.headline.startswith(
        "Failed: 1 of 3 tested turns breaks, and 1 variant got no"
    )
    assert ("ended early", "interrupted", "warning") in whole.facts
    assert view([]).verdict.headline.startswith("Not judged: nothing was tested")
    assert view(results[1:2]).verdict.kind == "good"
    assert view(results[:1]).verdict.kind == "bad"


def test_a_report_gives_back_the_facts_of_its_run(results: list[TurnResult]) -> None:
    usage = Usage(9, 1, 80, 20, 0.5)
    judge = WhoJudged("m", "http://x", False, "0" * 64, "text"), WhatItTook(3, 1, 0, 6, usage)
    info = replace(
        INFO,
        notes=("a note",),
        ended="interrupted",
        command="pytest",
        repeat="pytest --dst-seed=0",
        seconds=2.5,
        usage=usage,
        disagreement=Disagreement(8, 3, 1),
        asked=7,
        recalled=2,
        compared="exact",
        judge=judge,
    )
    for given in (info, INFO):
        written = json.loads(json.dumps(build_report(results, Settings(), given)))
        assert info_of(written) == given


@pytest.mark.parametrize(
    ("gate", "kind", "reason"),
    [
        (judged("pass", "it is within the limit"), "good", "It is within the limit."),
        (judged("regression", "it is over"), "bad", "It is over."),
        (judged("inconclusive", "", not_compared=["another seed"]), "warning", "Another seed."),
        (judged("infrastructure", "", troubles=["it failed"]), "bad", "It failed."),
    ],
)
def test_verdict_of_the_gate(
    results: list[TurnResult], gate: dict[str, Any], kind: str, reason: str
) -> None:
    verdict = view(results, gate).verdict
    assert (verdict.kind, verdict.reasons[0]) == (kind, reason)


def test_a_gate_without_anything_to_judge_is_none(results: list[TurnResult]) -> None:
    assert view(results, judged("pass", "")).verdict.kind == "bad"
