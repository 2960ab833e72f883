"""Counts of words beside each other."""

from __future__ import annotations

from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.sentences import NeighbourCounts, neighbour_counts
from pytest_dstfuzz.perturb.words import take_apart
from tools.lexicon.neighbours import make

TEXTS = ("I want a train to Leeds.", "I want a taxi to the station!", "a train at 9:15, please") * 3


def fit(counts: NeighbourCounts, text: str, at: int, *words: str) -> list[float]:
    """Return how well words fit in the place of a word of a text."""
    return counts.fit(words, counts.sides(take_apart(text))[at]).tolist()


def test_a_word_fits_where_it_was_counted():
    counts = NeighbourCounts(make(TEXTS, load_lexicon(), (1, 1, 1)))
    train, please = fit(counts, "I want a train to Leeds", 3, "train", "please")
    assert train > 1 > please


def test_the_counts_have_no_names_and_no_numbers():
    table = make(TEXTS, load_lexicon(), (1, 1, 1))
    words = table["words"].split(" ")
    assert "leeds" not in words
    assert not any(any(map(str.isdigit, word)) for word in words)


def test_the_same_texts_give_the_same_table():
    one, other = (make(texts, load_lexicon(), (1, 1, 1)) for texts in (TEXTS, TEXTS[::-1]))
    assert one == other


def test_unknown_words_beside_a_word_are_no_error():
    assert all(value > 0 for value in fit(neighbour_counts(), "Zyx Qwv", 0, "xyz", "the"))
