"""Words as typed, and how far two texts are apart."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import DamerauLevenshtein

from pytest_dstfuzz.perturb.validity import (
    distinct_words,
    edit_c,
    edit_w,
    typing_distance,
    word_limit,
)
from pytest_dstfuzz.perturb.words import match_case, take_apart, word_list


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" ?! ", []),
        ("I 'm at St. John 's .", ["I", "'m", "at", "St", "John", "'s"]),
        ("don't pre-book it, 'kay?", ["don't", "pre-book", "it", "kay"]),
        ("17:15, 10.30 or 5,000", ["17:15", "10.30", "or", "5,000"]),
        ("hotel.The £20 room", ["hotel", "The", "£20", "room"]),
        ("😀 👨‍👩‍👧!", ["😀", "👨‍👩‍👧"]),
        ("שלום, עולם؟", ["שלום", "עולם"]),
        ("cafe\u0301 नमस्ते।", ["cafe\u0301", "नमस्ते"]),
        ("zero\u200bwidth", ["zero\u200bwidth"]),
    ],
)
def test_words_of_all_kinds_of_text(text: str, words: list[str]) -> None:
    assert [word.text for word in take_apart(text).words] == words
    assert word_list(text) == [word.lower() for word in words]


@given(st.text())
def test_words_are_where_they_say(text: str) -> None:
    end = 0
    for word in take_apart(text).words:
        assert text[word.start : word.end] == word.text
        assert end <= word.start < word.end
        end = word.end


def test_long_texts_are_split_quickly() -> None:
    start = time.perf_counter()
    for text in ("x" * 10_000, "don't " * 1700, "a-" * 5000, "''" * 5000, "1." * 5000):
        take_apart(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("model", "word", "result"),
    [("Help", "assist", "Assist"), ("HELP", "aid", "AID"), ("help", "aid", "aid"), ("I", "u", "U")],
)
def test_replacements_take_the_case_of_the_word(model: str, word: str, result: str) -> None:
    assert match_case(model, word) == result


@given(st.text(alphabet="aB1'’-., \n£é😀", max_size=20) | st.text(max_size=40))
def test_the_parts_of_a_text_make_the_text(text: str) -> None:
    words, gaps, starts, ends = take_apart(text)
    assert (
        "".join([part for w, gap in zip(words, gaps, strict=False) for part in (gap, w.text)])
        + (gaps[-1])
        == text
    )
    assert [(w.start, w.end) for w in words] == list(zip(starts, ends, strict=True))
    assert all(text[w.start : w.end] == w.text and w.lower == w.text.lower() for w in words)


@given(st.text(max_size=40), st.text(max_size=40))
def test_rates_lie_between_0_and_1_and_are_0_for_the_same(one: str, other: str) -> None:
    assert 0 <= edit_c(one, other) <= 1
    assert edit_c(one, one) == 0
    words = distinct_words(one)
    assert 0 <= edit_w(words, other) <= 1
    assert edit_w(words, one) == 0


def test_edit_w_ignores_case_and_punctuation() -> None:
    assert edit_w(distinct_words("I want food."), "i want , FOOD") == 0
    assert edit_w(distinct_words("a b c"), "a b d") == pytest.approx(0.5)
    assert edit_c("martha", "marhta") == pytest.approx(1 - 17 / 18)


def test_one_substitution_is_always_within_the_limit_of_words() -> None:
    few, many = frozenset("abc"), frozenset("abcdefgh")
    assert word_limit(few, 0.25) == 0.5
    assert word_limit(few, 0.25, flat=True) == 0.25
    assert word_limit(many, 0.25) == 0.25
    assert word_limit(few, 0.0) == 0


@pytest.mark.parametrize(
    ("old", "new", "distance"),
    [("north", "nroth", 1), ("north", "noorth", 1), ("north", "south", 2), ("", "a", 1)],
)
def test_typing_distance_is_the_same_inside_a_very_long_word(
    old: str, new: str, distance: int
) -> None:
    assert typing_distance(old, new) == distance
    around = "xy" * 5_000
    assert typing_distance(around + old + around, around + new + around) == distance


@given(st.text("ab", max_size=12), st.text("ab", max_size=12), st.text("ab", min_size=101))
def test_equal_ends_of_long_words_do_not_count(old: str, new: str, ends: str) -> None:
    distance = DamerauLevenshtein.distance(ends + old + ends, ends + new + ends)
    assert typing_distance(ends + old + ends, ends + new + ends) == distance


def test_words_that_are_long_and_unlike_are_no_typing_errors() -> None:
    # Letter by letter this took 15 seconds and nearly a gigabyte.
    old, new = "x" + "hotel" * 2_000, "hotel" * 2_000 + "x"
    assert typing_distance("a" + old, new + "b") == len(old) + 1
