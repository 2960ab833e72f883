"""The rules of the verdict, and what a session is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from gate_cases import CAMPAIGN, Contents, baseline, build, judged_rate, totals_of, turn
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.gate.baseline import Baseline, Groups, Session
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import (
    Gates,
    Judgement,
    LimitFinding,
    Limits,
    Part,
    Verdict,
    judge_difference,
)
from pytest_dstfuzz.totals.troubles import TroublesTally

HELD, WORSE = ("hhhhh",) * 40, ("hhhhv",) * 40


def session(groups: Groups, **given: object) -> Session:
    made = Session(groups, totals_of(groups), CAMPAIGN, Contents(groups), seed=0)
    return replace(made, **given)  # type: ignore[arg-type]  # fields of its own


def verdict(
    old: Sequence[str], new: Sequence[str], gates: Gates | None = None, **given: object
) -> Judgement:
    return judge(session(build(*new), **given), gates or Gates(), baseline(*old))


@pytest.mark.parametrize(
    ("difference", "interval", "expected"),
    [
        (0.05, (0.01, 0.09), "regression"),
        (0.05, (0.0, 0.09), "inconclusive"),  # not above 0
        (0.05, (-0.01, 0.09), "inconclusive"),
        (0.02, (0.01, 0.03), "inconclusive"),  # not above the margin
        (0.015, (0.01, 0.02), "pass"),  # worse for sure, and by no more than is allowed
        (0.0, (-0.01, 0.019), "pass"),
        (0.0, (-0.01, 0.021), "inconclusive"),
        (-0.05, (-0.09, -0.01), "pass"),
        (0.5, None, "inconclusive"),
        (0.0, None, "inconclusive"),
    ],
)
def test_the_rule(
    difference: float, interval: tuple[float, float] | None, expected: Verdict
) -> None:
    finding = judge_difference(None, 0.02, difference, interval, 321)
    assert finding.verdict == expected
    assert ("about 321 dialogues are needed to decide" in finding.reason) == (
        expected == "inconclusive"
    )
    assert finding.dialogues_needed == (321 if expected == "inconclusive" else None)


def test_a_difference_at_the_margin_is_never_decided() -> None:
    finding = judge_difference(None, 0.02, 0.02, (0.0, 0.04), None)
    assert "more dialogues cannot decide" in finding.reason


def test_a_reason_has_all_figures() -> None:
    finding = judge_difference(Part("slot", "hotel-area"), 0.02, 0.051, (0.012, 0.09), 9)
    assert finding.reason == (
        "the failure rate of slot hotel-area changed by +5.10 pp against the baseline "
        "(interval +1.20 pp to +9.00 pp); +2.00 pp are allowed"
    )


@pytest.mark.parametrize(
    ("violations", "valid", "expected"),
    [(21, 100, "regression"), (2, 10, "pass"), (0, 0, "inconclusive")],
)
def test_the_rule_of_a_rate(violations: int, valid: int, expected: Verdict) -> None:
    assert judged_rate(0.2, violations, valid).verdict == expected


def finding(of: Verdict) -> LimitFinding:
    return LimitFinding(None, "max-regression", 0.02, of, "because")


@pytest.mark.parametrize(
    ("judgement", "expected", "status"),
    [
        (Judgement(), "pass", 0),
        (Judgement(findings=(finding("pass"),)), "pass", 0),
        (Judgement(findings=(finding("pass"), finding("inconclusive"))), "inconclusive", 7),
        (Judgement(not_compared=("seed",), findings=(finding("pass"),)), "not-compared", 9),
        (Judgement(not_compared=("seed",), findings=(finding("inconclusive"),)), "not-compared", 9),
        (Judgement(findings=(finding("inconclusive"), finding("regression"))), "regression", 1),
        (Judgement(not_compared=("seed",), findings=(finding("regression"),)), "regression", 1),
        (Judgement(findings=(finding("regression"), finding("drift"))), "drift", 8),
        (Judgement(findings=(finding("pass"),), cut_short="half of it"), "infrastructure", 6),
        (Judgement(findings=(finding("inconclusive"),), cut_short="x"), "infrastructure", 6),
        (Judgement(findings=(finding("regression"),), cut_short="x"), "regression", 1),
        (Judgement(findings=(finding("drift"),), cut_short="x"), "drift", 8),
        (Judgement(("dead",), findings=(finding("regression"),)), "infrastructure", 6),
    ],
)
def test_the_worst_decides(judgement: Judgement, expected: Verdict, status: int) -> None:
    assert judgement.verdict == expected
    assert judgement.exit_status(compared=True, policy="fail") == status
    lenient = judgement.exit_status(compared=True, policy="warn")
    assert lenient == (0 if status == 7 else status)
    allowed = judgement.exit_status(compared=True, policy="allow")
    assert allowed == (0 if status in (7, 9) else status)
    # Without a baseline there is nothing but pytest's own 0 and 1.
    alone = judgement.exit_status(compared=False, policy="warn")
    assert alone == (1 if status == 6 else lenient)


def test_a_build_that_got_worse_is_caught() -> None:
    judgement = verdict(HELD, WORSE)
    assert judgement.verdict == "regression"
    assert judgement.comparison is not None
    assert judgement.comparison["difference"] == pytest.approx(0.2)
    assert judgement.comparison["before"] == 0.0
    assert len(judgement.comparison["new_violations"]) == 40
    assert judgement.comparison["p_value"] < 0.001
    assert judgement.comparison["domains"]["hotel"]["after"] == pytest.approx(0.2)


def test_a_build_that_got_better_passes() -> None:
    assert verdict(WORSE, HELD).verdict == "pass"


def test_few_dialogues_decide_nothing() -> None:
    judgement = verdict(HELD[:3], WORSE[:3], varies=True)
    assert judgement.verdict == "inconclusive"
    assert judgement.findings[1].dialogues_needed == 6
    assert "too few dialogues for an interval" in judgement.findings[1].reason
    assert verdict(HELD[:1], WORSE[:1], varies=True).verdict == "inconclusive"


@given(st.lists(st.text("hvci", min_size=1, max_size=4), min_size=1, max_size=9))
def test_a_build_is_no_regression_of_itself(dialogues: list[str]) -> None:
    judgement = verdict(dialogues, dialogues)
    assert judgement.verdict == ("pass" if len(dialogues) >= 6 else "inconclusive")


def test_the_margin_is_the_one_that_was_given() -> None:
    gates = Gates(Limits(max_regression=0.25, max_new_violations=40))
    assert verdict(HELD, WORSE, gates).verdict == "pass"


def test_a_part_may_fail_alone() -> None:
    gates = Gates(
        Limits(max_regression=0.5),
        {
            Part("transformation", "char_drop"): Limits(max_regression=0.1),
            Part("slot", "train-day"): Limits(max_regression=0.0, max_failure_rate=0.0),
            Part("domain", "hotel"): Limits(max_failure_rate=0.1),
            Part("slot", "hotel-stars"): Limits(max_regression=0.0, max_failure_rate=0.0),
        },
    )
    found = {
        (str(each.part), each.gate): each.verdict
        for each in verdict(HELD, WORSE, gates, varies=True).findings
    }
    assert found == {
        ("None", "max-clean-drift"): "pass",
        ("None", "max-regression"): "pass",
        ("transformation char_drop", "max-regression"): "regression",
        ("slot train-day", "max-regression"): "pass",
        ("slot hotel-stars", "max-regression"): "inconclusive",
        ("slot train-day", "max-failure-rate"): "pass",
        ("domain hotel", "max-failure-rate"): "regression",
        ("slot hotel-stars", "max-failure-rate"): "inconclusive",
    }


def test_many_parts_share_their_chance_of_a_false_alarm() -> None:
    # Six dialogues that all got worse are enough for 95 %, and not for one part of ten.
    parts = {Part("slot", "hotel-area"): Limits(max_regression=0.0)}
    more = {Part("slot", f"train-{number}"): Limits(max_regression=0.0) for number in range(9)}
    alone = verdict(HELD[:6], WORSE[:6], Gates(parts=parts), varies=True).findings
    shared = verdict(HELD[:6], WORSE[:6], Gates(parts={**parts, **more}), varies=True).findings
    assert [each.verdict for each in alone] == ["pass", "regression", "regression"]
    assert [each.verdict for each in shared[1:3]] == ["regression", "inconclusive"]
    assert shared[2].dialogues_needed == 9


def test_another_campaign_is_named_and_not_compared() -> None:
    old: Baseline = replace(baseline(*HELD), campaign={**CAMPAIGN, "seed": 3})
    judgement = judge(session(build(*WORSE)), Gates(), old)
    assert judgement.not_compared == ("seed: 3 in the baseline, 0 now",)
    # The seed of the variants affects neither clean answers nor identical variants.
    assert judgement.comparison is not None
    assert judgement.comparison["clean"]["turns"] == 40
    assert judgement.comparison["difference"] is None
    assert [each.gate for each in judgement.findings] == ["max-clean-drift", "max-new-violations"]


def test_a_limit_holds_also_where_nothing_can_be_compared() -> None:
    old = replace(baseline(*HELD), campaign={})
    judgement = judge(session(build(*WORSE)), Gates(Limits(max_failure_rate=0.1)), old)
    assert judgement.verdict == "regression"


def other_texts(count: int, search: str = "random") -> Judgement:
    """Judge a build of which so many of five variants a turn have another text."""
    groups = {
        "only": [
            replace(
                result,
                variants=tuple(
                    replace(each, text=f"new {each.index}" if each.index < count else each.text)
                    for each in result.variants
                ),
            )
            for result in build(*HELD)["only"]
        ]
    }
    campaign = {**CAMPAIGN, "search": search}
    old = replace(baseline(*HELD), campaign=campaign)
    return judge(session(groups, campaign=campaign), Gates(), old)


def test_identical_variants_are_compared_and_their_share_is_named() -> None:
    judgement = other_texts(2)
    assert judgement.verdict == "pass"
    assert judgement.comparison is not None
    assert judgement.comparison["share"] == pytest.approx(0.6)


def test_too_few_identical_variants_are_not_compared() -> None:
    judgement = other_texts(3)
    assert judgement.verdict == "not-compared"
    (reason,) = judgement.not_compared
    assert reason == (
        "only 40 % of the variants are the same and were answered in both builds, fewer than 50 %"
    )
    (reason,) = other_texts(3, "agent").not_compared
    assert reason.endswith("agent may depend on predictions: compare with --dst-search=random")
    assert other_texts(5).not_compared == (
        "no variant has an answer in both the baseline and this run",
    )


def test_no_turn_in_common() -> None:
    groups = {"only": [turn("ELSEWHERE", 0, "h")]}
    assert judge(session(groups), Gates(), baseline("h")).not_compared == (
        "the baseline and this run have no turn in common",
    )


def results(letters: str) -> list[TurnResult]:
    return [turn("D", number, letter) for number, letter in enumerate(letters)]


FIRST = "the first failure: sample-test-D"


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (results("h" * 19 + "e"), []),
        (
            results("h" * 18 + "e"),
            [f"the tracker failed on 1 of 19 turns, more than 5 %; {FIRST}-t18: no answer"],
        ),
        (
            results("e"),
            [f"the tracker failed on 1 of 1 turns, more than 5 %; {FIRST}-t0: no answer"],
        ),
        ([], ["no turn was tested (none was selected, or all were skipped)"]),
        ([replace(turn("D", 0, ""), outcome="skipped")], ["no turn was tested (1 skipped)"]),
        (results("d"), ["no turn has a valid variant, so nothing was tested"]),
    ],
)
def test_what_makes_figures_mean_nothing(turns: list[TurnResult], expected: list[str]) -> None:
    assert tally_results(TroublesTally(), turns).troubles() == expected


@pytest.mark.parametrize(("held", "unstable"), [(1, 8), (0, 2), (18, 1)])
def test_replies_that_never_settle_down_fail_a_run(held: int, unstable: int) -> None:
    never = [replace(one, outcome="untested", reason=UNSTABLE) for one in results("h" * unstable)]
    turns = [*(replace(one, id=f"{one.id}-held") for one in results("h" * held)), *never]
    turns = [replace(one, outcome_kind="reply") for one in turns]
    (text,) = tally_results(TroublesTally(), [*turns, *turns]).troubles()
    assert text.startswith(f"{unstable} of {held + unstable} turns could not be tested, more than")
    assert all(told in text for told in ("--dst-compare", "threshold", "dstfuzz calibrate"))


@pytest.mark.parametrize(("held", "undecided", "told"), [(18, 1, True), (19, 1, False)])
def test_variants_that_no_majority_decides_fail_a_run(
    held: int, undecided: int, told: bool
) -> None:
    open_ones = [
        replace(
            one,
            id=f"{one.id}-open",
            variants=tuple(replace(variant, outcome="unstable") for variant in one.variants),
        )
        for one in results("h" * undecided)
    ]
    found = tally_results(TroublesTally(), [*results("h" * held), *open_ones]).troubles()
    assert [text.split(" have")[0] for text in found] == ["1 of 19 variants"] * told


@pytest.mark.parametrize(
    ("done", "missing", "ended", "short"),
    [
        (9, 1, "the budget ended", True),
        (4, 6, "the budget ended", True),
        (4, 6, "", False),
        (10, 0, "the budget ended", False),
    ],
)
def test_a_run_that_ended_early_is_told(done: int, missing: int, ended: str, short: bool) -> None:
    skipped = [replace(turn("S", 0, ""), outcome="skipped")] * (missing // 2)
    run = [*results("h" * done), *skipped]
    seen = tally_results(TroublesTally(), run)
    assert seen.cut_short(missing - missing // 2, ended) == (
        f"only {done} of 10 turns were run (the budget ended)" if short else ""
    )
    assert seen.enough(missing - missing // 2) == (done >= 5)


@pytest.mark.parametrize("limits", [Limits(max_failure_rate=1.0), Limits(min_accuracy=0.0)])
def test_a_part_of_a_run_never_passes_and_may_fail(limits: Limits) -> None:
    gates, short = Gates(limits), {"ended": "the budget of 20 calls ended", "missing": 3}
    for missing in (3, 300):
        found = judge(session(build(*HELD), **{**short, "missing": missing}), gates)
        assert found.verdict == "infrastructure"
        assert found.exit_status(compared=False, policy="warn") == 1
        assert "turns were run (the budget of 20 calls ended)" in found.to_json()["troubles"][0]
    assert judge(session(build(*HELD), **short), Gates()).verdict == "pass"
    assert verdict(HELD, HELD, **short).verdict == "infrastructure"
    assert verdict(HELD, WORSE, **short).verdict == "regression"


@pytest.mark.parametrize(("skipped", "covered"), [(3, True), (300, False)])
def test_a_run_that_a_budget_ended_is_judged_by_its_turns(skipped: int, covered: bool) -> None:
    rest = [replace(turn("S", number, ""), outcome="skipped") for number in range(skipped)]
    ended = {"ended": "the budget of 20 seconds ended", "by_budget": True}
    ((group, turns),) = build(*HELD).items()
    held = session({group: [*turns, *rest]}, **ended)
    passing = judge(held, Gates(Limits(max_failure_rate=1.0)))
    assert passing.verdict == ("pass" if covered else "infrastructure")
    assert bool(passing.covered) == covered
    broken = session({group: [*build(*WORSE)[group], *rest]}, **ended)
    assert judge(broken, Gates(Limits(max_failure_rate=0.0))).verdict == "regression"
    assert passing.exit_status(compared=False, policy="warn") == (0 if covered else 1)


@pytest.mark.parametrize(
    ("waiting", "limit", "decided"),
    [
        ([1], 0.05, True),
        # This violation may be the one that a limit of 0 % does not allow.
        ([1], 0.0, False),
        # Together with them, 5 % of the variants may break.
        ([12], 0.05, False),
        # More than 5 % of the turns.
        ([1, 1, 1], 1.0, False),
    ],
)
def test_a_budget_that_left_violations_to_confirm(
    waiting: list[int], limit: float, decided: bool
) -> None:
    ended = {"ended": "the budget of 20 seconds ended", "by_budget": True}
    rest = [
        replace(turn("S", number, ""), outcome="skipped", left_out=left_out)
        for number, left_out in enumerate(waiting)
    ]
    ((group, turns),) = build(*["hhhhh"] * 40).items()
    found = judge(session({group: [*turns, *rest]}, **ended), Gates(Limits(max_failure_rate=limit)))
    assert found.verdict == ("pass" if decided else "infrastructure")
    assert ("not asked to confirm" in found.cut_short) != decided


def test_a_dead_tracker_is_no_regression_and_no_pass() -> None:
    gates = Gates(Limits(max_failure_rate=0.0))
    for new in (["e"] * 40, ["hhhhv"] * 30 + ["e"] * 10):
        assert verdict(HELD, new, gates).verdict == "infrastructure"
    assert verdict(HELD, WORSE, ended="budget", missing=100).verdict == "infrastructure"


def test_the_object_of_the_report_is_plain() -> None:
    judgement = verdict(HELD, WORSE, Gates(parts={Part("domain", "hotel"): Limits(0.1, 0.1)}))
    found = judgement.to_json()
    assert found["verdict"] == "regression"
    assert found["findings"][2]["part"] == {"kind": "domain", "name": "hotel"}
    assert found["comparison"]["interval"] == found["findings"][1]["interval"]


@pytest.mark.parametrize(("words", "told"), [("h d d", "only 1 of 3 turns"), ("h h d", "")])
def test_turns_without_a_valid_variant_are_told(words: str, told: str) -> None:
    judged = judge(session(build(words)), Gates(Limits(max_failure_rate=0.5)))
    assert judged.verdict == "pass"
    assert any(told in one for one in judged.covered) == bool(told)
