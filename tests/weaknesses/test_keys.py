"""Which violations are one weakness, and which are two."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pytest
from violations import Changes, edit, turn, violation

from pytest_dstfuzz.campaign.results import ContextEdits
from pytest_dstfuzz.weaknesses.keys import Key, read
from pytest_dstfuzz.weaknesses.triage import description, to_try

TAXI = "I need a taxi from the station, leaving after 12:15 please."
STATE = {"taxi-leaveat": "12:15", "taxi-departure": "the station", "hotel-area": "north"}
TYPO = ("char_replace/swap", "leaving", "leaivng")
LOST: Changes = {"taxi-leaveat": ("12:15", None)}


def key(
    change: Changes,
    *typed: tuple[str, str, str],
    text: str = TAXI,
    state: Mapping[str, str] | None = None,
) -> Key:
    """Return the key of a violation of one turn."""
    edits = [edit(text, *one) for one in typed or (TYPO,)]
    variant = violation(text, edits, change)
    return read(turn(text, STATE if state is None else state, variant), variant).key


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (LOST, Key("typo", "time")),
        ({"taxi-leaveat": ("12:15", "09:15")}, Key("typo", "time")),
        ({"hotel-parking": ("yes", None)}, Key("typo", "yes-no")),
        ({"hotel-area": ("dontcare", None)}, Key("typo", "dontcare")),
        ({"taxi-departure": ("the station", None)}, Key("typo", "text", "", "lost")),
        ({"taxi-departure": ("the station", "ely")}, Key("typo", "text", "", "replaced")),
        ({"taxi-destination": (None, "the station")}, Key("typo", "text", "", "moved")),
        ({"hotel-area": ("north", None)}, Key("typo", "", "elsewhere", "lost")),
        ({"hotel-area": ("north", "south")}, Key("typo", "", "elsewhere", "replaced")),
        ({"hotel-name": (None, "worth house")}, Key("typo", "", "", "filled")),
        ({"taxi-departure": ("the station", "leaivng")}, Key("", "", "", "copied")),
        ({}, Key("typo")),
    ],
)
def test_typing_errors_go_by_what_the_answer_did(change: Changes, expected: Key) -> None:
    assert key(change) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("word_drop/stop_word", "a ", ""), "word-out"),
        (("word_insert/repeat", "taxi", "taxi taxi"), "word-twice"),
        (("word_insert/filler", "a taxi", "a well taxi"), "word-in"),
        (("word_replace/synonym", "taxi", "cab"), "other-word"),
        (("word_replace/texting", "please", "pls"), "short-form"),
        (("word_replace/misspelling", "leaving", "leaveing"), "typo"),
        (("char_drop/full_stop", ".", ""), "mark"),
        (("char_replace/case", "I", "i"), "case"),
        (("char_replace/look_alike", "leaving", "leävıng"), "look-alike"),
        (("char_insert/punctuation", "please", "please,"), "mark"),
        (("char_insert/punctuation", "leas", "le.as"), "typo"),
        (("char_drop/blank", "taxi from", "taxifrom"), "typo"),
        (("own_thing/own", "taxi", "tixa"), "typo"),
    ],
)
def test_other_edits_are_a_weakness_of_their_own(
    typed: tuple[str, str, str], expected: str
) -> None:
    found = key(LOST, typed)
    assert found == (Key("typo", "time") if expected == "typo" else Key(expected))
    # What kind of slot it is does not matter then.
    assert key({"hotel-parking": ("yes", None)}, typed).edit == found.edit


def test_a_word_more_or_less_says_more_than_a_letter() -> None:
    assert key(LOST, TYPO, ("word_drop/stop_word", "a ", "")) == Key("word-out")


def test_the_slot_that_the_edited_word_names_goes_first() -> None:
    text = "a hotel with parking in the north"
    typed = ("char_drop/any", "parking", "paking")
    both = {"hotel-area": ("north", "south"), "hotel-parking": ("yes", None)}
    assert key(both, typed, text=text, state={}) == Key("typo", "yes-no")
    alone = {"hotel-area": ("north", "south")}
    assert key(alone, typed, text=text, state={}) == Key("typo", "text", "", "replaced")


def test_edits_of_an_earlier_turn_are_read_where_they_stand() -> None:
    earlier, text = TAXI, "thank you"
    typed = edit(earlier, *TYPO)
    variant = violation(
        text,
        [],
        LOST,
        context=(earlier.replace("leaving", "leaivng"),),
        context_edits=(ContextEdits(0, (typed,)),),
        cause="context",
    )
    found = read(turn(text, STATE, variant), variant)
    assert (found.key, found.words) == (Key("typo", "time"), ("leaving",))
    # Had they been in this turn, which says no time, it would be another one.
    assert key(LOST, ("char_drop/any", "thank", "thnk"), text=text).place == "elsewhere"


def test_a_change_that_was_there_before_counts_only_alone() -> None:
    found = violation(TAXI, [edit(TAXI, *TYPO)], {"hotel-parking": ("yes", None), **LOST})
    parking, time = found.changed_slots
    assert read(turn(TAXI, STATE), found).key == Key("typo", "yes-no")
    carried = replace(parking, carried=True)
    for changed, values in ((carried, time), "time"), ((carried,), "yes-no"):
        variant = replace(found, changed_slots=changed)
        assert read(turn(TAXI, STATE), variant).key == Key("typo", values)


def test_ids_are_of_the_key_alone_and_readable() -> None:
    found = Key("typo", "text", "", "lost")
    digest = hashlib.sha256(b"typo\ntext\n\nlost").hexdigest()
    assert found.id == f"typo-text-lost-{digest[:6]}"
    assert found.id != Key("typo", "", "text", "lost").id


@pytest.mark.parametrize("text", ["", "...", "🙂"])
def test_an_utterance_without_words_has_a_key_too(text: str) -> None:
    variant = violation(text, [], {"hotel-area": ("north", None)})
    assert read(turn(text, STATE, variant), variant).key == Key("typo", "", "elsewhere", "lost")


def test_triage_says_what_to_try_and_never_what_the_cause_is() -> None:
    for found in (
        key(LOST),
        key({"hotel-area": ("north", None)}),
        Key("word-out"),
        Key(change="copied"),
    ):
        text = f"{description(found)}; {to_try(found)}"
        assert "cause" not in text
        assert "tracker" in text
