"""What reports say of a tracker that counts tokens and may disagree with itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.report.info import RunInfo
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, build_report, report_text
from pytest_dstfuzz.report.schema import problems
from pytest_dstfuzz.report.service import disagreement_text, usage_text
from pytest_dstfuzz.report.terminal import terminal_lines
from pytest_dstfuzz.trackers.protocol import Disagreement, Usage

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
    assert disagreement_text(Disagreement(8, 3, 2)) == (
        "2 of 8 contexts, asked 3 times each before the run, got different answers: a violation "
        "needs most of 3 answers to differ"
    )
    assert disagreement_text(Disagreement(8, 3, 0)).endswith("nothing was asked again")


@pytest.mark.parametrize("info", [INFO, SERVED], ids=["plain", "served"])
def test_only_the_run_differs(info: RunInfo, results: list[TurnResult]) -> None:
    summary = summarise(results)
    report = build_report(results, summary, Settings(model="m"), info)
    plain = build_report(results, summary, Settings(model="m"), INFO)
    assert {**report, "run": None} == {**plain, "run": None}
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(json.loads(report_text(report)), schema, schema) == []
    expected: dict[str, Any] = {"usage": None, "disagreement": None}
    if info is SERVED:
        usage = {"answers": 1200, "uncounted": 0, "prompt_tokens": 30_000}
        usage |= {"completion_tokens": 4_500, "cost": 0.0123}
        expected = {"usage": usage, "disagreement": {"contexts": 8, "answers": 3, "differed": 2}}
    assert {name: report["run"][name] for name in expected} == expected
    lines = [line.text for line in terminal_lines(summary, results, Settings(), info)]
    labels = [line.split("  ")[0] for line in lines]
    assert ("tokens" in labels, "answers vary" in labels) == (info is SERVED, info is SERVED)
