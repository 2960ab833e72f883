"""TRADE reads a misspelled word as the word that the user probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz import Context, Exchange
from pytest_dstfuzz.models.trade.nearest import NearestWords, known_words
from pytest_dstfuzz.models.trade.vocabulary import Vocabulary

COUNTS = {
    "the": 900,
    "hotel": 500,
    "with": 400,
    "parking": 300,
    "restaurant": 300,
    "to": 800,
    "from": 400,
    "wifi": 40,
    "friday": 60,
    "wagamama": 9,
    "table": 100,
    "i": 900,
    "so": 50,
}
NEAREST = NearestWords(COUNTS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("teh", "the"),
        ("hoel", "hotel"),
        ("hotell", "hotel"),
        ("fridzy", "friday"),
        ("ot", "to"),
        ("resturnat", "restaurant"),
        ("wagmama", "wagamama"),
        ("hotél", "hotel"),
    ],
)
def test_a_misspelled_word_is_read_as_the_nearest_word(typed: str, meant: str) -> None:
    assert NEAREST.read([typed]) == (meant,)


def test_of_equally_near_words_the_most_frequent_is_read() -> None:
    assert NearestWords({"hat": 5, "cat": 90}).read(["xat"]) == ("cat",)
    # But swapped letters and the right first letter weigh more.
    assert NearestWords({"wifi": 40, "wife": 50}).read(["wfii"]) == ("wifi",)
    assert NearestWords({"hotel": 40, "motel": 90}).read(["hotal"]) == ("hotel",)


@pytest.mark.parametrize("word", ["form", "hotels", "kx7rt2", "19:45", "zq", "qqqqqqqq", "x" * 99])
def test_words_codes_and_unclear_words_stay(word: str) -> None:
    assert NEAREST.read([word]) == (word,)


def test_words_that_the_system_said_stay() -> None:
    assert NEAREST.read(["hotell"], {"hotell"}) == ("hotell",)


def test_missing_and_added_blanks_are_mended() -> None:
    assert NEAREST.read(["thetable", "so"]) == ("the", "table", "so")
    assert NEAREST.read(["soi"]) == ("so", "i")
    assert NEAREST.read(["the", "rest", "aurant"]) == ("the", "restaurant")
    assert NEAREST.read(["the", "restau", "rant"]) == ("the", "restaurant")


def test_frequent_slips_of_a_training_split_are_not_known() -> None:
    counts = {"restaurant": 7000, "restuarant": 14, "cambridge": 7000, "hotel": 900, "hotels": 9}
    counts |= {"cambrige": 9, "hotell": 2, "14:00": 2, "restaurants": 50}
    assert list(known_words(counts)) == [
        *("14:00", "cambridge", "hotel", "hotels", "restaurant", "restaurants"),
    ]


@given(st.lists(st.sampled_from([*COUNTS, "form", "?", "ab12"])))
def test_known_words_stay(words: list[str]) -> None:
    assert NEAREST.read(words) == tuple(words)


def test_only_the_words_of_the_user_are_read() -> None:
    words = ("<pad>", "<unk>", "<end>", "<sys>", "<usr>", "the", "hotel")
    context = Context((Exchange("teh hotl", "teh hotl"), Exchange("", "the hotell")))
    plain = Vocabulary(words, 5, (), {})
    mended = Vocabulary(words, 5, (), {}, counts={"the": 9, "hotel": 9})
    assert plain.history(context, 99) == (
        *("<sys>", "teh", "hotl", "<usr>", "teh", "hotl", "<usr>", "the", "hotell"),
    )
    # The system has said "teh" and "hotl".
    assert mended.history(context, 99) == (
        *("<sys>", "teh", "hotl", "<usr>", "teh", "hotl", "<usr>", "the", "hotel"),
    )
    assert plain.fingerprint() != mended.fingerprint()
