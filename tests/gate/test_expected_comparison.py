"""The estimated failures of two builds: by hand, by law, and of whole runs."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gate_cases import BOT, CAMPAIGN, Contents, saved, totals_of, turn
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.results import TurnNoise, TurnResult
from pytest_dstfuzz.gate.baseline import Session
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import Gates, Judgement, Limits
from pytest_dstfuzz.noise import model
from pytest_dstfuzz.report.figures import describe_expected
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, read_report
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.view import views_of

#: Letters of variants: one turn a dialogue.
ROWS = st.lists(st.text("hv", min_size=5, max_size=5), min_size=8, max_size=12)
NOISE = TurnNoise("typing", 0.02, distorted=0.2, locked=0.0, sampled=True)
#: So much does each variant stand for.
WEIGHT = 0.04


def run(dialogues: Sequence[str], text: str = "", **noise: object) -> dict[str, list[TurnResult]]:
    """Return a run of a search by density: of each dialogue one turn, with a variant a letter."""
    turns = [turn(f"D{number:03}", 0, letters) for number, letters in enumerate(dialogues)]
    how = replace(NOISE, **noise)  # type: ignore[arg-type]  # fields of its own
    return {
        "only": [
            replace(
                each,
                noise=how,
                variants=tuple(
                    replace(one, weight=WEIGHT, text=f"{one.text}{text}") for one in each.variants
                ),
            )
            for each in turns
        ]
    }


def compared(
    old: Mapping[str, Sequence[TurnResult]],
    new: Mapping[str, Sequence[TurnResult]],
    gates: Gates | None = None,
    **campaign: object,
) -> Judgement:
    now = {**CAMPAIGN, **campaign}
    session = Session(new, totals_of(new), now, Contents(new), seed=0)
    return judge(session, gates or Gates(), saved(old))


def figures(judgement: Judgement) -> Any:
    assert judgement.comparison is not None
    found = judgement.comparison["estimated_failures"]
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert (
        problems(judgement.to_json(), {**schema["properties"]["gate"], "$defs": schema["$defs"]})
        == []
    )
    return found


def test_figures_by_hand() -> None:
    # Each dialogue of a turn: the second build breaks one variant of five more, at every turn.
    found = figures(compared(run(["hhhhv"] * 10), run(["hhhvv"] * 10)))
    assert (found["turns"], found["dialogues"], found["reason"]) == (10, 10, "")
    assert found["before"] == pytest.approx(40)
    assert found["after"] == pytest.approx(80)
    assert found["difference"] == pytest.approx(40)
    assert found["interval"] == pytest.approx([40, 40])
    text = describe_expected({"estimated_failures": found})
    assert text == (
        "estimated failures of 1,000 user turns: 40.0 in the baseline, 80.0 now, on the 10 turns "
        "that both have (+40.0; 95 % interval +40.0 to +40.0): the difference is significant"
    )


@pytest.mark.nightly
@given(ROWS, ROWS)
def test_swapping_the_builds_negates_the_difference(one: list[str], other: list[str]) -> None:
    count = min(len(one), len(other))
    there = figures(compared(run(one[:count]), run(other[:count])))
    back = figures(compared(run(other[:count]), run(one[:count])))
    assert back["difference"] == pytest.approx(-there["difference"])
    low, high = there["interval"]
    assert back["interval"] == pytest.approx([-high, -low])
    assert (back["before"], back["after"]) == (there["after"], there["before"])


@pytest.mark.nightly
@given(ROWS)
def test_a_build_is_as_good_as_itself(dialogues: list[str]) -> None:
    found = figures(compared(run(dialogues), run(dialogues)))
    assert found["difference"] == 0
    assert found["interval"] == [0, 0]
    assert (
        "(0.0; 95 % interval 0.0 to 0.0): the difference is not significant"
        in describe_expected({"estimated_failures": found})
    )


def test_few_dialogues_have_no_interval() -> None:
    # Enough variants for a figure, in three dialogues.
    found = figures(compared(run(["h" * 12] * 3), run(["h" * 11 + "v"] * 3)))
    assert found["difference"] > 0
    assert found["interval"] is None
    text = describe_expected({"estimated_failures": found})
    assert "too few dialogues for an interval): the difference is not significant" in text


def test_other_variants_of_another_seed_are_compared_by_what_they_estimate() -> None:
    judgement = compared(run(["hhhhv"] * 10), run(["hhhvv"] * 10, text="!"), seed=1)
    assert judgement.not_compared == ("seed: 0 in the baseline, 1 now",)
    assert figures(judgement)["difference"] == pytest.approx(40)
    judgement = compared(run(["hhhhv"] * 10), run(["hhhvv"] * 10, text="!"))
    assert judgement.not_compared == ("no variant has an answer in both the baseline and this run",)
    assert figures(judgement)["difference"] == pytest.approx(40)


def test_estimates_of_other_failures_are_not_compared_and_what_differs_is_named() -> None:
    found = figures(compared(run(["hhhhv"] * 10), run(["hhhvv"] * 10), slip_rate=0.05))
    assert (found["difference"], found["interval"]) == (None, None)
    assert found["reason"] == "slip-rate: none in the baseline, 0.05 now"


def test_what_has_no_estimate_is_not_compared() -> None:
    density, none = run(["hhhhv"] * 10), run(["hhhhv"] * 10, sampled=False)
    assert "the baseline has no estimates: its search" in figures(compared(none, density))["reason"]
    assert figures(compared(density, none)) is None
    few = figures(compared(run(["hv"]), run(["hv"])))
    assert "needs a sample of 30 variants, got 2" in few["reason"]


def test_turns_that_only_one_build_has_an_estimate_of_are_left_out() -> None:
    old, new = run(["hhhhv"] * 12), run(["hhhvv"] * 12)
    old["only"][0] = replace(old["only"][0], noise=None)
    new["only"][1] = replace(new["only"][1], outcome="inapplicable")
    found = figures(compared(old, new))
    assert (found["turns"], found["dialogues"]) == (10, 10)


def test_a_limit_and_a_baseline_are_both_judged() -> None:
    limits = Gates(Limits(max_estimated_failures=50, max_regression=1.0, max_new_violations=10))
    judgement = compared(run(["hhhhv"] * 10), run(["hhhvv"] * 10), limits)
    found = {each.gate: each.verdict for each in judgement.findings}
    assert found == {
        "max-clean-drift": "pass",
        "max-regression": "pass",
        "max-new-violations": "pass",
        "max-estimated-failures": "regression",
    }
    assert judgement.verdict == "regression"


@pytest.mark.parametrize(
    ("new", "limit", "verdict"),
    [
        ("hhhvv", 39, "regression"),
        ("hhhvv", 40, "pass"),
        ("hhhhv", 0, "pass"),
        ("hhhhh", 0, "pass"),
    ],
)
def test_a_rise_is_judged_by_its_interval(new: str, limit: float, verdict: str) -> None:
    judgement = compared(
        run(["hhhhv"] * 10), run([new] * 10, text="!"), Gates(Limits(max_estimated_rise=limit))
    )
    # The variants are not the same: what is judged is the estimates alone.
    drift, finding = judgement.findings
    assert (drift.gate, finding.gate) == ("max-clean-drift", "max-estimated-rise")
    assert (finding.verdict, finding.dialogues_needed) == (verdict, None)
    assert judgement.verdict == ("regression" if verdict == "regression" else "inconclusive")
    assert finding.value == figures(judgement)["difference"]


def test_a_rise_that_is_not_decided_says_how_many_dialogues_would() -> None:
    limits = Gates(Limits(max_estimated_rise=2))
    some = ["hhhhv", "hhhvv", "hhhhh", "hhhhv", "hvvvv"] * 2
    finding = compared(run(["hhhhv"] * 10), run(some), limits).findings[1]
    assert finding.verdict == "inconclusive"
    assert finding.dialogues_needed is not None
    assert finding.dialogues_needed > 10
    text = (
        "the estimated failures of 1,000 user turns changed by +24.0 against the baseline (interv"
    )
    assert finding.reason.startswith(text)
    assert finding.reason.endswith(
        f"+2.0 are allowed; about {finding.dialogues_needed:,} dialogues are needed to decide"
    )
    few = compared(run(["h" * 30]), run(["h" * 31]), limits).findings[1]
    assert (few.verdict, few.dialogues_needed) == ("inconclusive", 6)


def test_a_rise_of_other_failures_is_not_judged() -> None:
    limits = Gates(Limits(max_estimated_rise=2))
    old, new = run(["hhhhv"] * 10), run(["hhhvv"] * 10)
    finding = compared(old, new, limits, slip_rate=0.05).findings[1]
    assert finding.verdict == "inconclusive"
    assert finding.reason == (
        "the estimated failures are not compared with the baseline: slip-rate: none in the "
        "baseline, 0.05 now"
    )
    none = compared(old, run(["hhhvv"] * 10, sampled=False), limits).findings[1]
    assert none.reason.endswith(
        "baseline: the search does not estimate them: use --dst-search=noise"
    )


def session(pytester: pytest.Pytester, model: str, *options: str) -> Any:
    result = pytester.runpytest_inprocess(
        *(f"--dst-model=mybot:{model}", "--dst-turns=all", "--dst-report=out.json"),
        *("--dst-validity=natural", "--dst-search=noise", "--dst-variants=3", "--dst-shrink=no"),
        *("-p", "no:cacheprovider", "--dst-domains=train", "--dst-baseline=base.json", *options),
    )
    report = read_report(pytester.path / "out.json")
    return result, report


def test_two_builds_of_other_seeds_in_every_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    session(pytester, "steady", "--dst-update-baseline")
    shown = "estimated failures of 1,000 user turns: 0 in the baseline, * now, on the * turns that"
    result, report = session(pytester, "fragile", "--dst-seed=5", "-odst_max_estimated_rise=2")
    result.stdout.fnmatch_lines(
        [
            "variants not compared with the baseline: seed: 0 in the baseline, 5 now",
            "failed: the estimated failures of 1,000 *; +2.0 are allowed",
            f"{shown} both have (+*; 95 % interval +*): the difference is significant",
        ]
    )
    found = report["gate"]["comparison"]["estimated_failures"]
    assert found["after"] == pytest.approx(report["summary"]["estimated_failures"]["per_1000"])
    assert found["before"] == 0
    assert "Estimated failures of 1,000 user turns: 0 in the baseline" in html.unescape(
        markdown_text(views_of(report))
    )
    assert "Estimated failures of 1,000 user turns: 0 in the baseline" in html_text(report)


@pytest.mark.nightly
def test_a_noise_model_of_a_file_may_lie_elsewhere(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    shipped = Path(str(model.__file__)).parents[1] / "resources" / "noise" / "typing.json"
    for name in ("one.json", "two.json"):
        shutil.copy(shipped, pytester.path / name)
    session(pytester, "fragile", "--dst-update-baseline", "--dst-noise=one.json")
    _, report = session(pytester, "fragile", "--dst-noise=two.json")
    assert report["gate"]["not_compared"] == []
    assert report["gate"]["comparison"]["estimated_failures"]["difference"] == 0
    _, report = session(pytester, "fragile", "--dst-noise=casual")
    (named,) = report["gate"]["not_compared"]
    assert re.fullmatch(r"noise: typing \(\w{12}\) in the baseline, casual \(\w{12}\) now", named)
    assert named == report["gate"]["comparison"]["estimated_failures"]["reason"]
