"""A careful reader: which slips leave a word that can only be read as the original."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.reader import RIVAL, SURE, SlipReader

AREAS = ("north", "south", "east", "west", "centre")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TOWNS = ("cambridge", "ely", "norwich", "leicester", "london kings cross", "broxbourne")
REPLIES = ("We open at nine and close at five.", "Our bikes cost ten pounds.", "We are in Ely.")


@pytest.fixture(scope="module")
def reader() -> SlipReader:
    words = " ".join(REPLIES).lower().replace(".", "").split()
    values = {"area": AREAS, "day": DAYS, "departure": TOWNS, "answer": words}
    return SlipReader(load_lexicon(), NoiseModel.load("typing"), values)


@pytest.mark.parametrize(
    ("word", "typed"),
    [
        ("friday", "fiday"),
        ("cambridge", "cabridge"),
        ("restaurant", "resturant"),
        ("open", "opne"),
        ("bikes", "biks"),
        ("Friday", "Fiday"),
        ("wednesday", "wedesday"),
        ("leicester", "liecester"),
        ("centre", "cetnre"),
        ("expensive", "expesnive"),
        ("fourteen", "fourten"),
        ("without", "witout"),
        ("saturday", "SATURDYA"),
    ],
)
def test_a_reader_recovers(reader: SlipReader, word: str, typed: str):
    reading = reader.read(word, typed)
    assert reading.recoverable, reading
    assert reading.posterior >= SURE
    assert reading.rival_posterior <= RIVAL


@pytest.mark.parametrize(
    ("word", "typed", "reason"),
    [
        ("14:15", "14:5", "exact"),
        ("viii", "vii", "exact"),
        ("viii", "viiii", "exact"),
        ("me@example.com", "me@exmple.com", "exact"),
        ("b7", "b8", "exact"),
        ("a", "s", "exact"),
        ("from", "form", "known word"),
        ("north", "south", "known word"),
        ("ely", "el", "known word"),
        ("tuesday", "thuesday", "rival"),
        ("thursday", "thuesday", "rival"),
        ("east", "wast", "rival"),
        ("west", "wast", "rival"),
        ("not", "nto", "negation"),
        ("seven", "severn", "known word"),
        ("friday", "xqzway", "unclear"),
    ],
)
def test_a_reader_does_not_recover(reader: SlipReader, word: str, typed: str, reason: str):
    assert reader.read(word, typed).reason == reason


def test_words_of_the_dialogue_are_likelier():
    reader = SlipReader(load_lexicon(), NoiseModel.load("typing"))
    before, after = (reader.read("bikes", "biks", said).posterior for said in ((), ("bikes",)))
    assert before < after


def test_a_name_of_the_dialogue_is_a_rival(reader: SlipReader):
    assert reader.read("norwich", "norwih").recoverable
    named = SlipReader(
        load_lexicon(), NoiseModel.load("typing"), {"departure": ("norwich", "norwihc")}
    )
    assert named.read("norwich", "norwih").reason == "rival"


def test_an_unchanged_word_is_read_as_itself(reader: SlipReader):
    assert reader.read("Ely", "ely").posterior == 1.0
