from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue import normalise
from pytest_dstfuzz.dialogue.normalise import (
    NORMALISATIONS,
    normalise_slot,
    normalise_state,
    normalise_value,
)
from pytest_dstfuzz.errors import DataError, UserError

SPELLINGS = [
    ("hotel-type", "true", "hotel"),
    ("hotel-type", "False", "guesthouse"),
    ("hotel-type", "guest house", "guesthouse"),
    ("hotel-type", "hotel|guesthouse", "hotel"),
    ("hotel-parking", "free", "yes"),
    ("hotel-internet", "false", "no"),
    ("hotel-internet", "none", None),
    ("hotel-area", "center", "centre"),
    ("hotel-area", "the south ", "south"),
    ("hotel-area", "City Center", "centre"),
    ("hotel-area", "centre of Cambridge", "centre"),
    ("hotel-area", "cambridge", "cambridge"),
    ("hotel-area", "dont care", "dontcare"),
    ("hotel-area", "don’t care", "dontcare"),
    ("hotel-area", "do n't care", "dontcare"),
    ("hotel-area", "any", "dontcare"),
    ("hotel-area", "not mentioned", None),
    ("hotel-area", "not given", None),
    ("hotel-area", " ", None),
    ("hotel-area", "|", None),
    ("hotel-pricerange", "moderately", "moderate"),
    ("hotel-pricerange", "cheapmoderate", "cheap"),
    ("hotel-stars", "four star", "4"),
    ("hotel-stars", "4-star", "4"),
    ("hotel-stars", "many", "many"),
    ("hotel-book people", "Two people", "2"),
    ("hotel-book people", "eleven people", "11"),
    ("hotel-book stay", "a while", "a while"),
    ("hotel-book day", "sunday>monday", "sunday"),
    ("hotel-book day", "sundaymonday", "sunday"),
    ("train-leaveat", "5:45pm", "17:45"),
    ("train-leaveat", "12:10 am", "00:10"),
    ("train-leaveat", "24:30", "00:30"),
    ("train-leaveat", "after 9:15", "09:15"),
    ("train-leaveat", "1545", "15:45"),
    ("train-leaveat", "9", "09:00"),
    ("train-leaveat", "13pm", "13pm"),
    ("train-leaveat", "25:00", "25:00"),
    ("train-leaveat", "10:75", "10:75"),
    ("train-leaveat", "afternoon", "afternoon"),
    ("attraction-type", "museums", "museum"),
    ("attraction-type", "night club", "nightclub"),
    ("attraction-type", "mutliple sports", "multiple sports"),
    ("restaurant-food", "portugese", "portuguese"),
    ("restaurant-name", "restaurant 2 two", "restaurant two two"),
    ("restaurant-name", "restaurant two two", "restaurant two two"),
    ("restaurant-name", "pizza hut fenditton", "pizza hut fen ditton"),
    ("hotel-name", "el shaddia guesthouse", "el shaddai"),
    ("hotel-name", "alpha-milton guest house", "alpha milton guest house"),
    ("hotel-name", "city centre north b and b", "city centre north bed and breakfast"),
    ("hotel-name", "a and b guesthouse", "a and b guest house"),
    ("taxi-departure", "saint john 's college", "saint johns college"),
    ("taxi-departure", "saint john s college", "saint johns college"),
    ("taxi-departure", "queens' college", "queens college"),
    ("taxi-departure", "caf聨 jello galery", "cafe jello gallery"),
    ("attraction-name", "salt & pepper", "salt and pepper"),
]


@pytest.mark.parametrize(("slot", "value", "expected"), SPELLINGS)
def test_spellings_of_multiwoz(slot: str, value: str, expected: Any):
    assert normalise_value(slot, value, "multiwoz") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("  Extra   CHEESE ", "extra cheese"),
        ("None", "none"),
        ("not mentioned", "not mentioned"),
        (" ", None),
        ("doesn't matter", "dontcare"),
        ("any", "any"),
        ("a|b", "a|b"),
        ("center", "center"),
    ],
)
def test_plain_unites_case_blanks_and_dontcare_and_keeps_none(value: str, expected: Any):
    assert normalise_value("pizza-top", value, "plain") == expected


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        ("hotel-bookday", "hotel-book day"),
        ("hotel-book-day", "hotel-book day"),
        ("Hotel-Book Day", "hotel-book day"),
        ("hotel-semi-area", "hotel-area"),
        ("hotel-price range", "hotel-pricerange"),
        ("taxi-leaveAt", "taxi-leaveat"),
        ("taxi-arrive by", "taxi-arriveby"),
        ("train-book_people", "train-book people"),
        ("bus-leaveAt", None),
        ("hospital-department", None),
        ("hotel-colour", "hotel-colour"),
    ],
)
def test_slot_names_of_all_layouts(slot: str, expected: Any):
    assert normalise_slot(slot, "multiwoz") == expected


