"""Variants that held in the baseline and break now: facts, if the bot repeats itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from gate_cases import CAMPAIGN, Contents, build, saved, totals_of

from pytest_dstfuzz.campaign.results import TurnResult, Votes
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.gate.baseline import Session, baseline_text, read_baseline
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import Gates, Judgement, Limits
from pytest_dstfuzz.report.json_report import SCHEMA_PATH
from pytest_dstfuzz.report.packing import problems

Turns = Mapping[str, Sequence[TurnResult]]
HELD, ONE_BROKE = ["hhhhh"] * 40, [*["hhhhh"] * 39, "hvhhh"]


def compared(old: Turns, new: Turns, limit: int | None = None, **given: object) -> Judgement:
    session = Session(new, totals_of(new), CAMPAIGN, Contents(new), seed=0)
    session = replace(session, **given)  # type: ignore[arg-type]  # fields of its own
    judgement = judge(session, Gates(Limits(max_new_violations=limit)), saved(old))
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert (
        problems(judgement.to_json(), {**schema["properties"]["gate"], "$defs": schema["$defs"]})
        == []
    )
    return judgement


def figures(judgement: Judgement) -> dict[str, object]:
    assert judgement.comparison is not None
    found: dict[str, object] = judgement.comparison["violations"]
    return found


def changed(groups: Turns, number: int, **given: object) -> Turns:
    """Return results of which one turn has other fields."""
    turns = list(groups["only"])
    turns[number] = replace(turns[number], **given)  # type: ignore[arg-type]  # fields of a turn
    return {"only": turns}


def test_one_variant_that_held_and_breaks_fails_a_build() -> None:
    judgement = compared(build(*HELD), build(*ONE_BROKE))
    assert judgement.verdict == "regression"
    (finding,) = [each for each in judgement.findings if each.verdict == "regression"]
    assert (finding.gate, finding.value, finding.limit) == ("max-new-violations", 1, 0)
    assert "sample-test-D039-t0-v1" in finding.reason
    assert figures(judgement)["new"] == ["sample-test-D039-t0-v1"]


def test_known_violations_and_builds_without_new_ones_pass() -> None:
    judgement = compared(build(*ONE_BROKE), build(*ONE_BROKE))
    assert judgement.verdict == "pass"
    assert figures(judgement)["new"] == []
    assert figures(judgement)["known"] == ["sample-test-D039-t0-v1"]
    assert compared(build(*ONE_BROKE), build(*HELD)).verdict == "pass"


@pytest.mark.parametrize(("before", "new"), [("h", 1), ("i", 1), ("c", 0), ("e", 0), ("d", 0)])
def test_only_variants_at_which_nothing_had_broken_are_new(before: str, new: int) -> None:
    old = [*["hhhhh"] * 39, f"h{before}hhh"]
    assert len(figures(compared(build(*old), build(*ONE_BROKE)))["new"]) == new  # type: ignore[arg-type]


def test_a_changed_clean_answer_has_a_check_of_its_own() -> None:
    other = changed(build(*ONE_BROKE), 39, clean_state=BeliefState({"hotel-area": "south"}))
    judgement = compared(build(*HELD), other)
    assert judgement.verdict == "drift"
    assert figures(judgement)["new"] == []


def test_the_limit_may_allow_some() -> None:
    assert compared(build(*HELD), build(*ONE_BROKE), limit=1).verdict == "pass"
    assert compared(build(*HELD), build("hvvhh", *HELD[1:]), limit=1).verdict == "regression"


SHAKY = Votes(asked=5, changed=3, kept=2, same=2, clean=4, against=1)


@pytest.mark.parametrize("which", ["before", "now"])
@pytest.mark.parametrize("how", ["clean votes", "votes", "repeated"])
def test_the_paired_test_decides_on_a_bot_that_does_not_repeat_itself(which: str, how: str) -> None:
    def varying(groups: Turns) -> Turns:
        first = groups["only"][0]
        if how == "clean votes":
            return changed(groups, 0, clean_votes=(0, 0, 1))
        change = {"votes": SHAKY} if how == "votes" else {"repeated": False}
        variant = replace(first.variants[0], **change)  # type: ignore[arg-type]  # one of them
        return changed(groups, 0, variants=(variant, *first.variants[1:]))

    old, new = build(*HELD), build(*ONE_BROKE)
    old, new = (varying(old), new) if which == "before" else (old, varying(new))
    judgement = compared(old, new)
    assert figures(judgement)["repeats"] is False
    assert judgement.verdict == "pass"
    assert compared(old, new, limit=0).verdict == "regression"


def test_what_the_preflight_saw_counts() -> None:
    assert compared(build(*HELD), build(*ONE_BROKE), varies=True).verdict == "pass"


def test_answers_that_are_judged_otherwise_are_not_compared() -> None:
    campaign = {**CAMPAIGN, "validity": "strict"}
    judgement = compared(build(*HELD), build(*ONE_BROKE), limit=0, campaign=campaign)
    (finding,) = [each for each in judgement.findings if each.gate == "max-new-violations"]
    assert finding.verdict == "inconclusive"
    assert "validity" in finding.reason
    assert figures(judgement)["new"] == []


def test_the_file_says_whether_the_bot_repeated_itself(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    same, varied = build(*HELD), changed(build(*HELD), 0, clean_votes=(0, 1, 0))
    for groups, repeats in ((same, True), (varied, False)):
        path.write_text(baseline_text(saved(groups)), encoding="utf-8")
        assert read_baseline(path).repeats is repeats
    lines = baseline_text(saved(same)).splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "repeats" not in line), encoding="utf-8")
    assert read_baseline(path).repeats is None
