"""Which slot of a bot is which slot of the data: the file, and by name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.rasa.tracker import SlotTarget, slot_map

ONTOLOGY = Ontology({"hotel-area": (), "hotel-book people": (), "taxi-leaveat": ()})
DATA = DialogueSet("bookings", "test", (), ONTOLOGY)
MULTIWOZ = DialogueSet(
    "m",
    "test",
    (),
    Ontology({"hotel-pricerange": (), "taxi-leaveat": ()}, normalisation="multiwoz"),
    "multiwoz",
)
BOT = ("area", "guests", "hotel_area", "requested_slot")


def places(path: str | None, slots: tuple[str, ...], data: DialogueSet) -> dict[str, str]:
    return {name: place.slot for name, place in slot_map(path, slots, data).places.items()}


def write(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = write(
        tmp_path,
        "map.toml",
        'area = "hotel-area"\n[guests]\nslot = "Hotel-book people"\nvalues = { TRUE = "1" }\n',
    )
    table = {"area": "hotel-area", "guests": {"slot": "hotel-book people", "values": {"true": "1"}}}
    text = write(tmp_path, "map.json", json.dumps(table))
    made = slot_map(toml, BOT, DATA)
    assert made == slot_map(text, BOT, DATA)
    assert made.places == {
        "area": SlotTarget("hotel-area"),
        "guests": SlotTarget("hotel-book people", {"true": "1"}),
    }


def test_slots_of_the_same_name_need_no_file() -> None:
    assert places(None, (*BOT, "Hotel_Book_People", "taxi leaveat"), DATA) == {
        "Hotel_Book_People": "hotel-book people",
        "hotel_area": "hotel-area",
        "taxi leaveat": "taxi-leaveat",
    }


def test_names_of_multiwoz_are_known_in_all_their_spellings() -> None:
    assert places(None, ("hotel_price_range", "taxi_leaveAt", "bus_day"), MULTIWOZ) == {
        "hotel_price_range": "hotel-pricerange",
        "taxi_leaveAt": "taxi-leaveat",
    }


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("m.toml", 'are = "hotel-area"', r"unknown slot of the bot 'are'. Did you mean 'area'\?"),
        (
            "m.toml",
            'area = "hotel-aera"',
            r"'area' is mapped to the slot 'hotel-aera', .*'hotel-area'",
        ),
        ("m.toml", 'area = ["hotel-area"]', r"'area' must be the name of a slot, or a table"),
        ("m.toml", '[area]\nvalues = { a = "b" }', r"'area' must be the name of a slot, or a"),
        ("m.toml", '[area]\nslots = "hotel-area"', r"unknown key 'slots'. Did you mean 'slot'\?"),
        ("m.toml", '[area]\nslot = "hotel-area"\nvalues = { a = 1 }', r"'values' must be a table"),
        (
            "m.toml",
            'area = "hotel-area"\nhotel_area = "hotel-area"',
            r"both 'area' and 'hotel_area' are mapped to 'hotel-area'",
        ),
        ("m.toml", "area = hotel", r"is not valid TOML: .*line 1, column 8"),
        ("m.toml", "", r"the slot map is empty"),
        (
            "m.json",
            "[]",
            r"a slot map must be an object, slot of the bot -> slot of the data, got list \[\]",
        ),
        ("m.json", '{"area": ', r"is not valid JSON"),
        ("m.json", '{"area": "a", "area": "b"}', r"two values for the key 'area'"),
        ("m.json", '{"area": ' * 50_000, r"is nested too deeply"),
        ("m.toml", "area = " + "[" * 50_000, r"is nested too deeply"),
        ("m.yaml", "area: hotel-area", r"a slot map must be a .toml or .json file"),
    ],
)
def test_a_wrong_map_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(UserError, match=complaint) as caught:
        slot_map(path, BOT, DATA)
    assert str(caught.value).startswith(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "none.toml")
    with pytest.raises(UserError, match=rf"^{re.escape(path)} cannot be read: No such file"):
        slot_map(path, BOT, DATA)


def test_slots_that_only_the_labels_do_not_use_are_no_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, "map.toml", 'area = "hotel-name"')
    labels = replace(DATA, ontology=replace(ONTOLOGY, complete=False))
    assert places(path, BOT, labels) == {"area": "hotel-name"}
    assert places(path, BOT, replace(DATA, ontology=None)) == {"area": "hotel-name"}


def test_a_bot_with_other_names_needs_a_map() -> None:
    with pytest.raises(
        UserError,
        match=r"^none of the bot's slots has the name of a slot of the data \('hotel_are' may be "
        r"'hotel-area'\): map them with --dst-tracker slot-map=FILE .* bot: guests, hotel_are$",
    ):
        slot_map(None, ("hotel_are", "guests"), DATA)


OWN = ("requested_slot", "session_started_metadata")


def test_where_the_data_names_no_slots_all_of_the_bot_are_compared() -> None:
    many = tuple(f"Slot{number}" for number in range(10))
    chosen = slot_map(None, (*many, *OWN), replace(DATA, ontology=None))
    assert {name: place.slot for name, place in chosen.places.items()} == {
        name: name.lower() for name in many
    }
    note = chosen.note((*many, *OWN))
    assert "every slot of the bot is compared (10): Slot0, Slot1, " in note
    assert note.endswith(
        "choose slots with a slot map, an ontology or the option slots (--dst-slots)"
    )


def test_partial_labels_do_not_choose_the_slots_of_the_bot() -> None:
    turns = (Turn(0, "", "hi", BeliefState({"hotel-area": "north"})), Turn(1, "and?", "by taxi"))
    labels = Ontology({"hotel-area": ("north",)}, complete=False)
    some = replace(DATA, ontology=labels, dialogues=(Dialogue("d", turns),))
    bot = ("hotel_area", "taxi_departure", *OWN)
    assert places(None, bot, some) == {
        "hotel_area": "hotel-area",
        "taxi_departure": "taxi_departure",
    }
    # Labels of all turns are what the bot is measured by, and so say which slots there are.
    every = replace(some, dialogues=(Dialogue("d", turns[:1]),))
    assert places(None, bot, every) == {"hotel_area": "hotel-area"}


def test_a_bot_with_no_slots_but_those_of_rasa_is_told() -> None:
    with pytest.raises(
        UserError, match="no slots of its own, only those of Rasa: requested_slot, sess"
    ):
        slot_map(None, OWN, replace(DATA, ontology=None))


def test_two_slots_of_one_name_need_a_map() -> None:
    with pytest.raises(UserError, match=r"both 'Hotel-Area' and 'hotel_area' are mapped to"):
        slot_map(None, ("hotel_area", "Hotel-Area"), DATA)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (None, None),
        (True, "yes"),
        (False, "no"),
        (2.0, 2),
        (2.5, 2.5),
        (3, "three"),
        (3.0, "three"),
        ("Cheap", "budget"),
        ("dear", "dear"),
        ([], []),
        ([True, "cheap"], ["yes", "budget"]),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_values_are_brought_to_those_of_the_data(found: object, value: object) -> None:
    place = SlotTarget("hotel-area", {"3": "three", "cheap": "budget"})
    assert place.value(found) == value


#: Numbers as JSON has them; others are refused where the answer is read.
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.one_of(st.none(), st.booleans(), st.integers(), NUMBERS, st.text()))
@example(1e100)
def test_every_value_of_a_slot_becomes_a_text_or_nothing(found: object) -> None:
    state = normalise_state({"hotel-area": SlotTarget("hotel-area").value(found)}, "plain")
    assert set(state) <= {"hotel-area"}
    assert found is not None or not state
