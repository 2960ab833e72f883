"""Which violations are one weakness, and which are two."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from violations import Changes, edit, turn, violation

from pytest_dstfuzz.campaign.results import ContextEdits
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.weaknesses.advice import to_try
from pytest_dstfuzz.weaknesses.groups import ALL, Key, Reading, key_of_id, read
from pytest_dstfuzz.weaknesses.mechanisms import MECHANISMS, OTHER

TAXI = "I need a taxi from the station, leaving after 12:15 please."
STATE = {"taxi-leaveat": "12:15", "taxi-departure": "the station", "hotel-area": "north"}
PLEASE = ("char_replace/swap", "please", "plaese")
LEAVING = ("char_replace/swap", "leaving", "leaivng")
LOST: Changes = {"taxi-leaveat": ("12:15", None)}
PIZZA = "please a large pizza with olives at 7pm"


def reading(
    change: Changes,
    *typed: tuple[str, str, str],
    text: str = TAXI,
    state: Mapping[str, str] | None = None,
    system: Sequence[str] = ("",),
    earlier: Sequence[str] = (),
) -> Reading:
    """Return what is read of a violation of one turn, the last of a dialogue."""
    edits = [edit(text, *one) for one in typed or (PLEASE,)]
    variant = violation(text, edits, change, context=tuple(earlier))
    result = turn(text, STATE if state is None else state, variant)
    *before, last = system
    return read(replace(result, system=last, earlier_system=tuple(before)), variant)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hotel-name": (None, "the lodge area north")}, "two values run together"),
        (
            {"hotel-area": ("north", None), "attraction-area": (None, "north")},
            "value in wrong domain",
        ),
        (
            {"hotel-parking": (None, "12:15"), "taxi-arriveby": (None, "12:15")},
            "slip in key word, value wrong",
        ),
        ({"taxi-destination": ("dontcare", None)}, "no preference lost or changed"),
        ({"taxi-destination": (None, "plaese road")}, "misspelt value copied"),
        ({"taxi-destination": (None, "the station")}, "slip in key word, value wrong"),
        ({"taxi-departure": ("the station", "ely")}, "departure and destination confused"),
        ({"taxi-departure": ("the station", "station road")}, "departure and destination confused"),
        ({"taxi-destination": ("north", None)}, "cross-domain value lost or changed"),
        ({"taxi-departure": ("the station", None)}, "slip in unrelated word, value lost"),
        ({"taxi-destination": ("the station", None)}, "departure and destination confused"),
        ({"train-area": ("north", None)}, "cross-domain value lost or changed"),
        ({"taxi-leaveat": ("12:15", "09:15")}, "number or time changed"),
        ({"hotel-name": ("worth house", "lodge")}, "name changed or made up"),
        ({"hotel-name": (None, "some lodge")}, "name changed or made up"),
        ({"hotel-type": ("motel", "hostel")}, "value replaced by another"),
        ({"taxi-extras": ('["cot", "station"]', "cot")}, "slip in unrelated word, value lost"),
        ({"taxi-extras": ('["cot", "ramp"]', '["cot", "tray"]')}, "value replaced by another"),
        ({"train-leaveat": (None, "12:15")}, "value copied to another slot"),
        (LOST, "slip in unrelated word, value lost"),
        ({"hotel-type": (None, "motel")}, "value made up"),
        ({"taxi-destination": (None, "ely")}, "value made up"),
        ({"hotel-stars": ("4", None)}, "number or time made up"),
        ({"train-leaveat": (None, "09:15")}, "number or time made up"),
        ({"hotel-parking": ("yes", None)}, "offered value lost or added"),
        ({}, OTHER),
    ],
)
def test_a_slip_beside_the_point_goes_by_what_the_answer_did(
    change: Changes, expected: str
) -> None:
    assert reading(change).key == Key(expected)


@pytest.mark.parametrize(
    ("change", "typed", "text"),
    [
        (LOST, LEAVING, TAXI),
        (LOST, ("char_replace/swap", "after", "atfer"), TAXI),
        (LOST, ("word_drop/stop_word", "after ", ""), TAXI),
        (LOST, ("char_drop/blank", "leaving after", "leavingafter"), TAXI),
        (LOST, ("char_replace/look_alike", "leaving", "leävıng"), TAXI),
        ({"hotel-stay": (None, "3")}, ("word_replace/texting", "nights", "nites"), "for 3 nights"),
        ({"size": ("large", None)}, ("char_drop/any", "size", "siz"), "a large size please"),
        ({"pickup-time": ("19:00", None)}, ("char_drop/any", "at ", "a "), PIZZA),
        ({"topping": ("olives", None)}, ("char_drop/any", "with", "wth"), PIZZA),
    ],
)
def test_the_word_for_a_value_is_damaged(
    change: Changes, typed: tuple[str, str, str], text: str
) -> None:
    assert reading(change, typed, text=text, state={}).key == Key("slip in key word, value wrong")


@pytest.mark.parametrize("after", [None, "south"])
def test_the_value_itself_is_damaged(after: str | None) -> None:
    change: Changes = {"hotel-area": ("north", after)}
    typed = ("char_replace/swap", "north", "nroth")
    found = reading(change, typed, text="a hotel in the north", state={})
    assert found.key == Key("misspelt value lost or changed")


@pytest.mark.parametrize(
    ("slot", "edited", "typed", "expected"),
    [
        ("hotel-parking", "parking", "paking", "slip in key word, yes/no wrong"),
        ("hotel-internet", "wifi", "wif", "slip in key word, yes/no wrong"),
        # The word for the one makes the other.
        ("hotel-internet", "parking", "paking", "slip in key word, yes/no wrong"),
        ("hotel-internet", "want", "wnat", "offered value lost or added"),
        ("train-internet", "parking", "paking", "offered value lost or added"),
    ],
)
def test_a_yes_or_no_goes_by_the_words_for_such_slots(
    slot: str, edited: str, typed: str, expected: str
) -> None:
    text, state = "I want parking and wifi", {"hotel-parking": "yes"}
    change: Changes = {slot: ("yes", None) if slot in state else (None, "yes")}
    found = reading(change, ("char_drop/any", edited, typed), text=text, state=state)
    assert found.key == Key(expected)


def test_a_damaged_word_gives_the_number_of_a_sibling() -> None:
    text, typed = "for 4 people and 3 nights", ("char_drop/any", "nights", "nigts")
    state = {"hotel-people": "4", "hotel-stay": "3"}
    for after, expected in (
        ("3", "slip in key word, value wrong"),
        ("7", "number or time changed"),
    ):
        change: Changes = {"hotel-people": ("4", after), "hotel-stay": ("3", None)}
        assert reading(change, typed, text=text, state=state).key == Key(
            "slip in key word, value wrong"
        )
        alone: Changes = {"hotel-stay": ("3", "4" if after == "3" else after)}
        assert reading(alone, typed, text=text, state=state).key == Key(expected)


def test_of_an_end_the_other_one_tells() -> None:
    for state, expected in (
        (STATE, "departure and destination confused"),
        ({}, "slip in unrelated word, value lost"),
    ):
        change: Changes = {"taxi-destination": ("the station", None)}
        assert reading(change, state=state).key == Key(expected)
        found = reading(change, ("char_drop/any", "taxi", "tax"), state={})
        assert found.key == Key("slip in key word, value wrong")


@pytest.mark.parametrize("slot", ["hotel-area", "hotel-type"])
def test_the_word_for_a_domain_is_one_for_its_values(slot: str) -> None:
    text, typed = "is there a hotel in the north", ("char_drop/any", "hotel", "hotl")
    found = reading({slot: ("north", None)}, typed, text=text, state={})
    assert found.key == Key("slip in key word, value wrong")


@pytest.mark.parametrize(
    ("typed", "text", "earlier", "expected"),
    [
        # It says what is talked about, not what the time is for.
        (
            ("char_drop/any", "about", "abut"),
            "how about 12:15",
            "",
            "slip in unrelated word, value lost",
        ),
        # The slot is called after it, wherever its value was said.
        (LEAVING, "leaving early", "for 12:15 please", "slip in key word, value wrong"),
        (
            ("char_drop/any", "after", "aftr"),
            "leaving after that",
            "for 12:15",
            "slip in unrelated word, value lost",
        ),
    ],
)
def test_a_word_for_the_slot_counts_anywhere_and_others_beside_the_value(
    typed: tuple[str, str, str], text: str, earlier: str, expected: str
) -> None:
    found = reading(LOST, typed, text=text, state={}, earlier=(earlier,))
    assert found.key == Key(expected)


def test_a_damaged_word_loses_a_name_and_makes_no_other_of_it() -> None:
    text, typed = "a hotel called worth house", ("char_drop/any", "called", "caled")
    for after, expected in (
        (None, "slip in key word, value wrong"),
        ("lodge", "name changed or made up"),
    ):
        found = reading({"hotel-name": ("worth house", after)}, typed, text=text, state={})
        assert found.key == Key(expected)


def test_a_value_of_another_domain_is_put_in_whatever_word_is_damaged() -> None:
    change: Changes = {"train-leaveat": (None, "12:15")}
    assert reading(change, LEAVING).key == Key("value copied to another slot")
    assert reading(change, LEAVING, state={}).key == Key("slip in key word, value wrong")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"train-day": ("friday", "sunday")}, "cross-domain value lost or changed"),
        ({"train-day": ("friday", None)}, "cross-domain value lost or changed"),
        ({"train-day": (None, "friday")}, "value made up"),
        ({"train-people": ("2", "3")}, "number or time changed"),
        ({"train-type": ("fast", "slow")}, "value replaced by another"),
    ],
)
def test_the_same_points_at_the_slot_that_is_called_so(change: Changes, expected: str) -> None:
    text = "please on the same booked day"
    assert reading(change, text=text, state={}).key == Key(expected)


@pytest.mark.parametrize(
    ("system", "earlier", "expected"),
    [
        (("", "How about the lodge in the north?"), (), "offered value lost or added"),
        (("The lodge is north.", "Shall I book it?"), (), "offered value lost or added"),
        (("", "Shall I book it?"), ("somewhere in the north",), "offered value lost or added"),
        (("The lodge is north.", "Yes."), ("one in the north",), "offered value lost or added"),
        (("", ""), (), "value made up"),
    ],
)
def test_who_said_a_value_tells_mechanisms_apart(
    system: Sequence[str], earlier: Sequence[str], expected: str
) -> None:
    change: Changes = {"hotel-area": (None, "north")}
    found = reading(change, text="yes please", state={}, system=system, earlier=earlier)
    assert found.key == Key(expected)


def test_a_value_said_just_now_is_taken_or_not() -> None:
    change: Changes = {"hotel-area": (None, "north")}
    text = "please, is the north nice"
    assert reading(change, text=text, state={}).key == Key("offered value lost or added")
    assert reading(change, text=text, state={"train-area": "north"}).key == Key(
        "value copied to another slot"
    )


def test_a_name_that_was_offered_is_taken_or_not_and_no_other_one() -> None:
    offers = ("I have the lodge and the worth house.",)
    for before, after, expected in (
        (None, "lodge", "offered value lost or added"),
        ("lodge", None, "offered value lost or added"),
        ("lodge", "worth house", "name changed or made up"),
        ("worth house", "worth", "name changed or made up"),
    ):
        change: Changes = {"hotel-name": (before, after)}
        assert reading(change, text="ok please", system=offers).key == Key(expected)
    taken: Changes = {"hotel-name": ("lodge", None)}
    assert reading(taken, text="the lodge please").key == Key("slip in unrelated word, value lost")


def test_an_offer_is_told_before_what_nobody_said() -> None:
    both: Changes = {"hotel-type": ("motel", None), "hotel-area": ("north", None)}
    found = reading(both, text="ok please", state={}, system=("The lodge is north.",))
    assert (found.key, found.slot) == (Key("offered value lost or added"), "hotel-area")


def test_a_bot_of_one_domain_has_no_other_domains() -> None:
    typed = ("char_drop/any", "please", "pleas")
    for change, expected in (
        ({"size": ("large", None)}, "slip in unrelated word, value lost"),
        ({"topping": ("olives", None)}, "slip in unrelated word, value lost"),
        ({"size": ("large", None), "topping": (None, "large")}, "slip in key word, value wrong"),
        ({"crust": (None, "thin")}, "value made up"),
        ({"size": ("large", "small")}, "value replaced by another"),
        ({"time": ("19:00", "17:00")}, "number or time changed"),
        ({"topping": ("olives", "pleas")}, "misspelt value copied"),
    ):
        changes: Changes = dict(change)
        state = {slot: pair[0] for slot, pair in changes.items() if pair[0]}
        assert reading(changes, typed, text=PIZZA, state=state).key == Key(expected)


def test_the_more_telling_change_names_the_violation() -> None:
    both: Changes = {"hotel-parking": ("yes", None), **LOST}
    found = reading(both, LEAVING)
    assert (found.key, found.slot) == (Key("slip in key word, value wrong"), "taxi-leaveat")
    assert reading(dict(reversed(both.items())), LEAVING) == found
    assert found.words == ("leaving",)


def test_edits_of_an_earlier_turn_are_read_where_they_stand() -> None:
    earlier, text = TAXI, "thank you"
    typed = edit(earlier, *LEAVING)
    variant = violation(
        text,
        [],
        LOST,
        context=(earlier.replace("leaving", "leaivng"),),
        context_edits=(ContextEdits(0, (typed,)),),
        cause="context",
    )
    found = read(turn(text, STATE, variant), variant)
    assert (found.key, found.words) == (Key("slip in key word, value wrong"), ("leaving",))
    # Had they been in this turn, which says no time, it would be another one.
    later = reading(LOST, ("char_drop/any", "thank", "thnk"), text=text, earlier=(TAXI,))
    assert later.key == Key("slip in unrelated word, value lost")


def test_a_change_goes_on_as_the_same_weakness_at_later_turns() -> None:
    found = violation(TAXI, [edit(TAXI, *LEAVING)], {"hotel-parking": ("yes", None), **LOST})
    parking, time = found.changed_slots
    for changed in ((parking, time), (parking, replace(time, carried=True))):
        variant = replace(found, changed_slots=changed)
        assert read(turn(TAXI, STATE), variant).key == Key("slip in key word, value wrong")


def test_an_id_is_the_name_as_one_word() -> None:
    assert Key("slip in unrelated word, value lost").id == "slip-in-unrelated-word-value-lost"
    assert Key("call dropped", "book_taxi").id == "call-dropped:book_taxi"
    assert len({Key(name).id for name in ALL}) == len(ALL)
    for name in ALL:
        assert re.fullmatch(r"[a-z]+(?:-[a-z]+)+", Key(name).id)
        assert key_of_id(Key(name).id) == Key(name)


@pytest.mark.parametrize("text", ["", "...", "🙂", "the"])
@pytest.mark.parametrize("value", ["north", "", "the", "..."])
def test_every_utterance_and_value_has_a_key(text: str, value: str) -> None:
    variant = violation(text, [], {"hotel-area": (value, None)})
    assert read(turn(text, STATE, variant), variant).key.mechanism in MECHANISMS


@pytest.mark.parametrize("name", ALL)
def test_each_mechanism_has_a_short_name_and_advice(name: str) -> None:
    assert len(name.split()) <= 6
    for kind in KINDS.values():
        advice = to_try(name, kind)
        assert advice
        assert "cause" not in f"{name}; {advice}"


@pytest.mark.parametrize("value", ["v{}", "v"])
@pytest.mark.parametrize("domain", ["d", "d{}"])
def test_many_changed_slots_take_linear_time(value: str, domain: str) -> None:
    def seconds(count: int) -> float:
        changes: Changes = {
            f"{domain}-slot {number}".format(number): (value.format(number), None)
            for number in range(count)
        }
        state = {slot: before for slot, (before, _) in changes.items() if before is not None}
        start = time.process_time()
        reading(changes, state=state)
        return time.process_time() - start

    seconds(10)  # The lexicon and the names of slots are read once.
    # Linear time takes 8 times as long, quadratic time 64 times. A busy machine is in between.
    assert seconds(8_000) < 30 * seconds(1_000)
