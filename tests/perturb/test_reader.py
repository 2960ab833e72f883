"""A careful reader: which slips leave a word that can only be read as the original."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.reader import RIVAL, SURE, SlipReader, SlipReading, count_usage
from pytest_dstfuzz.perturb.sentences import neighbour_counts
from pytest_dstfuzz.perturb.words import take_apart

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


def test_words_that_users_often_say_are_likelier():
    said = [["when do you open?"], ["are you open on sundays"], ["open today?"], ["how far is it"]]
    lexicon, model = load_lexicon(), NoiseModel.load("typing")
    plain = SlipReader(lexicon, model)
    informed = SlipReader(lexicon, model, usage=count_usage(said))
    for typed in ("openk", "opdn", "opee"):
        assert not plain.read("open", typed).recoverable
        assert informed.read("open", typed).recoverable
    assert informed.read("open", "pen").reason == "known word"


def test_usage_counts_the_other_dialogues():
    # One dialogue may say a word often, and the tested one counts for nothing.
    said = [["open open", "open"], ["Open at 9?"], ["open"], ["closed"], ["closed at 9"]]
    assert count_usage(said) == {"open": 2}


def test_a_name_of_the_dialogue_is_a_rival(reader: SlipReader):
    assert reader.read("norwich", "norwih").recoverable
    named = SlipReader(
        load_lexicon(), NoiseModel.load("typing"), {"departure": ("norwich", "norwihc")}
    )
    assert named.read("norwich", "norwih").reason == "rival"


def test_an_unchanged_word_is_read_as_itself(reader: SlipReader):
    assert reader.read("Ely", "ely").posterior == 1.0


def read_beside(reader: SlipReader, text: str, word: str, typed: str) -> SlipReading:
    """Return how a word of a text is read that was typed in another way."""
    parts = take_apart(text)
    at = [one.lower for one in parts.words].index(word)
    return reader.read(word, typed, (), neighbour_counts().sides(parts)[at])


@pytest.mark.parametrize(
    ("text", "word", "typed"),
    [
        ("I am looking for a slow train", "for", "fro"),
        ("I am leaving from Ely later", "from", "fro"),
        ("Please book it for two people", "for", "fo"),
        ("Thanks, that is all I need here", "that", "tht"),
        ("no, that's all", "that's", "tht's"),
    ],
)
def test_the_words_beside_a_slip_make_it_plain(
    reader: SlipReader, text: str, word: str, typed: str
):
    assert not reader.read(word, typed).recoverable
    assert read_beside(reader, text, word, typed).recoverable


@pytest.mark.parametrize(
    ("text", "word", "typed", "reason"),
    [
        ("I am leaving from Ely later", "from", "form", "known word"),
        ("I do not want it", "not", "nto", "negation"),
        ("a hotel in the east please", "east", "wast", "rival"),
        ("is it on tuesday or later", "tuesday", "thuesday", "rival"),
        ("a table for 2 at 14:15", "14:15", "14:5", "exact"),
        # `they` and `that` both fit.
        ("I think that all", "that", "thay", "unclear"),
    ],
)
def test_the_words_beside_a_slip_open_nothing_that_is_protected(
    reader: SlipReader, text: str, word: str, typed: str, reason: str
):
    assert read_beside(reader, text, word, typed).reason == reason


def test_the_place_of_a_word_decides_which_one_was_meant(reader: SlipReader):
    # The same letters stand for each of the two words, in its place.
    readings = [
        read_beside(reader, text, word, "fro").posterior
        for text in ("I am looking for a slow train", "I am leaving from Ely later")
        for word in ("for", "from")
        if word in text
    ]
    assert min(readings) > SURE


def test_all_texts_of_a_word_are_read_as_each_alone(reader: SlipReader):
    parts = take_apart("I am looking for a slow train")
    sides = neighbour_counts().sides(parts)[3]
    texts = ["fro", "fo", "fpr", "four", "xq"]
    together = reader.read_all("for", texts, ("to", "our"), sides)
    alone = [reader.read("for", text, ("to", "our"), sides) for text in texts]
    assert [one.reason for one in together] == [one.reason for one in alone]
    assert [one.posterior for one in together] == pytest.approx([one.posterior for one in alone])
