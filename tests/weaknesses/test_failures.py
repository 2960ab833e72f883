"""Weaknesses of relations that expect a change, or that move rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import process_time

import pytest
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.results import TurnNoise, TurnResult
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState
from pytest_dstfuzz.relations.relation import Delta, Expectation, Move
from pytest_dstfuzz.weaknesses.groups import (
    Key,
    find_weaknesses,
    ranked,
    read,
)
from pytest_dstfuzz.weaknesses.mechanisms import reply_failure

TEXT = "a train from ely to norwich on friday"
CLEAN = {"train-departure": "ely", "train-destination": "norwich", "train-day": "friday"}
NEW = (Delta("train-day", "friday", Admissible(("sunday",))),)


def broken(
    state: Mapping[str, str],
    relation: str = "value-swap",
    deltas: tuple[Delta, ...] = NEW,
    **given: object,
) -> TurnResult:
    """Return a turn with one rewrite that got this state for an answer."""
    verdict = Expectation(deltas).judge(BeliefState(CLEAN), BeliefState(state))
    assert verdict.kind == "violation"
    wanted = {delta.slot: delta.after for delta in deltas}
    changed = tuple(replace(one, expected=wanted.get(one.slot)) for one in verdict.changes)
    one = replace(
        violation(TEXT, [edit(TEXT, f"{relation}/any", "friday", "sunday")], {}),
        state=BeliefState(state),
        changed_slots=changed,
        failure=verdict.failure,
        expected=deltas,
        **given,  # type: ignore[arg-type]  # fields of its own
    )
    side = "should-change" if deltas else "should-not-change"
    return replace(turn(TEXT, CLEAN, one), relation=relation, side=side)


def mechanism(one: TurnResult) -> str:
    return read(one, one.variants[0]).key.mechanism


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("value-swap", "new value ignored"),
        ("confusing-entity", "new value ignored"),
        ("turn-back", "correction ignored"),
        ("repair", "correction ignored"),
        ("negation", "negation ignored"),
        ("antonym", "negation ignored"),
        ("removal", "removed value still present"),
        ("role-swap", "swapped values ignored"),
        ("random-input", "value found in random words"),
        ("drop", "value of dropped round kept"),
        ("mine", "expected change missing"),
    ],
)
def test_a_state_that_stays_goes_by_what_was_ignored(relation: str, expected: str) -> None:
    one = broken(CLEAN, relation)
    found = read(one, one.variants[0])
    assert (found.key, found.slot) == (Key(expected), "train-day")
    assert found.words == ("friday",)
    # A slot that is lost beside it says nothing of what was ignored.
    other = {slot: value for slot, value in CLEAN.items() if slot != "train-departure"}
    assert mechanism(broken(other, relation)) == expected


@pytest.mark.parametrize(
    ("operator", "state", "expected"),
    [
        ("disfluency/repair", {**CLEAN, "train-day": "sunday"}, "correction ignored"),
        # Copied, and said by nobody as a value that is taken back.
        ("disfluency/filler", {**CLEAN, "train-day": "sunday"}, "misspelt value copied"),
        ("disfluency/repair", {**CLEAN, "train-day": "monday"}, "value replaced by another"),
    ],
)
def test_a_value_that_is_taken_back_at_once_is_no_slip(
    operator: str, state: Mapping[str, str], expected: str
) -> None:
    one = broken(state, "disfluency", ())
    slip = (edit(TEXT, operator, "friday", "sunday, no, friday"),)
    said = replace(one.variants[0], text=TEXT.replace("friday", slip[0].after), edits=slip)
    one = replace(one, variants=(said,))
    assert mechanism(one) == expected
    assert read(one, said).slot == "train-day"


@pytest.mark.parametrize(
    ("state", "expected", "slot"),
    [
        ({**CLEAN, "train-day": "monday"}, "changed to wrong value", "train-day"),
        ({**CLEAN, "hotel-day": "sunday"}, "new value in wrong place", "hotel-day"),
        ({"hotel-day": "sunday"}, "new value in wrong place", "hotel-day"),
        (
            {**CLEAN, "train-day": "sunday", "hotel-day": "sunday"},
            "another value changed too",
            "hotel-day",
        ),
        ({"train-day": "sunday"}, "another value changed too", "train-departure"),
        ({"train-day": "monday", "train-departure": "ely"}, "changed to wrong value", "train-day"),
    ],
)
def test_a_state_that_changes_otherwise_goes_by_where_the_value_went(
    state: Mapping[str, str], expected: str, slot: str
) -> None:
    one = broken(state)
    found = read(one, one.variants[0])
    assert (found.key, found.slot) == (Key(expected), slot)


def test_half_of_what_was_asked_for() -> None:
    both = (
        Delta("train-departure", "ely", Admissible(("norwich",))),
        Delta("train-destination", "norwich", Admissible(("ely",))),
    )
    half = broken({**CLEAN, "train-departure": "norwich"}, "role-swap", both)
    assert mechanism(half) == "only some values changed"
    assert mechanism(broken(CLEAN, "role-swap", both)) == "swapped values ignored"


def test_a_value_that_may_be_any_other_is_in_no_other_slot() -> None:
    but = (Delta("train-day", "friday", Admissible(("friday",), anything_but=True)),)
    found = broken({**CLEAN, "hotel-day": "friday"}, "negation", but)
    assert mechanism(found) == "negation ignored"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("repeat", "repeated round changes answer"),
        ("move", "order of rounds matters"),
        ("again", "same dialogue, different answer"),
        # What is not about rounds goes by what the answer did, as under other relations.
        (None, "slip in unrelated word, value lost"),
    ],
)
def test_of_rounds_that_moved_the_move_tells(kind: str | None, expected: str) -> None:
    moves = (Move(kind, 0, 1),) if kind else ()  # type: ignore[arg-type]  # one of its names
    rest = {slot: value for slot, value in CLEAN.items() if slot != "train-day"}
    one = broken(rest, "mine", (), moves=moves)
    if not kind:
        typed = violation(TEXT, [edit(TEXT, "a/b", "a ", "")], {})
        one = replace(one, variants=(replace(one.variants[0], edits=typed.edits),))
    assert mechanism(one) == expected


def test_nobody_knows_how_often_people_ask_for_something_else() -> None:
    noise = TurnNoise("typing", 0.02, 0.1, 0.0, sampled=True)
    lost = violation(TEXT, [edit(TEXT, "a/b", "friday", "firday")], {"train-day": ("friday", None)})
    slips = [
        replace(turn(TEXT, CLEAN, replace(lost, weight=0.02), dialogue=f"d{number}"), noise=noise)
        for number in range(40)
    ]
    slip, stuck = find_weaknesses([*slips, broken(CLEAN)])
    assert slip.expected is not None
    assert stuck.expected is None
    assert ranked((slip, stuck), lambda one: one.expected) == (
        ("estimated failures", (slip,)),
        ("turns", (stuck,)),
    )


def test_the_kind_of_failure_of_a_long_reply_takes_linear_time() -> None:
    one = broken(CLEAN)
    change = one.variants[0].changed_slots[0]
    started = process_time()
    for piece in ("a", "a ", "? ", "?a", "."):
        odd = replace(change, before="It is open.", after=piece * (100_000 // len(piece)))
        variant = replace(one.variants[0], changed_slots=(odd,))
        reply_failure(one, variant)
    # Code of the square takes minutes.
    assert process_time() - started < 10
