"""A spelling corrector: the nearest known word for each unknown one, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.perturb.spelling import SpellingCorrector, words_of_ontology

CORRECTOR = SpellingCorrector(["Wetherfield", "quilliard"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pelase book a romo", "please book a room"),
        ("I need aunisex salon", "I need a unisex salon"),
        ("the trai n leaves", "the train leaves"),
        ("to wetherfeild, please", "to wetherfield, please"),
        ("QUILLIRD is fine", "QUILLIARD is fine"),
        ("Quiliard  is fine!", "Quilliard  is fine!"),
        ("somethign moderatly preiced", "something moderately priced"),
        # The user may have meant another word, but this is one.
        ("a train form ely", "a train form ely"),
        ("room 14b, code xq-77, at 9:30", "room 14b, code xq-77, at 9:30"),
        ("zzzzqqqq", "zzzzqqqq"),
    ],
)
def test_an_unknown_word_becomes_the_nearest_known_one(typed: str, meant: str) -> None:
    assert CORRECTOR.correct(typed) == meant


def test_words_of_the_bot_come_first() -> None:
    assert SpellingCorrector().correct("the hotle brill") == "the hotel brill"
    assert SpellingCorrector(["brillo"]).correct("brilo") == "brillo"
    assert SpellingCorrector().correct("quilliad", said={"quilliard"}) == "quilliard"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("a tabel, plese", "a table, plese"),
        ("the ta ble at wetherfeild", "the table at wetherfield"),
        ("thetable", "thetable"),
        # The nearest word of all is another one, so the user may have meant that.
        ("a table for hundered", "a table for hundered"),
        # Too short: many names are near a short word.
        ("in oslo", "in oslo"),
    ],
)
def test_it_can_replace_by_words_of_the_bot_alone(typed: str, meant: str) -> None:
    own = SpellingCorrector(["table", "wetherfield", "also", "hunters"], only_own=True)
    assert own.correct(typed) == meant


@given(st.text())
def test_it_corrects_once_and_keeps_numbers(text: str) -> None:
    once = CORRECTOR.correct(text)
    assert [char for char in once if char.isdecimal()] == [
        char for char in text if char.isdecimal()
    ]


def test_an_ontology_gives_the_words_of_its_values_and_slots() -> None:
    found = set(words_of_ontology(Ontology({"hotel-price range": ("very cheap", "Dear")})))
    assert found == {"hotel", "price", "range", "very", "cheap", "dear"}
    assert list(words_of_ontology(None)) == []
