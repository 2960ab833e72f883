"""Sessions that end with estimated failures, as people see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.report.json_report import SCHEMA_PATH
from pytest_dstfuzz.report.packing import problems

#: Breaks with every edit, whatever values are normalised to: all that is distorted fails.
BRITTLE = """
def track(context):
    return {"hotel-name": context.user.encode().hex()}
"""
OPTIONS = (
    *("--dst-model=brittle:track", "--dst-turns=25", "--dst-validity=natural", "--dst-shrink=no"),
    *("--dst-fail-on=gate", "--dst-max-failure-rate=100%", "--dst-attack=non-cumulative"),
)
NOISE = (*OPTIONS, "--dst-search=noise")


@pytest.fixture
def brittle(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with that tracker, and no test."""
    pytester.makepyfile(brittle=BRITTLE)
    return pytester


def words(result: Any) -> str:
    return " ".join(result.stdout.str().split())


def report(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "out.json").read_text(encoding="utf-8"))
    return found


def test_terminal_json_page_and_job_summary_say_the_same(
    brittle: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(brittle.path / "step.md"))
    outputs = ("--dst-report=out.json", "--dst-report=out.html", "--dst-annotations=yes", "-v")
    result = brittle.runpytest_inprocess(*NOISE, *outputs)
    assert result.ret == 0
    found = report(brittle.path)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(found, schema) == []
    expected = found["summary"]["estimated_failures"]
    assert expected["per_1000"] + expected["unjudged_per_1000"] == pytest.approx(
        expected["distorted_per_1000"], rel=1e-3
    )
    shown = f"{expected['per_1000']:.1f} of 1,000 user turns"
    text = words(result)
    assert f"estimated failures {shown} (" in text
    assert f"of 1,000 user turns {expected['locked_per_1000']:.1f} have a slip that" in text
    page = (brittle.path / "out.html").read_text(encoding="utf-8")
    assert f"{shown} with slips in" in page
    assert "drawn by the noise model; stands for" in page
    step = (brittle.path / "step.md").read_text(encoding="utf-8")
    assert f"{shown} with slips in" in step


def test_whole_conversations_are_the_same_for_any_number_of_workers(
    brittle: pytest.Pytester,
) -> None:
    pytest.importorskip("xdist")
    cumulative = (*NOISE, "--dst-attack=cumulative", "--dst-report=out.json", "--dst-cache=no")
    text = words(brittle.runpytest_inprocess(*cumulative))
    alone = report(brittle.path)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(alone, schema) == []
    found = alone["summary"]["estimated_failures"]["conversation"]
    assert found["per_1000"] > 0
    assert f"slips at all turns: {found['per_1000']:.1f} of 1,000" in text
    brittle.runpytest_subprocess(*cumulative, "-n", "2")
    shared = report(brittle.path)
    assert {**alone, "run": None} == {**shared, "run": None}


def test_in_one_line_and_where_texts_are_kept_back(brittle: pytest.Pytester) -> None:
    told = words(brittle.runpytest_inprocess(*NOISE, "-q", "--dst-report=out.json"))
    expected = report(brittle.path)["summary"]["estimated_failures"]
    assert f"estimated failures {expected['per_1000']:.1f} of 1,000 user turns (" in told
    kept = words(brittle.runpytest_inprocess(*NOISE, "-q", "--dst-report=out.json", "--dst-redact"))
    assert report(brittle.path)["summary"]["estimated_failures"] == expected
    line = "estimated failures " + told.partition("estimated failures ")[2].partition(")")[0]
    assert line in kept


def test_other_searches_estimate_nothing(brittle: pytest.Pytester) -> None:
    result = brittle.runpytest_inprocess(*OPTIONS, "--dst-search=random", "--dst-report=out.json")
    assert report(brittle.path)["summary"]["estimated_failures"] is None
    assert "of 1,000 user turns" not in words(result)
    strict = brittle.runpytest_inprocess(*OPTIONS, "--dst-validity=strict", "--dst-search=random")
    assert "estimated failures" not in words(strict)