def test_state_takes_values_of_json_and_leaves_out_absence():
    state = normalise_state(
        {
            "hotel-stars": 4,
            "hotel-parking": True,
            "hotel-area": ["center", "centre"],
            "hotel-name": [],
            "hotel-type": None,
            "police-name": "x",
        },
        "multiwoz",
    )
    assert state == {"hotel-area": "centre", "hotel-parking": "yes", "hotel-stars": "4"}


@pytest.mark.parametrize(
    ("value", "plain", "codes"),
    [
        ({"hotel-semi-internet": "true"}, {"hotel-semi-internet": "true"}, "yes"),
        ({"hotel-type": "false"}, {"hotel-type": "false"}, "guesthouse"),
        ({"hotel-name": "El Shaddia  Guest House"}, None, "el shaddia guest house"),
        ({"hotel-area": "City Center"}, None, "city center"),
        ({"train-leaveAt": "9:15"}, {"train-leaveat": "09:15"}, "9:15"),
        ({"hotel-stars": "four"}, None, "four"),
        ({"hotel-area": "do nt care"}, None, "dontcare"),
    ],
)
def test_codes_are_united_and_words_left_alone(
    value: dict[str, str], plain: dict[str, str] | None, codes: str
):
    (slot,) = normalise_state(value, "multiwoz")
    assert normalise_state(value, "multiwoz-codes") == {slot: codes}
    assert normalise_state(value, "plain") == (plain or {slot: codes})


def test_none_and_dontcare_are_never_the_same():
    for name in NORMALISATIONS:
        none = {"hotel-area": "none"}
        assert normalise_state(none, name) == (none if name == "plain" else {})
        assert normalise_state({"hotel-area": "do not care"}, name) == {"hotel-area": "dontcare"}


@pytest.mark.parametrize("slot", normalise.SLOTS)
def test_canonical_slots_and_closed_values_stay_as_they_are(slot: str):
    assert normalise_slot(slot, "multiwoz") == slot
    for value in normalise.values_of_closed_slot(slot):
        assert normalise_value(slot, value, "multiwoz") == value


@pytest.mark.parametrize(
    ("slot", "repairs"),
    [
        ("hotel-name", normalise.NAME_REPAIRS),
        ("restaurant-food", normalise.FOOD_REPAIRS),
        ("attraction-type", normalise.TYPE_REPAIRS),
    ],
)
def test_repairs_lead_to_values_that_rest(slot: str, repairs: Mapping[str, str]):
    for spelling, repaired in repairs.items():
        assert normalise_value(slot, spelling, "multiwoz") == repaired


def test_constants_are_sorted_and_thirty():
    assert len(normalise.SLOTS) == 30
    assert list(normalise.SLOTS) == sorted(set(normalise.SLOTS))
    assert list(normalise.CUE_WORDS) == sorted(set(normalise.CUE_WORDS))
    assert {slot.split("-")[0] for slot in normalise.SLOTS} == set(normalise.DOMAINS)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"hotel-area": {"a": 1}}, "slot 'hotel-area' must be a string.* got dict"),
        ({3: "x"}, "slot names must be strings, got 3"),
    ],
)
def test_states_of_another_type_are_refused(state: dict[Any, Any], message: str):
    with pytest.raises(DataError, match=message):
        normalise_state(state, "plain")


def test_unknown_normalisation_names_the_nearest():
    with pytest.raises(UserError, match="Did you mean 'multiwoz'"):
        normalise_state({}, "multiwos")


_FRAGMENTS = (
    st.sampled_from(
        [
            "none",
            "any",
            "the",
            "centre",
            "center",
            " ",
            "s",
            "'",
            "-",
            "&",
            "|",
            ">",
            "b and b",
            "2",
        ]
    )
    | st.sampled_from(
        ["guesthouse", "two", "do", "n't", "care", "dont", ":", "pm", "12", "in", "of", "sunday"]
    )
    | st.sampled_from(
        ["[", "]", '["a", "b"]', '"', "“", "”", ", ", "\\", "–", ".0", "é", "e\u0301", "null"]
    )
)
_VALUES = st.one_of(st.text(max_size=20), st.lists(_FRAGMENTS, max_size=8).map("".join))
_SLOTS = st.one_of(st.sampled_from(normalise.SLOTS), st.text(max_size=12))


@settings(deadline=None)
@given(st.dictionaries(_SLOTS, _VALUES, max_size=6), st.sampled_from(NORMALISATIONS))
def test_normalising_twice_changes_nothing(state: dict[Any, Any], name: str):
    once = normalise_state(state, name)
    assert normalise_state(once, name) == once
    absent = {""} if name == "plain" else {"", "none", "not mentioned"}
    assert not absent & set(once.values())
