"""Weaknesses of two builds: which are new, which fixed, and what may not have been looked for."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gate_cases import BOT, CAMPAIGN, Contents, saved, totals_of, turn, variant

from pytest_dstfuzz.campaign.results import Minimal, TurnResult, VariantResult
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.gate.baseline import Baseline, Session, baseline_text, read_baseline
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import Gates, Judgement, Limits
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, read_report
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.view import views_of

MADE_UP, NAME = "value-made-up", "name-changed-or-made-up"
#: What each letter of a dialogue is: a variant that held, an area lost, a name lost.
KINDS = {"h": ("h", "hotel-area"), "a": ("v", "hotel-area"), "n": ("v", "hotel-name")}


#: A tracker with two weaknesses: slips of letters and of words change slots of two kinds.
TWO = (
    BOT
    + """
def two(context):
    area = "south" if len(context.user) % 2 else "north"
    return {**steady(context), "hotel-area": area, "hotel-stars": str(len(context.user.split()))}
"""
)


def made(number: int, letter: str, text: str) -> VariantResult:
    outcome, slot = KINDS[letter]
    return variant(number, outcome, slot=slot, text=f"{text}{number}")


def run(*dialogues: str, text: str = "variant ") -> dict[str, list[TurnResult]]:
    """Return a run: each text is a dialogue of one turn, its letters variants."""
    return {
        "only": [
            turn(f"D{number:03}", 0, [made(*each, text) for each in enumerate(letters)])
            for number, letters in enumerate(dialogues)
        ]
    }


def compared(
    old: Baseline,
    new: Mapping[str, Sequence[TurnResult]],
    limit: int | None = None,
    **campaign: object,
) -> Judgement:
    now = {**CAMPAIGN, **campaign}
    session = Session(new, totals_of(new), now, Contents(new), seed=0)
    judgement = judge(session, Gates(Limits(max_new_weaknesses=limit)), old)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert (
        problems(judgement.to_json(), {**schema["properties"]["gate"], "$defs": schema["$defs"]})
        == []
    )
    return judgement


def figures(judgement: Judgement) -> Any:
    assert judgement.comparison is not None
    return judgement.comparison["weaknesses"]


def finding(judgement: Judgement) -> tuple[str, float | None, str]:
    (one,) = (each for each in judgement.findings if each.gate == "max-new-weaknesses")
    return one.verdict, one.value, one.reason


def test_what_is_new_and_what_is_fixed_are_named() -> None:
    found = figures(compared(saved(run("hha", "hha")), run("hnh", "hhh")))
    (new,), (fixed,) = found["new"], found["fixed"]
    assert new == {
        "id": NAME,
        "description": "name changed or made up",
        "count": 1,
        "turns": 1,
        "estimated_failures": None,
        "looked_for": True,
    }
    assert (fixed["id"], fixed["count"], fixed["looked_for"]) == (MADE_UP, 2, True)
    assert (found["common"], found["reason"], found["caveat"]) == ([], "", "")


def test_a_weakness_of_both_builds_has_the_figures_of_both() -> None:
    found = figures(compared(saved(run("haa", "hha")), run("hha", "hhh")))
    (both,) = found["common"]
    assert (found["new"], found["fixed"]) == ([], [])
    assert both["id"] == MADE_UP
    assert both["before"] == {"count": 3, "turns": 2, "estimated_failures": None}
    assert both["after"] == {"count": 1, "turns": 1, "estimated_failures": None}


def test_a_variant_that_breaks_both_builds_in_different_ways_makes_no_weakness_new() -> None:
    old = run("hhh", "hhh")
    old["only"][0] = turn("D000", 0, [variant(0, "h"), variant(1, "v"), variant(2, "h")])
    new = run("hhh", "hhh")
    other = variant(1, "v", slot="hotel-name")
    new["only"][0] = turn("D000", 0, [variant(0, "h"), other, variant(2, "h")])
    judgement = compared(saved(old), new, 0)
    assert (figures(judgement)["new"], figures(judgement)["fixed"]) == ([], [])
    assert finding(judgement)[:2] == ("pass", 0)
    # One variant more that shows it held before: now it is new.
    new["only"][0] = turn("D000", 0, [variant(0, "v", slot="hotel-name"), other, variant(2, "h")])
    (found,) = figures(compared(saved(old), new))["new"]
    assert (found["id"], found["count"], found["looked_for"]) == (NAME, 2, True)


def test_a_weakness_of_a_variant_that_the_baseline_does_not_have_is_perhaps_new() -> None:
    old, new = run("hhh", "hhh"), run("hhh", "hhh")
    old["only"][0] = turn("D000", 0, [variant(0, "h"), variant(1, "v")])
    other = variant(1, "v", slot="hotel-name")
    more = variant(2, "v", slot="hotel-name")
    new["only"][0] = turn("D000", 0, [variant(0, "h"), other, more])
    (found,) = figures(compared(saved(old), new))["new"]
    assert (found["id"], found["looked_for"]) == (NAME, False)


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0, "regression"), (1, "regression"), (2, "pass"), (9, "pass")]
)
def test_a_limit_is_of_how_many_are_new(limit: int, verdict: str) -> None:
    judgement = compared(saved(run("hhh", "hhh")), run("nha", "hhh"), limit)
    assert finding(judgement)[:2] == (verdict, 2)
    assert (
        f"2 weaknesses are new since the baseline ({NAME}, {MADE_UP}); {limit} "
        f"{'is' if limit == 1 else 'are'} allowed"
        in finding(judgement)[2].replace(f"{MADE_UP}, {NAME}", f"{NAME}, {MADE_UP}")
    )


def test_other_variants_leave_undecided_what_the_baseline_may_not_have_looked_for() -> None:
    old, new = saved(run("hha", "hha")), run("hna", "hhh", text="other ")
    judgement = compared(old, new, 0, seed=1)
    found = figures(judgement)
    assert [each["looked_for"] for each in found["new"]] == [False]
    assert found["caveat"] == "seed: 0 in the baseline, 1 now"
    verdict, value, reason = finding(judgement)
    assert (verdict, value) == ("inconclusive", 1)
    assert reason == (
        f"1 weakness is new since the baseline ({NAME}); 0 are allowed; the baseline may not have "
        "tested 1 of them: seed: 0 in the baseline, 1 now"
    )
    assert finding(compared(old, new, 1, seed=1))[0] == "pass"


def test_texts_that_another_seed_also_drew_were_looked_for() -> None:
    judgement = compared(saved(run("hhh", "hhh")), run("hnh", "hhh"), 0, seed=1)
    assert finding(judgement)[0] == "regression"
    assert judgement.not_compared == ("seed: 0 in the baseline, 1 now",)


def test_under_another_rule_nothing_was_looked_for() -> None:
    judgement = compared(saved(run("hhh", "hhh")), run("hnh", "hhh"), 0, relation="mine")
    assert finding(judgement)[0] == "inconclusive"
    assert figures(judgement)["caveat"] == "relation: none in the baseline, mine now"


def test_dialogues_that_only_the_run_has_prove_nothing() -> None:
    judgement = compared(saved(run("hha", "hha")), run("hha", "hha", "hhn"), 0)
    assert finding(judgement)[0] == "inconclusive"
    assert figures(judgement)["caveat"] == ("not all turns are in both builds under the same names")
    fixed = figures(compared(saved(run("hha", "hha", "hhn")), run("hha", "hha")))["fixed"]
    assert [(each["id"], each["looked_for"]) for each in fixed] == [(NAME, False)]


def test_violations_that_only_one_build_shrank_are_grouped_otherwise() -> None:
    new = run("hna", "hhh")
    smaller = tuple(
        replace(one, minimal=Minimal(one.text, one.context, one.edits, (), one.changed_slots))
        if one.outcome == "violation"
        else one
        for one in new["only"][0].variants
    )
    new["only"][0] = replace(new["only"][0], variants=smaller)
    judgement = compared(saved(run("hha", "hhh")), new, 0)
    assert finding(judgement)[0] == "inconclusive"
    assert figures(judgement)["caveat"].startswith("--dst-shrink differs")


def test_a_baseline_of_an_earlier_version_is_read_and_has_no_weaknesses(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    kept = json.loads(baseline_text(saved(run("hha", "hha"))))
    assert [each["id"] for each in kept["weaknesses"]] == [MADE_UP]
    del kept["weaknesses"], kept["shrunk"]
    for each in kept["turns"]:
        each["variants"] = [item[:6] for item in each["variants"]]
    path.write_text(json.dumps(kept), encoding="utf-8")
    judgement = compared(read_baseline(path), run("hhn", "hha"), 0)
    found = figures(judgement)
    assert (found["new"], found["fixed"], found["common"]) == ([], [], [])
    assert finding(judgement) == (
        "inconclusive",
        None,
        (
            "the weaknesses are not compared with the baseline: the baseline is from an earlier "
            "pytest-dstfuzz, which did not store weaknesses"
        ),
    )


def test_a_baseline_that_groups_otherwise_is_not_compared() -> None:
    old = saved(run("hha", "hha"))
    assert old.weaknesses is not None
    other = replace(old, weaknesses=(replace(old.weaknesses[0], id="typo-time-bee1b3"),))
    judgement = compared(other, run("hha", "hha"), 0)
    assert finding(judgement)[0] == "inconclusive"
    assert figures(judgement)["reason"].startswith("the baseline is from a pytest-dstfuzz")


def test_a_file_gives_back_its_weaknesses_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    one = saved(run("han", "hha"))
    path.write_text(baseline_text(one), encoding="utf-8")
    assert read_baseline(path).weaknesses == one.weaknesses
    path.write_text(baseline_text(one).replace('"count":2', '"count":"x"'), encoding="utf-8")
    with pytest.raises(DataError, match="damaged baseline"):
        read_baseline(path)


def session(pytester: pytest.Pytester, model: str, *options: str) -> tuple[Any, Any]:
    result = pytester.runpytest_inprocess(
        *(f"--dst-model=mybot:{model}", "--dst-turns=30", "--dst-report=out.json"),
        *(
            "--dst-search=random",
            "--dst-variants=2",
            "--dst-shrink=no",
            "-odst_max_clean_drift=100%",
        ),
        *("-p", "no:cacheprovider", "--dst-baseline=base.json", "-odst_max_regression=99pp"),
        *options,
    )
    report = read_report(pytester.path / "out.json")
    return result, report


def test_new_weaknesses_in_every_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=TWO)
    session(pytester, "steady", "--dst-update-baseline")
    result, report = session(pytester, "two", "-odst_max_new_weaknesses=0")
    found = report["gate"]["comparison"]["weaknesses"]
    assert len(found["new"]) > 1
    assert all(each["looked_for"] for each in found["new"])
    assert result.ret == 1
    shown = f"{len(found['new'])} new weaknesses, 0 fixed, 0 in both"
    first = found["new"][0]
    result.stdout.fnmatch_lines(
        [
            f"failed: {len(found['new'])} weaknesses are new *; 0 are allowed",
            f"{shown}",
            f"  new: {first['description']} ({first['count']} violation*",
        ]
    )
    for text in (html.unescape(markdown_text(views_of(report))), html_text(report)):
        assert shown in text
        assert f"new: {first['description']}" in text
    bare, _ = session(pytester, "two")
    assert bare.ret == 0
    back, _ = session(pytester, "two", "--dst-update-baseline")
    back, report = session(pytester, "steady", "-odst_max_new_weaknesses=0")
    assert back.ret == 0
    back.stdout.fnmatch_lines([f"0 new weaknesses, {len(found['new'])} fixed, 0 in both"])


def test_the_limit_needs_a_baseline(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    result = pytester.runpytest_inprocess("--dst-model=mybot:steady", "-odst_max_new_weaknesses=0")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*-o dst_max_new_weaknesses needs a baseline*"])
    pytester.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-new-weaknesses = 0\n")
    result = pytester.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=3")
    assert result.ret == 0
