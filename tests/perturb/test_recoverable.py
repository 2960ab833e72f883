"""Slips in locked words that a careful reader recovers, under the profile ``natural``."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.perturb.draft import LOCKED
from pytest_dstfuzz.perturb.engine import NO_SLIP, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.reader import count_usage
from pytest_dstfuzz.perturb.words import Edit

DECOYS = Path(__file__).parents[2] / "tools" / "noise" / "sheets" / "decoys.tsv"
TOWNS = ("cambridge", "ely", "norwich")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@pytest.fixture(scope="module")
def natural(lexicon: Lexicon) -> Perturber:
    ontology = Ontology({"train-departure": TOWNS, "train-day": DAYS})
    return Perturber(lexicon, validity="natural", ontology=ontology, locks=("platinum",))


def mistyped(natural: Perturber, text: str, word: str, typed: str, *said: str) -> str:
    """Return the status of the variant with a word replaced by a typed one, and its reason."""
    source = natural.prepare(text, (), "", said)
    start = text.index(word)
    edit = Edit("char_replace", "swap", start, start + len(word), word, typed)
    variant = natural.remake(source, [edit])
    return variant.reason or variant.status


@pytest.mark.parametrize(
    ("text", "word", "typed"),
    [
        ("I want a train from Cambridge on friday", "Cambridge", "Cabridge"),
        ("I want a train from cambridge on friday", "friday", "fiday"),
        ("a train from cambridge on wednesday", "wednesday", "wedesday"),
        ("I want to travel on Monday please", "Monday", "monday"),
        ("a table for seven people please", "seven", "sevne"),
        ("a room without breakfast please", "without", "witout"),
        ("a train departing from cambridge please", "from", "fro"),
        ("book a table for two please", "for", "fo"),
    ],
)
def test_a_locked_word_takes_a_slip_that_a_reader_recovers(
    natural: Perturber, text: str, word: str, typed: str
):
    assert mistyped(natural, text, word, typed) == "valid"


@pytest.mark.parametrize(
    ("text", "word", "typed"),
    [
        ("the train leaves at 14:15 today", "14:15", "14:5"),
        ("a room in the henry viii hotel", "viii", "vii"),
        ("I want a train from cambridge now", "from", "form"),
        ("a train from ely on tuesday please", "tuesday", "thuesday"),
        ("mail me at bob@example.com please", "bob@example.com", "bob@exmple.com"),
        ("I do not want a train today", "not", "nto"),
        ("please use my platinum card today", "platinum", "platnum"),
        ("my name is Xandrovic by the way", "Xandrovic", "Xandrvic"),
        ('the film is called "sunday bloody"', "sunday", "suday"),
    ],
)
def test_text_without_redundancy_stays(natural: Perturber, text: str, word: str, typed: str):
    assert mistyped(natural, text, word, typed) != "valid"


def test_words_of_the_dialogue_are_known_to_the_reader(natural: Perturber):
    text = "are you open on sunday"
    assert mistyped(natural, text, "open", "opne", "We open at nine.") == "valid"


def test_the_probabilities_include_slips_in_locked_words(natural: Perturber, lexicon: Lexicon):
    locked = Perturber(lexicon, validity="natural", locks=("cambridge",))
    text = "cambridge please"
    free, shut = (one.prepare(text).support for one in (natural, locked))
    assert free is not None
    assert shut is not None
    assert free.noisy.probability_given(0.02) > shut.noisy.probability_given(0.02)


def test_edits_of_locked_words_are_told_apart(natural: Perturber):
    source = natural.prepare("a train from cambridge please")
    inside, outside = (
        Edit("char_drop", "any", start, start + 1, "a", "")
        for start in (source.text.index("mbridge") - 1, source.text.index("train") + 2)
    )
    assert source.touches_lock([inside])
    assert not source.touches_lock([outside])


def test_words_that_no_slip_reaches_are_named(natural: Perturber):
    found = dict(natural.unreached(natural.prepare("a train to ely at 14:15 for me or not at 9")))
    assert found["14:15"] == "number"
    assert found["or"] == NO_SLIP
    assert "train" not in found


@pytest.mark.parametrize("text", ["how much are the bikes", "Bikes?", "do you take vouchers"])
def test_plurals_of_nouns_are_no_names(natural: Perturber, text: str):
    mask = natural.prepare(text).mask
    assert mask.reasons[-1] == ""
    assert mask.roles[-1] != LOCKED


@pytest.mark.parametrize("text", ["the bar called bikes", "ask for Bikes", "a room for mr hobbs"])
def test_plurals_in_the_place_of_names_stay_locked(natural: Perturber, text: str):
    assert natural.prepare(text).mask.reasons[-1] == "name"


@pytest.mark.parametrize("known", [False, True])
def test_nearly_all_decoys_are_refused(lexicon: Lexicon, known: bool):
    # Written without knowledge of the rule: a careful reader may take each for something else.
    with DECOYS.open(encoding="utf-8", newline="") as file:
        decoys = list(csv.DictReader(file, delimiter="\t"))
    said = [[row["utterance"]] for row in decoys] * 3
    plain = Perturber(lexicon, validity="natural", usage=count_usage(said) if known else {})
    refused = 0
    for row in decoys:
        text, word = row["utterance"], row["word"]
        start = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        assert start is not None
        typed = text[: start.start()] + row["typed"] + text[start.end() :]
        support = plain.prepare(text).support
        assert support is not None
        refused += support.noisy.log_probability(typed, 0.02) == -math.inf
    assert len(decoys) == 40
    assert refused >= 36
