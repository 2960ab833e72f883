"""Gates and baselines of sessions that test several relations."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from gate_cases import CAMPAIGN, Contents, build, saved, totals_of, turn, variant

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import ContextEdits, SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.gate.baseline import (
    Session,
    baseline_text,
    by_relation,
    digest_of,
    group_name,
    read_baseline,
)
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import Gates, Judgement, Limits, Part, check_relations
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Move
from pytest_dstfuzz.report.figures import list_moved_dialogues, relation_lines
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, RunInfo, build_report
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.totals.troubles import TroublesTally

Groups = Mapping[str, Sequence[TurnResult]]
SWAP = Part("relation", "value-swap")
#: Lets the paired test alone decide on variants that held before.
MANY_NEW = Gates(Limits(max_new_violations=1000))


def under(
    relation: str, *dialogues: str, side: str = "should-change"
) -> dict[str, list[TurnResult]]:
    """Return a run of one relation, as `build` makes them."""
    (turns,) = build(*dialogues).values()
    made = [replace(one, relation=relation, side=side) for one in turns]  # type: ignore[arg-type]
    return {group_name("only", relation): made}


def run(**relations: str) -> dict[str, list[TurnResult]]:
    """Return a run of 40 dialogues of one turn with these variants for each relation."""
    found: dict[str, list[TurnResult]] = {}
    for name, letters in relations.items():
        side = "should-change" if name == "swap" else "should-not-change"
        known = {"swap": "value-swap", "plain": "metamorphic"}.get(name, name)
        found |= under(known, *[letters] * 40, side=side)
    return found


def judged(
    groups: Groups,
    gates: Gates | None = None,
    old: Groups | None = None,
    campaign: Mapping[str, object] = CAMPAIGN,
    *,
    by_name: bool = False,
) -> Judgement:
    results = [one for turns in groups.values() for one in turns]
    totals = totals_of(groups, own_edits=("value-swap", "duplicate"))
    session = Session(groups, totals, campaign, Contents(groups), seed=0)
    asked = {one.relation: "turn" for one in results} if by_name else None
    return judge(session, gates or Gates(), None if old is None else saved(old), asked)


def test_a_limit_of_the_session_holds_for_each_relation_that_expects_no_change() -> None:
    groups = run(plain="hhhh", duplicate="hhhv", swap="vvvv")
    found = judged(groups, Gates(Limits(max_failure_rate=0.1))).findings
    assert [(one.part, one.verdict, one.value) for one in found] == [
        (Part("relation", "metamorphic"), "pass", 0.0),
        (Part("relation", "duplicate"), "regression", 0.25),
    ]
    assert "the failure rate of relation duplicate 25.00 %" in found[1].reason


def test_a_relation_may_have_a_limit_of_its_own_and_one_that_expects_change_has_only_that() -> None:
    groups = run(plain="hhhh", duplicate="hhhv", swap="hvvv")
    own = {SWAP: Limits(max_failure_rate=0.5), Part("relation", "duplicate"): Limits(0.3)}
    found = judged(groups, Gates(Limits(max_failure_rate=0.1), own)).findings
    assert [(str(one.part), one.verdict, one.limit) for one in found] == [
        ("relation metamorphic", "pass", 0.1),
        ("relation duplicate", "pass", 0.3),
        ("relation value-swap", "regression", 0.5),
    ]


def test_limits_of_what_is_not_tested_judge_nothing_and_say_so() -> None:
    own = Gates(parts={SWAP: Limits(max_failure_rate=0.5)})
    (found,) = judged(run(plain="hhhh"), own).findings
    why = "there are limits for relation value-swap, but none for metamorphic"
    why = f"no limit applies to this run: {why}"
    assert (found.verdict, found.reason) == ("inconclusive", why)
    assert judged(run(plain="hhhh"), own).verdict == "inconclusive"


#: Limits that judge nothing in a run under ``metamorphic``, in which no variant is of that slot.
IDLE = [
    Gates(parts={SWAP: Limits(max_failure_rate=0.5)}),
    Gates(parts={Part("slot", "taxi-leave"): Limits(max_failure_rate=0.05)}),
    Gates(parts={Part("domain", "taxi"): Limits(max_failure_rate=0.05)}),
    Gates(parts={Part("transformation", "word_swap"): Limits(max_failure_rate=0.05)}),
    Gates(Limits(min_accuracy=0.0), {Part("slot", "taxi-leave"): Limits(max_failure_rate=0.05)}),
]


@pytest.mark.parametrize("gates", IDLE)
def test_violations_that_no_limit_judges_fail_the_gate(gates: Gates) -> None:
    held, broken = run(plain="hhhh"), run(plain="hhhv")
    assert judged(held, gates).verdict == "inconclusive"
    found = judged(broken, gates)
    assert found.verdict == "regression"
    assert "40 violations are under no limit" in found.findings[-1].reason
    # Such violations fail their tests.
    session = Session(broken, totals_of(broken), CAMPAIGN, Contents(broken), seed=0)
    assert judge(session, gates, recorded=False).verdict == "inconclusive"
    beside = Gates(Limits(**{**gates.whole, "max_failure_rate": 0.9}), gates.parts)
    assert judged(broken, beside).verdict != "regression"
    assert judged(broken, Gates(Limits(min_accuracy=0.0))).verdict != "regression"


DROP, SWAPPED = Part("transformation", "char_drop"), Part("transformation", "word_swap")
AREA, DAY = Part("slot", "hotel-area"), Part("slot", "train-day")


@pytest.mark.parametrize(
    ("cause", "parts", "earlier", "verdict", "noted"),
    [
        ("context", [DROP], "char_drop", "regression", False),
        ("context", [DROP, DAY], "char_drop", "regression", False),
        (None, [DROP, DAY], "char_drop", "regression", False),
        # The earlier turn has the edit of the limit.
        ("context", [SWAPPED, DAY], "word_swap", "regression", False),
        ("both", [SWAPPED, DAY], "word_swap", "regression", False),
        # A limit counts the violations.
        ("context", [DROP, AREA], "char_drop", "pass", False),
        ("both", [DROP, DAY], "char_drop", "pass", False),
        ("turn", [DROP, DAY], "char_drop", "pass", False),
        # No limit is about their transformations or slots.
        ("context", [SWAPPED, DAY], "char_drop", "pass", True),
        ("turn", [SWAPPED, DAY], "word_swap", "pass", True),
        ("context", [DAY], "char_drop", "pass", True),
    ],
)
def test_violations_by_edits_of_earlier_turns_count_in_a_limit_or_fail_the_gate(
    cause: str | None, parts: list[Part], earlier: str, verdict: str, noted: bool
) -> None:
    edited = (ContextEdits(0, (Edit(earlier, "any", 0, 1, "v", ""),)),)
    made = variant(0, "v", cause=cause)
    broken = [made if cause == "turn" else replace(made, context_edits=edited), variant(1, "h")]
    if SWAPPED in parts:
        # The limit has a figure of its own.
        broken.append(variant(2, "h", transformation="word_swap"))
    groups = {"only": [turn(f"D{number:03}", 0, broken) for number in range(40)]}
    found = judged(groups, Gates(parts={part: Limits(max_failure_rate=1.0) for part in parts}))
    assert (found.verdict, bool(found.covered)) == (verdict, noted)
    session = Session(groups, totals_of(groups), CAMPAIGN, Contents(groups), seed=0)
    limits = Gates(parts={part: Limits(max_failure_rate=1.0) for part in parts})
    # Violations that fail their tests need no limit.
    failing = judge(session, limits, recorded=False)
    assert (failing.verdict, failing.covered) == ("pass", ())
    own = {Part("relation", "metamorphic"): Limits(max_failure_rate=1.0)}
    whole = judged(groups, Gates(parts={**limits.parts, **own}))
    assert (whole.verdict, whole.covered) == ("pass", ())


def test_relations_without_a_limit_are_named_and_the_verdict_stays() -> None:
    groups, limit = run(plain="hhhh", swap="vvvv"), Gates(Limits(max_failure_rate=0.1))
    found = judged(groups, limit)
    assert (found.verdict, found.not_judged) == ("pass", ("value-swap",))
    assert found.to_json()["not_judged"] == ["value-swap"]
    compared = judged(groups, MANY_NEW, run(plain="hhhh", swap="hhhh"))
    assert (compared.verdict, compared.not_judged) == ("pass", ("value-swap",))
    moved = relation_lines(compared.comparison or {})
    assert moved == [
        "  metamorphic: 0.00 % in the baseline, 0.00 % now, on 160 variants: 0 new, 0 gone",
        "  value-swap: 0.00 % in the baseline, 100.00 % now, on 160 variants: 160 new, 0 gone",
    ]
    own = Gates(Limits(max_failure_rate=0.1), {SWAP: Limits(1.0)})
    assert judged(groups, own).not_judged == ()
    assert judged(groups, Gates(parts={SWAP: Limits(1.0)})).not_judged == ("metamorphic",)
    # A limit of the accuracy alone is about none of them: violations fail their tests.
    assert judged(groups, Gates(Limits(min_accuracy=0.0))).not_judged == ()
    assert judged(groups).not_judged == ()


def test_a_limit_that_holds_for_nothing_says_so() -> None:
    (found,) = judged(run(swap="hhhh"), Gates(Limits(max_failure_rate=0.1))).findings
    assert (found.verdict, found.part) == ("inconclusive", None)
    assert "[tool.dstfuzz.gates.relation.value-swap]" in found.reason
    assert judged(run(swap="vvvv"), Gates(Limits(max_failure_rate=0.1))).verdict == "regression"
    assert judged(run(swap="vvvv"), MANY_NEW, run(swap="hhhh")).verdict == "pass"
    gates = Gates(Limits(max_regression=0.1, max_new_violations=160))
    found = judged(run(swap="vvvv"), gates, run(swap="hhhh")).findings[-2]
    assert (found.gate, found.verdict) == ("max-regression", "inconclusive")


def test_each_relation_is_compared_with_itself() -> None:
    old, new = run(plain="hhhhh", swap="hhhhh"), run(plain="hhhhh", swap="hhhhv")
    judgement = judged(new, MANY_NEW, old)
    assert judgement.verdict == "pass"
    assert judgement.comparison is not None
    assert judgement.comparison["difference"] == 0.0
    assert judgement.comparison["relations"] == {
        "metamorphic": {"variants": 200, "before": 0.0, "after": 0.0, "new": 0, "gone": 0},
        "value-swap": {"variants": 200, "before": 0.0, "after": 0.2, "new": 40, "gone": 0},
    }
    assert judgement.comparison["clean"]["turns"] == 40
    assert judgement.comparison["turns"] == 40
    gates = Gates(MANY_NEW.whole, {SWAP: Limits(max_regression=0.05)})
    failed = judged(new, gates, old)
    assert failed.verdict == "regression"
    assert [str(one.part) for one in failed.findings if one.verdict == "regression"] == [str(SWAP)]


def test_each_relation_that_expects_no_change_may_not_get_worse() -> None:
    old, new = run(plain="hhhhh", duplicate="hhhhh"), run(plain="hhhhh", duplicate="hhhhv")
    found = [one for one in judged(new, old=old).findings if one.gate == "max-regression"]
    assert [(str(one.part), one.verdict) for one in found] == [
        ("relation metamorphic", "pass"),
        ("relation duplicate", "regression"),
    ]


def test_a_relation_of_one_side_is_told_and_not_compared() -> None:
    plain, both = run(plain="hhhhh"), run(plain="hhhhh", swap="vvvvv", duplicate="vvvvv")
    judgement = judged(both, Gates(Limits(max_new_weaknesses=0)), plain)
    assert judgement.verdict == "pass"
    assert judgement.comparison is not None
    assert judgement.comparison["only_run_relations"] == ["value-swap", "duplicate"]
    assert judgement.comparison["weaknesses"]["new"] == []
    told = dict(list_moved_dialogues(judgement.comparison))
    assert told["new relations, not compared"] == ["value-swap", "duplicate"]
    back = judged(plain, old=both)
    assert back.comparison is not None
    assert dict(list_moved_dialogues(back.comparison))["removed relations"] == [
        "duplicate",
        "value-swap",
    ]
    assert back.comparison["weaknesses"]["fixed"] == []
    # A limit of it cannot be judged.
    named = judged(both, Gates(parts={SWAP: Limits(max_regression=0.1)}), plain)
    assert named.verdict == "inconclusive"


OTHER_SEARCH = {**CAMPAIGN, "search": "greedy", "attack": "cumulative", "edits": ["emoji"]}


def test_own_edits_are_compared_whatever_the_search() -> None:
    old, new = run(duplicate="hhhhh", swap="hhhhh"), run(duplicate="hhhhv", swap="hhhhv")
    gates = Gates(Limits(max_new_weaknesses=0), {SWAP: Limits(max_regression=0.05)})
    judgement = judged(new, gates, old, OTHER_SEARCH)
    assert judgement.not_compared == ()
    assert [(one.gate, str(one.part), one.verdict) for one in judgement.findings[1:]] == [
        ("max-new-weaknesses", "None", "regression"),
        ("max-regression", "relation duplicate", "regression"),
        ("max-regression", "relation value-swap", "regression"),
        ("max-new-violations", "None", "regression"),
    ]
    assert judgement.comparison is not None
    assert [each["looked_for"] for each in judgement.comparison["weaknesses"]["new"]] == [True] * 2
    # The options that decide their rewrites must be equal too.
    other = judged(new, gates, old, {**OTHER_SEARCH, "seed": 1})
    assert other.not_compared == ("seed: 0 in the baseline, 1 now",)


def test_edits_of_another_search_are_not_compared_beside_own_ones() -> None:
    old, new = run(plain="hhhhh", duplicate="hhhhh"), run(plain="hhhhv", duplicate="hhhhh")
    area = Part("slot", "hotel-area")
    judgement = judged(new, Gates(parts={area: Limits(max_regression=0.1)}), old, OTHER_SEARCH)
    assert judgement.verdict == "inconclusive"
    found = {str(one.part): one for one in judgement.findings if one.gate == "max-regression"}
    assert {part: one.verdict for part, one in found.items()} == {
        "relation metamorphic": "inconclusive",
        "relation duplicate": "pass",
        "slot hotel-area": "inconclusive",
    }
    assert "search: random in the baseline, greedy now" in found["relation metamorphic"].reason
    assert "because the relation metamorphic is not" in found["slot hotel-area"].reason


def test_limits_of_parts_say_why_a_relation_with_other_variants_is_not_compared() -> None:
    old = run(plain="hhhhh", duplicate="hhhhh")
    others = [variant(number, "h", text=f"other words {number}") for number in range(5)]
    new = old | {"only": [replace(one, variants=tuple(others)) for one in old["only"]]}
    area = Part("slot", "hotel-area")
    _, *found = judged(new, Gates(parts={area: Limits(max_regression=0.1)}), old).findings
    assert [(str(one.part), one.verdict) for one in found] == [
        ("relation metamorphic", "inconclusive"),
        ("relation duplicate", "pass"),
        ("slot hotel-area", "inconclusive"),
    ]
    assert found[0].reason.endswith(
        "is not compared: no variant has an answer in both the baseline and this run"
    )
    assert found[2].reason == (
        "slot hotel-area is not compared, because the relation metamorphic is not: no "
        "variant has an answer in both the baseline and this run"
    )


def test_without_a_relation_in_common_the_clean_answers_are_compared() -> None:
    judgement = judged(run(swap="hhhhh"), old=run(plain="hhhhh"))
    assert judgement.not_compared == (
        (
            "the baseline and this run have no common relation: "
            "metamorphic in the baseline, value-swap now"
        ),
    )
    assert judgement.comparison is not None
    assert judgement.comparison["clean"]["turns"] == 40


def test_one_relation_says_nothing_of_relations() -> None:
    comparison = judged(run(plain="hhhhv"), old=run(plain="hhhhh")).comparison
    assert comparison is not None
    assert not {"relations", "only_run_relations", "only_baseline_relations"} & comparison.keys()


def test_failures_of_the_tracker_do_not_hide_behind_turns_without_a_rewrite() -> None:
    few = run(plain="hhhhe")["only"][:6]
    none = [
        replace(one, outcome="inapplicable")
        for one in run(swap="h" * 5)["only relation=value-swap"]
    ]
    assert tally_results(TroublesTally(), [*few, *none * 10]).troubles() == [
        (
            "the tracker failed on 6 of 6 turns (relation metamorphic), more than 5 %; the first "
            "failure: sample-test-D000-t0: no answer"
        )
    ]


def rewritten(number: int, text: str, letter: str = "h") -> VariantResult:
    """Return a rewrite of a relation."""
    edits = (Edit("value-swap", "value", 0, 1, "v", "w"),)
    return replace(variant(number, letter, text=text), edits=edits)


def test_rewrites_are_found_again_under_another_number() -> None:
    def one(*variants: VariantResult) -> dict[str, list[TurnResult]]:
        made = replace(turn("D0", 0, variants), relation="value-swap", side="should-change")
        return {"only": [made]}

    old = one(rewritten(0, "to ely"), rewritten(1, "to york"))
    new = one(rewritten(0, "to hull"), rewritten(1, "to ely", "v"), rewritten(2, "to york"))
    comparison = judged(new, old=old).comparison
    assert comparison is not None
    assert (comparison["variants"], comparison["share"]) == (2, 2 / 3)
    assert comparison["new_violations"] == [["sample-test-D0-t0", 1]]


def test_of_rounds_that_moved_all_words_are_in_the_digest() -> None:
    aligned = variant(0, "h")
    rounds = (SeenRound("", "hello"), SeenRound("Where?", "variant 0"))
    moved = replace(aligned, exchanges=rounds, moves=(Move("repeat", 0, 0),))
    other = replace(moved, exchanges=(rounds[0], SeenRound("When?", "variant 0")))
    assert len({digest_of(aligned), digest_of(moved), digest_of(other)}) == 3


def test_the_file_keeps_the_relation_with_the_group(tmp_path: Path) -> None:
    old = saved(run(plain="h", swap="v"))
    assert list(old.groups) == ["only", "only relation=value-swap"]
    path = tmp_path / "baseline.json"
    path.write_text(baseline_text(old), encoding="utf-8")
    found = read_baseline(path)
    assert {name: list(groups) for name, groups in by_relation(found.groups).items()} == {
        "metamorphic": ["only"],
        "value-swap": ["only"],
    }


def test_limits_of_unknown_relations_are_refused_with_the_nearest() -> None:
    gates = Gates(parts={Part("relation", "value-swop"): Limits(0.1)})
    with pytest.raises(UserError, match="value-swap"):
        check_relations(gates, ("metamorphic", "value-swap"), {})
    check_relations(gates, ("value-swop",), {})


def test_reports_have_each_relation_of_the_comparison() -> None:
    old, new = run(plain="hhhhh", swap="hhhhh"), run(plain="hhhhh", swap="hhhhv", duplicate="h")
    gates = Gates(Limits(max_failure_rate=0.1), {SWAP: Limits(max_regression=0.05)})
    judgement = judged(new, gates, old)
    # Edits of these results find no place in their texts, and a page would ask for that.
    results = [
        replace(one, variants=tuple(replace(each, edits=()) for each in one.variants))
        for turns in new.values()
        for one in turns
    ]
    settings = Settings.of(relation="metamorphic,value-swap,duplicate")
    info = RunInfo("sample", "test", "plain", "own", 40, 40)
    report = build_report(results, settings, info, judgement.to_json())
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []
    for text in (html_text(report), html.unescape(markdown_text(views_of(report)))):
        assert "new relations, not compared" in text.lower()
        assert "relation value-swap" in text
    row = html_text(report).split('<th scope="row">value-swap</th>')[1].split("</tr>")[0]
    assert re.findall(r">([^<>]+ %|[^<>]+pp)<", row) == ["0.00 %", "20.00 %", "+20.00 pp"]


PARTLY = "value-swap applied to 12 of 40 turns; main reason for the others (28)"


def partly_applied(relation: str, applied: int) -> dict[str, list[TurnResult]]:
    """Return a run of 40 turns to the first of which a relation applied."""
    (turns,) = under(relation, *["h"] * 40).values()
    others = [
        replace(one, outcome="inapplicable", reason="the value is said twice", variants=())
        for one in turns[applied:]
    ]
    return {group_name("only", relation): [*turns[:applied], *others]}


@pytest.mark.parametrize(
    ("applied", "verdict", "partly"),
    [
        (40, "pass", ()),
        (12, "pass", (f"{PARTLY}: the value is said twice",)),
        (0, "inconclusive", ()),
    ],
)
def test_a_verdict_says_to_how_many_turns_a_relation_applied(
    applied: int, verdict: str, partly: tuple[str, ...]
) -> None:
    groups = {**run(plain="h"), **partly_applied("value-swap", applied)}
    limits = Gates(Limits(max_failure_rate=1.0), {SWAP: Limits(1.0)})
    found = judged(groups, limits, by_name=True)
    assert (found.verdict, found.partly_applied) == (verdict, partly)
    assert found.to_json()["partly_applied"] == list(partly)
    reasons = [one.reason for one in found.findings if one.gate == "applies"]
    assert ("value-swap applied to none of 40 turns" in " ".join(reasons)) == (not applied)
    # Nobody asked for it by name.
    every = judged(groups, limits)
    assert not every.partly_applied
    assert not any(one.gate == "applies" for one in every.findings)
