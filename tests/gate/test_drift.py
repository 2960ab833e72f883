"""The clean answers of two builds: what changed, what is allowed, and what labels say of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from gate_cases import Contents, build, saved, totals_of
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.gate.baseline import Session, make_baseline
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.pairing import CleanPair, Drift, DriftTally, judge_drift
from pytest_dstfuzz.gate.verdict import Gates, Limits
from pytest_dstfuzz.totals.troubles import AnswersTally

State = dict[str, str]
STATES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


def one_answer(turns: Iterable[TurnResult]) -> str:
    return tally_results(AnswersTally(), turns).text


def clean_drift(pairs: Iterable[CleanPair]) -> Drift:
    tally = DriftTally()
    for one in pairs:
        tally.add(one)
    return tally.drift()


def pair(before: State, after: State, label: State | None = None) -> CleanPair:
    return CleanPair("t", "D", before, after, label)


def test_what_changed_is_named_the_most_frequent_first() -> None:
    pairs = [
        pair({"origin": "bern", "date": "may"}, {}),
        pair({"origin": "bern", "date": "may"}, {"date": "june"}),
        pair({"date": "may"}, {"date": "may", "seats": "2"}),
        pair({"date": "may"}, {"date": "may"}),
    ]
    assert judge_drift(clean_drift(pairs), 0.0).reason == (
        "clean answers changed at 3 of 4 turns: slots lost origin (2), date (1); gained seats (1); "
        "changed date (1); 75.00 % of the turns, 0.00 % are allowed"
    )


def test_the_answers_that_changed_stand_in_the_report() -> None:
    moved = clean_drift([pair({"a": "1", "b": "2"}, {"b": "3", "c": "4"}), pair({}, {})])
    slots = [("a", "1", None), ("b", "2", "3"), ("c", None, "4")]
    names = ("slot", "before", "after")
    plain = [dict(zip(names, values, strict=True)) for values in slots]
    assert moved.to_json()["answers"] == [{"turn": "t", "slots": plain}]
    (shown,) = moved.to_json(hidden=True)["answers"]
    assert [tuple(item.values()) for item in shown["slots"]] == [
        ("a", "x", None),
        ("b", "x", "x"),
        ("c", None, "x"),
    ]


def test_no_more_slots_are_named_than_are_read() -> None:
    many = dict.fromkeys("abcdefgh", "1")
    assert "lost a (1), b (1), c (1), d (1), e (1) and 3 more;" in (
        judge_drift(clean_drift([pair(many, {})]), 0.0).reason
    )


@pytest.mark.parametrize(("limit", "told"), [(0.0, True), (1.0, False)])
def test_answers_that_vary_excuse_nothing_but_are_told(limit: float, told: bool) -> None:
    finding = judge_drift(clean_drift([pair({"a": "1"}, {})]), limit, disagreement=0.125)
    assert finding.verdict == ("drift" if told else "pass")
    assert ("differ in 12.50 % of cases" in finding.reason) is told


@pytest.mark.parametrize(("limit", "expected"), [(0.0, "drift"), (0.24, "drift"), (0.25, "pass")])
def test_the_limit_is_a_share_of_the_turns(limit: float, expected: str) -> None:
    same = [pair({"a": "1"}, {"a": "1"})] * 3
    assert judge_drift(clean_drift([*same, pair({"a": "1"}, {})]), limit).verdict == expected


@pytest.mark.parametrize(
    ("before", "after", "label", "excused"),
    [
        ({}, {"a": "1"}, {"a": "1"}, True),
        ({"a": "1"}, {}, {"a": "1"}, False),
        # Wrong as a whole before and after: the slots decide, if labels are ever met at all.
        ({"a": "1"}, {}, {"a": "1", "b": "2"}, False),
        ({"a": "2"}, {"a": "1"}, {"a": "1", "b": "2"}, True),
        # Nothing is a better answer than something wrong only where nothing was said.
        ({"a": "1", "b": "2"}, {}, {"a": "1"}, False),
        ({"a": "1", "c": "2"}, {"c": "2"}, {"a": "1", "b": "1"}, False),
        ({"a": "1"}, {}, {}, True),
        ({"a": "1"}, {}, None, False),
    ],
)
def test_labels_may_speak_for_the_new_answers(
    before: State, after: State, label: State | None, excused: bool
) -> None:
    met = pair({"a": "1"}, {"a": "1"}, {"a": "1"})
    finding = judge_drift(clean_drift([pair(before, after, label), met]), 0.0)
    assert finding.verdict == ("pass" if excused else "drift")
    assert ("so the changed answers are not worse" in finding.reason) == excused


@pytest.mark.parametrize("after", [{}, {"y": "2"}])
def test_labels_that_no_answer_meets_say_nothing(after: State) -> None:
    # The tracker has other names for slots than the data; an empty label is met by chance.
    pairs = [pair({"x": "1"}, after, {"a": "1"}), pair({}, {}, {}), pair({"x": "1"}, {}, {})]
    assert judge_drift(clean_drift(pairs), 0.0).verdict == "drift"


@pytest.mark.parametrize("after", [{"a": "1"}, {"a": "1", "b": "3"}])
def test_labels_without_a_slot_do_not_excuse_its_loss(after: State) -> None:
    # By such labels every answer without the slot would be right.
    pairs = [
        pair({"a": "1", "b": "2"}, after, {"a": "1"}),
        pair({"a": "1"}, {"a": "1"}, {"a": "1"}),
    ]
    assert judge_drift(clean_drift(pairs), 0.0).verdict == "drift"
    named = pair({"b": "2"}, {"b": "2"}, {"b": "2"})
    assert judge_drift(clean_drift([*pairs, named]), 0.0).verdict == "pass"


def test_labels_speak_for_their_own_turns_alone() -> None:
    better = [pair({}, {"a": "1"}, {"a": "1"})] * 9
    finding = judge_drift(clean_drift([*better, pair({"a": "1"}, {})]), 0.05)
    assert finding.verdict == "drift"
    assert finding.reason.endswith("10.00 % of the turns without a label, 5.00 % are allowed")
    assert "accuracy on the 9 turns with labels: 0.00 % in the baseline, 100.00 % now" in (
        finding.reason
    )


@given(st.lists(st.tuples(STATES, STATES, st.none() | STATES), min_size=1, max_size=6))
def test_every_change_counts_and_every_slot_adds_up(
    cases: list[tuple[State, State, State | None]],
) -> None:
    pairs = [pair(*case) for case in cases]
    drift = clean_drift(pairs)
    assert len(drift.changed) == sum(before != after for before, after, _ in cases)
    slots = sum(sum(counts.values()) for counts in drift.slots.values())
    assert slots == sum(
        before.get(slot) != after.get(slot)
        for before, after, _ in cases
        for slot in {*before, *after}
    )
    back = clean_drift([pair(after, before, label) for before, after, label in cases])
    assert back.slots["lost"] == drift.slots["gained"]
    if drift.excused:
        assert drift.right_after >= drift.right_before
    assert judge_drift(drift, 1.0).verdict == "pass"


def told(count: int, state: State, letters: str = "hh") -> dict[str, list[TurnResult]]:
    """Return a run of so many turns with one answer."""
    turns = build(*[letters] * count)["only"]
    return {"only": [replace(turn, clean_state=BeliefState(state)) for turn in turns]}


@pytest.mark.parametrize("state", [{}, {"hotel-area": "north"}])
def test_twenty_turns_with_one_answer_are_no_accident(state: State) -> None:
    assert one_answer(told(19, state)["only"]) == ""
    reason = one_answer(told(20, state)["only"])
    assert ("are the same: hotel-area;" in reason) == bool(state)
    assert ("are empty;" in reason) == (not state)
    other = build("h")["only"]
    assert one_answer([*told(20, state)["only"], replace(other[0], id="x")]) == ""


def test_a_turn_of_many_tests_is_one_turn() -> None:
    assert one_answer(told(1, {})["only"] * 40) == ""


def test_a_tracker_that_fails_at_some_turns_gives_one_answer_to_the_others() -> None:
    turns = told(20, {})["only"]
    assert "to all 19 turns" in one_answer([*turns[1:], replace(turns[0], clean_state=None)])
    skipped = replace(turns[0], clean_state=None, outcome="skipped")
    assert one_answer([*turns[1:], skipped]) == ""


def session(groups: dict[str, list[TurnResult]]) -> Session:
    return Session(groups, totals_of(groups), {"search": "random"}, Contents(groups), seed=0)


def test_one_answer_fails_without_any_limit() -> None:
    assert judge(session(told(20, {})), Gates()).verdict == "regression"
    assert judge(session(told(20, {})), Gates(Limits(max_failure_rate=1.0))).verdict == "regression"
    # Of two trackers, or of tests with settings of their own, each for itself and all together.
    both = {**told(20, {}), "other": build(*["h"] * 20)["only"]}
    assert judge(session(both), Gates()).verdict == "regression"
    few = told(20, {})["only"]
    assert judge(session({"a": few[:10], "b": few[10:]}), Gates()).verdict == "regression"
    assert judge(session({"a": few[:10], "b": few[:10]}), Gates()).verdict == "pass"


def test_values_that_are_kept_back_are_compared_and_judged_by_labels() -> None:
    label = BeliefState({"a": "1"})
    old = {"x": [replace(turn, label=label) for turn in told(3, {"a": "1"})["only"]]}
    new = {"x": [replace(turn, label=label) for turn in told(3, {"a": "2"})["only"]]}
    hidden = make_baseline(old, {"search": "random"}, "m", Contents(old), hidden=True)
    for groups, changed, after in ((old, 0, 1.0), (new, 3, 0.0)):
        figures = judge(session(groups), Gates(), hidden).comparison
        assert figures is not None
        assert len(figures["clean"]["changed"]) == changed
        assert figures["clean"]["accuracy_before"] == 1.0
        assert figures["clean"]["accuracy_after"] == after


def failing(groups: dict[str, list[TurnResult]]) -> dict[str, list[TurnResult]]:
    """A build that fails at the first turn."""
    first, *rest = groups["only"]
    failed = replace(first, clean_state=None, outcome="error", reason="ValueError: no such slot")
    return {"only": [failed, *rest]}


def test_a_turn_that_the_baseline_had_no_answer_to_is_not_compared() -> None:
    groups = build("h", "h")
    judged = judge(session(groups), Gates(), saved(failing(groups), {"search": "random"}))
    assert judged.comparison is not None
    assert judged.comparison["clean"]["turns"] == 1
    assert judged.comparison["clean"]["silenced"] == 0
    assert judged.findings[0].reason.endswith("; 1 more turn had no answer in one of the builds")
    assert judged.findings[0].verdict == "pass"


@pytest.mark.parametrize(
    ("limit", "verdict"), [(None, "regression"), (0.02, "regression"), (0.025, "pass")]
)
def test_a_turn_that_the_tracker_fails_at_now_is_named_and_fails(
    limit: float | None, verdict: str
) -> None:
    groups = build(*"h" * 40)
    gates = Gates(whole=Limits(max_clean_drift=limit))
    judged = judge(session(failing(groups)), gates, saved(groups, {"search": "random"}))
    finding = judged.findings[0]
    assert (finding.gate, finding.verdict, finding.value) == ("max-clean-drift", verdict, 0.025)
    failed = (
        "; the tracker failed on 1 turn that the baseline answers (sample-test-D000-t0: ValueError"
    )
    assert failed in finding.reason
    assert "had no answer" not in finding.reason
    assert judged.comparison is not None
    assert judged.comparison["clean"]["silenced"] == 1


@pytest.mark.parametrize(("turns", "noted"), [(24, True), (12, False)])
def test_a_few_turns_that_the_tracker_fails_at_are_noted_with_the_first(
    turns: int, noted: bool
) -> None:
    groups = failing(build(*["h"] * turns))
    judged = judge(session(groups), Gates(Limits(max_failure_rate=0.5)))
    assert (judged.verdict == "pass") == noted
    texts = judged.raised if noted else judged.troubles
    assert bool(judged.raised) == noted
    assert "sample-test-D000-t0: ValueError: no such slot" in texts[0]
    assert judged.to_json()["raised"] == list(judged.raised)


def test_a_label_with_other_names_does_not_excuse_a_loss() -> None:
    """The argument has the name of the labels in one dialogue only."""
    tally = DriftTally()
    named, called = {"find[0]": "", "find[0].place": "x"}, {"find[0]": "", "find[0].area": "x"}
    right = named | called
    tally.add(CleanPair("a", "a", right, right, right))
    tally.add(CleanPair("b", "b", called, {"find[0]": ""}, named))
    assert not tally.drift().excused
    # The new build may have found the slot of the label, and dropped the wrong one.
    tally = DriftTally()
    tally.add(CleanPair("a", "a", right, right, right))
    tally.add(CleanPair("b", "b", called, named, named))
    assert tally.drift().excused
    # The loss of a wrong slot is excused, even if another one stays wrong.
    tally = DriftTally()
    tally.add(CleanPair("a", "a", right, right, right | {"x": "1"}))
    wrong = right | {"find[0].area": "other"}
    tally.add(CleanPair("b", "b", wrong | {"x": "1"}, wrong, right))
    tally.add(CleanPair("c", "c", right, right, right))
    assert tally.drift().excused
    tally = DriftTally()
    tally.add(CleanPair("a", "a", right, right, right))
    tally.add(CleanPair("b", "b", right, named, named))
    assert tally.drift().excused
