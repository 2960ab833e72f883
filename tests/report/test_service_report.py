"""What reports say of a tracker that counts tokens and may disagree with itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.deciding import Repeats
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Noise
from pytest_dstfuzz.config import Settings, TrackerSettings
from pytest_dstfuzz.report.figures import (
    disagreement_text,
    noise_text,
    repeats_text,
    usage_text,
    wobble_text,
)
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, RunInfo, build_report, report_text
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.trackers.tracker import Disagreement, Usage

INFO = RunInfo("toy", "test", "plain", "jsonl", 1, 1)
SERVED = replace(
    INFO, usage=Usage(1200, 0, 30_000, 4_500, 0.0123), disagreement=Disagreement(8, 3, 2)
)


def test_the_summary_has_a_line_each() -> None:
    assert usage_text(Usage(1200, 0, 30_000, 4_500, 0.0123)) == (
        "34,500 for 1,200 answers: 30,000 of prompts, 4,500 of answers; 0.0123 by the prices"
    )
    assert usage_text(Usage(3, 1, 20, 10)) == (
        "30 for 3 answers: 20 of prompts, 10 of answers (1 answers came without counts)"
    )
    assert disagreement_text(Disagreement(8, 3, 2), TrackerSettings(votes=5)) == (
        "2 of 8 contexts, asked 3 times each before the run, got different answers: a majority "
        "vote decides, of at least 5 answers to the clean turn and to each variant that breaks "
        "the relation at first"
    )
    # Eight contexts that agree do not show that all do: it is put to the vote all the same.
    assert "at least 3 answers" in disagreement_text(Disagreement(8, 3, 0), TrackerSettings())
    assert "asks each context only once" in disagreement_text(
        Disagreement(8, 3, 0), TrackerSettings(votes=1)
    )


NOISE = Noise(40, 3, 9, 0.123, (0.08, 0.17), 0.07, 12, 4.25, 0.4, (15, 24))


def test_noise_is_told_with_the_interval_of_what_repeats() -> None:
    assert wobble_text(NOISE) == (
        "9 of 40 clean turns, asked 3 times each, got different answers; two answers to one turn "
        "differ in 12.3 % of all cases (95 % interval 8.0 to 17.0)"
    )
    text = noise_text(NOISE, 22)
    assert text.startswith("about 4.2 of 22 violations are noise, and about 0.4 were missed. ")
    assert "A repeated run would find 15 to 24 violations (95 % interval)" in text
    # Asking again tells nothing of what is right.
    assert " real" not in text
    assert text.endswith(
        "rejected 12 more. Causes and smallest edits may be noise too; more votes (dst_votes) help"
    )
    assert noise_text(replace(NOISE, expected_noise=0.3), 22).endswith("rejected 12 more")


def test_what_did_not_repeat_itself_is_told_with_what_to_do() -> None:
    assert repeats_text(Repeats(8, 0, 9, 0)) == ""
    text = repeats_text(Repeats(violations=8, violations_changed=3, held=9, held_changed=1))
    assert text.startswith(
        "3 of 8 violations, and 1 of 9 variants that held, got another answer when asked once "
        "more: the tracker answers the same messages differently each time"
    )
    assert "repeatable = False" in text
    assert "--dst-repeatable=no" in text


@pytest.mark.parametrize(
    ("given", "told"),
    [({"noise": NOISE}, "15 to 24 violations"), ({"repeats": Repeats(1, 1, 0, 0)}, "answers")],
    ids=["noise", "repeats"],
)
def test_doubts_are_in_the_terminal_summary(
    given: dict[str, Any], told: str, results: list[TurnResult]
) -> None:
    totals = Totals.of(results)
    totals.first("").summary = replace(totals.first("").summary, **given)
    for verbosity in (-1, 0):
        lines = report_lines(results, Settings(), INFO, verbosity=verbosity, totals=totals)
        text = " ".join(" ".join(line.text for line in lines).split())
        words = ("15 to 24" if "noise" in given else told) if verbosity < 0 else told
        assert words in text


@pytest.mark.parametrize("info", [INFO, SERVED], ids=["plain", "served"])
def test_only_the_run_differs(info: RunInfo, results: list[TurnResult]) -> None:
    report = build_report(results, Settings.of(model="m"), info)
    plain = build_report(results, Settings.of(model="m"), INFO)
    assert {**report, "run": None} == {**plain, "run": None}
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(json.loads(report_text(report)), schema) == []
    expected: dict[str, Any] = {"usage": None, "disagreement": None}
    if info is SERVED:
        usage = {"answers": 1200, "uncounted": 0, "prompt_tokens": 30_000}
        usage |= {"completion_tokens": 4_500, "cost": 0.0123}
        expected = {"usage": usage, "disagreement": {"contexts": 8, "answers": 3, "differed": 2}}
    assert {name: report["run"][name] for name in expected} == expected
    lines = [line.text for line in report_lines(results, Settings(), info)]
    labels = [line.split("  ")[0] for line in lines]
    assert ("tokens" in labels, "answers vary" in labels) == (info is SERVED, info is SERVED)
