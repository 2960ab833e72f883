"""What keeps a value from being taken for the only words that a slot depends on."""

from __future__ import annotations

import doctest
from collections.abc import Mapping
from types import ModuleType

import pytest
from agency import reason, rewrites

from pytest_dstfuzz.relations import values
from pytest_dstfuzz.relations.should_change import sites
from pytest_dstfuzz.relations.should_change.relations import NO_OTHER, SPELLED_OTHERWISE, ValueSwap

NORTH = {"hotel-area": "north"}


@pytest.mark.parametrize("module", [values])
def test_examples_in_the_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("user", "state", "expected"),
    [
        ("Somewhere nice, please", NORTH, sites.NO_MENTION),
        ("A room with parking", {"hotel-parking": "yes"}, sites.NO_MENTION),
        ("A room at the North Gate", NORTH, sites.PART_OF_NAME),
        ("A room at the North Gate Inn", NORTH, sites.PART_OF_NAME),
        ("I need a hotel", {"hotel-kind": "hotel"}, sites.PART_OF_NAME),
        ("In the north, I mean the north", NORTH, sites.TWICE),
        ("A train to ely", {"train-destination": "ely", "hotel-name": "ely"}, sites.OTHER_SLOT),
        ("Not in the north", NORTH, sites.IN_DOUBT),
        ("In the north or anywhere else", NORTH, sites.IN_DOUBT),
        ("If there is none in the centre, north will do", NORTH, sites.IN_DOUBT),
        ("Book it for 3", {"hotel-nights": "3"}, sites.GUESSED),
        ("A train at 09:00", {"train-leaveat": "09:00"}, sites.GUESSED),
        ("I would like it cheaper", {"hotel-price": "cheap"}, sites.NO_MENTION),
    ],
)
def test_one_reason_for_each_lock(user: str, state: Mapping[str, str], expected: str) -> None:
    assert reason(ValueSwap(), ("", user, state)) == expected


def test_a_restated_value_is_not_new() -> None:
    turns = [("", "In the north", NORTH), ("Where?", "In the north", NORTH)]
    assert reason(ValueSwap(), *turns) == sites.NOT_NEW


def test_a_value_of_an_earlier_turn_or_of_the_system() -> None:
    earlier = ("", "I live in the north", {})
    here = ("Where should it be?", "In the north", NORTH)
    assert reason(ValueSwap(), earlier, here) == sites.TWICE
    offered = ("There is one in the north.", "The north is fine", NORTH)
    assert reason(ValueSwap(), ("", "Hello", {}), offered) == sites.BY_SYSTEM


def test_a_label_that_disagrees() -> None:
    turn = ("", "In the north", NORTH)
    assert reason(ValueSwap(), turn, label={"hotel-area": "south"}) == sites.MISLABELLED
    assert rewrites(ValueSwap(), turn)


def test_the_reason_of_the_slot_that_got_furthest() -> None:
    state = {"hotel-area": "north", "hotel-parking": "yes", "hotel-nights": "3"}
    turn = ("", "Not in the north, with parking, for 3", state)
    assert reason(ValueSwap(), turn) == sites.GUESSED


def test_what_counts_a_number_says_its_slot() -> None:
    for system, user in (
        ("", "For 3 nights"),
        ("", "for three lovely nights"),
        ("For how many nights?", "3, please"),
    ):
        found = rewrites(ValueSwap(), (system, user, {"hotel-nights": "3"}))
        assert {delta.slot for one in found for delta in one.expected.deltas} == {"hotel-nights"}


def test_a_time_takes_its_role_from_the_nearest_cue() -> None:
    state = {"train-leaveat": "09:00"}
    assert rewrites(ValueSwap(), ("", "My aunt would leave after 09:00", state))
    assert rewrites(ValueSwap(), ("When does your aunt leave?", "at 09:00", state))
    assert reason(ValueSwap(), ("", "My aunt would arrive by 09:00", state)) == sites.GUESSED


def test_spelled_in_a_way_that_others_cannot_take() -> None:
    state = {"train-leaveat": "09:00"}
    # `9am` has no other full hour of the morning.
    assert reason(ValueSwap(), ("", "leaving at 9am", state)) == SPELLED_OTHERWISE


def test_no_other_value_is_left() -> None:
    said = "cheap and moderate and expensive are all words that people say"
    turns = [("", said, {}), ("", "make it a guesthouse", {"hotel-kind": "guesthouse"})]
    assert reason(ValueSwap(), ("", "swimming pool and museum", {}), turns[1]) == NO_OTHER
