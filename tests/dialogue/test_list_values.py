"""Lists as values of slots, and texts that are one value in several spellings."""

import json
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.calls import format_value, list_text, members_of
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference, diff_states
from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS, normalise_state, normalise_value
from pytest_dstfuzz.dialogue.readers.source import as_label
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import take_apart
from pytest_dstfuzz.relations.values import ValueTable
from pytest_dstfuzz.trackers.chat.tracker import parse_answer
from pytest_dstfuzz.trackers.validation import check_prediction


def plain(value: object) -> str | None:
    return normalise_state({"extras": value}, "plain").get("extras")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["window", "wifi"], ["wifi", "window"]),
        (["window", "wifi"], ("wifi", "Window ")),
        (["window", "wifi"], '["wifi", "window"]'),
        (["window"], "window"),
        (["window", None, ""], "window"),
        (["a", "a", "b"], ["a", "b", "a"]),
        ([1, 2.0, True], ["2", "1", "true"]),
        (["5–10", "café"], ["cafe\u0301", "5-10"]),
        (['say "hi"', "b"], ["b", "say “hi”"]),
        ([], None),
        ([None], ""),
        ([""], None),
    ],
)
def test_lists_of_the_same_members_are_one_value(one: object, other: object):
    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["window", "wifi"], ["window"]),
        (["window", "wifi"], ["window", "balcony"]),
        (["window", "wifi"], "window, wifi"),
        (["a", "a", "b"], ["a", "b"]),
        (["a, b", "c"], ["a", "b, c"]),
        (["a", "none"], ["a"]),
        ([], ["none"]),
    ],
)
def test_lists_of_other_members_are_not(one: object, other: object):
    assert plain(one) != plain(other)


def test_a_change_of_a_list_is_shown_as_a_whole():
    before, after = (normalise_state({"extras": x}, "plain") for x in (["window", "wifi"], "wifi"))
    (change,) = diff_states(before, after)
    assert str(change) == "extras: wifi, window -> wifi"
    assert str(Difference("extras", "none", None)) == 'extras: "none" -> none'


def test_a_slot_of_multiwoz_has_the_first_of_alternatives():
    for name in ("multiwoz", "multiwoz-codes"):
        state = normalise_state({"hotel-area": ["east", "west"], "bot-extras": ["b", "a"]}, name)
        assert state == {"hotel-area": "east", "bot-extras": list_text(["a", "b"])}


@pytest.mark.parametrize("value", [[["a"]], [{"a": 1}], ["a", float("nan")], [10**200]])
def test_lists_of_other_things_are_refused(value: list[Any]):
    with pytest.raises(DataError, match="'extras'"):
        plain(value)


@pytest.mark.parametrize(
    "text", ["[", "[]x", "[NaN]", '[["a"]]', '[{"a": 1}]', "[" * 5000, "[wifi]"]
)
def test_a_text_that_is_no_list_of_values_stays_a_text(text: str):
    assert plain(text) == text.lower()


def test_what_a_tracker_returns_is_compared_whole():
    answered = check_prediction({"extras": '["Wifi", "window"]', "a": "None", "b": ""})
    assert answered.state == {"extras": '["wifi", "window"]', "a": "none"}
    assert members_of(answered.state["extras"]) == ("wifi", "window")


def test_chat_models_may_answer_with_lists():
    assert parse_answer('{"extras": ["b", "a"], "x": []}', "plain") == {"extras": '["a", "b"]'}


@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("joe’s bar", "Joe's  bar"),
        ("“all”", '"all"'),
        ("5–10", "5-10"),
        ("5—10", "5-10"),
        ("−5", "-5"),
        ("e\u2011mail", "e-mail"),
        ("new\u00a0york", "new york"),
        ("cafe\u0301", "café"),
        ("pre\u00adpaid", "prepaid"),
    ],
)
def test_marks_and_accents_are_one_text(one: str, other: str, name: str):
    assert normalise_value("x-y", one, name) == normalise_value("x-y", other, name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "1"),
        (1.0, "1"),
        (1, "1.00"),
        ("-2.0", -2),
        (-0.0, "0"),
        ("9:00", "09:00"),
        ("9:00 am", "09:00"),
        ("9:00 p.m.", "21:00"),
        ("12:30AM", "00:30"),
    ],
)
def test_numbers_and_times_are_one_value_of_own_data(one: object, other: object):
    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("19:00", "7:00"),
        ("9:00", "9:00 pm"),
        ("24:30", "0:30"),
        ("9:75", "09:75"),
        ("13:00 pm", "13:00"),
        ("-5", "5"),
        ("1,5", "15"),
        ("1.5", "15"),
        ("10", "1.0"),
        ("3.10", "3.1"),
        ("01.0", "1"),
        ("1.0.0", "1"),
        ("café", "cafe"),
        ("a-b", "ab"),
        ("5-10", "510"),
        ("none", ""),
        ("none", None),
        ("not mentioned", None),
        ("o'neil", "oneil"),
    ],
)
def test_near_misses_stay_two_values(one: object, other: object):
    assert plain(one) != plain(other)


def test_people_read_lists_with_commas():
    assert format_value('["a, b", "c"]') == "a, b, c"
    assert format_value("[x]") == "[x]"


def test_every_member_of_a_label_is_known_and_locked(tmp_path: Path):
    state = {"room-extras": ["window", "kettle"], "room-view": "None"}
    turn = {"system": "", "user": "a room with a kettle and a window please", "state": state}
    path = tmp_path / "rooms.jsonl"
    path.write_text(json.dumps({"dialogue_id": "d", "turns": [turn]}))
    data = load_dialogues(path)
    (label,) = data.dialogues[0].turns
    assert label.state == {"room-extras": '["kettle", "window"]', "room-view": "none"}
    assert data.ontology is not None
    assert data.ontology.values["room-extras"] == ("kettle", "window")
    assert BELIEF_STATES.locked_values(data, label, None) == ("kettle", "none", "window")
    bare = BELIEF_STATES.locked_values(data, replace(label, state=None), BeliefState(label.state))
    assert bare == ("kettle", "none", "window")
    parts = take_apart(label.user)
    reasons = Locks(load_lexicon()).mask(label.user, parts, ("kettle", "window")).reasons
    assert {"kettle", "window"} <= {
        word.text for word, why in zip(parts.words, reasons, strict=True) if why == "value"
    }
    table = ValueTable.of(data)
    assert table.values["room-extras"] == ("kettle", "window")


@pytest.mark.parametrize("stated", ["none", "not mentioned", ["none", "east"], []])
def test_readers_of_multiwoz_take_none_for_absence(stated: object):
    assert as_label({"room-view": stated, "room-size": 2}, "x", "plain") == {"room-size": "2"}


class Colour(str, Enum):  # noqa: UP042 - its text is its name, that of StrEnum is not
    RED = "red"


class Count(int, Enum):
    TWO = 2


def test_members_of_enumerations_are_their_values():
    assert plain(Colour.RED) == "red"
    assert plain([Colour.RED, Count.TWO]) == plain(["red", 2])
    assert plain(Count.TWO) == "2"
