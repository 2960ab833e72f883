"""What is expected of a rewrite, and what an answer to it counts as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import labelled_talk, scene_of

from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, diff_states
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.relations.relation import UNCHANGED, Delta, Expectation, Replacement

VALUES = st.sampled_from(["north", "south", "east", None])
STATES = st.dictionaries(st.sampled_from("abcd"), VALUES).map(
    lambda found: BeliefState({slot: value for slot, value in found.items() if value})
)


@st.composite
def expectations(draw: st.DrawFn) -> tuple[BeliefState, Expectation]:
    """Return a state and what is to become of it."""
    before = draw(STATES)
    deltas = []
    for slot in sorted(draw(st.sets(st.sampled_from("abcd")))):
        old = before.get(slot)
        if draw(st.booleans()):
            deltas.append(Delta(slot, old, Admissible((old,), anything_but=True)))
        else:
            others = draw(st.sets(VALUES.filter(lambda value, old=old: value != old), min_size=1))
            deltas.append(Delta(slot, old, Admissible(tuple(sorted(others, key=str)))))
    return before, Expectation(tuple(deltas))


@given(expectations(), STATES)
def test_a_verdict_is_one_of_its_kinds(
    expectation: tuple[BeliefState, Expectation], found: BeliefState
) -> None:
    before, expected = expectation
    verdict = expected.judge(before, found)
    slots = [change.slot for change in verdict.changes]
    assert slots == sorted(set(slots))
    if verdict.kind == "held":
        assert (verdict.changes, verdict.failure) == ((), None)
        assert all(found.get(delta.slot) in delta.after for delta in expected.deltas)
    else:
        assert slots
        assert verdict.failure in ("changed", "stuck", "partial", "other")
        assert (verdict.failure == "changed") == (not expected.deltas)
        assert (verdict.failure == "stuck") == bool(expected.deltas and before == found)


@given(STATES, STATES)
def test_without_deltas_the_state_is_to_stay(before: BeliefState, found: BeliefState) -> None:
    verdict = UNCHANGED.judge(before, found)
    assert verdict.changes == diff_states(before, found)
    assert (verdict.kind == "held") == (before == found)


@given(expectations())
def test_the_expected_state_holds(expectation: tuple[BeliefState, Expectation]) -> None:
    before, expected = expectation
    state: dict[str, str | None] = dict(before)
    for delta in expected.deltas:
        wanted = [value for value in ("north", "south", "east", None) if value in delta.after]
        state[delta.slot] = wanted[0]
    found = BeliefState({slot: value for slot, value in state.items() if value})
    assert expected.judge(before, found).kind == "held"


@pytest.mark.parametrize(
    ("found", "failure"),
    [
        ({"a": "south", "b": "east"}, None),
        ({"a": "north"}, "stuck"),
        ({"a": "south"}, "partial"),
        ({"a": "south", "b": "east", "c": "x"}, "other"),
        ({"a": "west"}, "other"),
        ({}, "other"),
        ({"a": "north", "c": "x"}, "other"),
    ],
)
def test_how_a_rewrite_fails(found: dict[str, str], failure: str | None) -> None:
    expected = Expectation(
        (
            Delta("a", "north", Admissible(("south",))),
            Delta("b", None, Admissible(("east",))),
        )
    )
    assert expected.judge(BeliefState({"a": "north"}), BeliefState(found)).failure == failure


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="the delta of a expects no change"):
        Delta("a", "north", Admissible(("north", None)))
    with pytest.raises(ValueError, match="the delta of a expects no change"):
        Delta("a", "north", Admissible(("south",), anything_but=True))
    one = Delta("a", "north", Admissible((None,)))
    with pytest.raises(ValueError, match="sorted by slot"):
        Expectation((one, one))


def test_deltas_are_json() -> None:
    delta = Delta("a", None, Admissible(("x", None), anything_but=True))
    assert from_json(Delta, to_json(delta)) == delta
    assert str(delta) == "a: none -> anything but x or none"


def test_a_scene_makes_rewrites() -> None:
    data = labelled_talk(
        ("a room in the north", {"hotel-area": "north"}),
        ("a cheap one", {"hotel-area": "north", "hotel-price": "cheap"}),
    )
    scene = scene_of(data, 1)
    assert scene.given == ("hotel-price",)
    assert dict(scene.before) == {"hotel-area": "north"}
    delta = Delta("hotel-price", "cheap", Admissible(("dear",)))
    swap, drop = Replacement(2, 7, "dear", "swap"), Replacement(7, 11, "", "drop")
    rewrite = scene.rewrite([swap, drop], [delta])
    assert (rewrite.seen.user, rewrite.reference.user) == ("a dear", "a cheap one")
    assert apply_edits(scene.turn.user, rewrite.edits) == "a dear"
    assert rewrite.about == "hotel-price: cheap -> dear"
    assert {edit.transformation for edit in rewrite.edits} == {"toy"}
    with pytest.raises(ValueError, match="overlaps"):
        scene.edits([swap, Replacement(6, 9, "", "drop")])
    assert scene.once(len_of) is scene.once(len_of)


def len_of(data: object) -> list[object]:
    """Return something new each time."""
    return [data]
