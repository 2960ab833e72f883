"""Texts as the network of the assistant reads them: tokens, their vectors and their shapes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from pytest_dstfuzz.comparisons.vectors import NUMBER, shipped_vectors
from pytest_dstfuzz.dialogue.number_words import with_digits

Array = np.ndarray[Any, np.dtype[np.float32]]
#: Numbers in the vector of a word.
WIDTH: Final = 96
#: Numbers that say what a token looks like.
SHAPE: Final = 16
#: Longer texts are cut: of an assistant's text the end is read, of a user's the beginning.
LONGEST: Final = 90
_TOKEN: Final = re.compile(
    r"\d+(?:[.,:/]\d+)+|[^\W_]+(?:[.'’-][^\W_]+)*\.?(?<=[ap]\.m\.)|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]"
)
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TIMES: Final = frozenset(
    [
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("january", "february", "march", "april", "may", "june", "july", "august"),
        *("september", "october", "november", "december", "today", "tomorrow", "tonight"),
    ]
)
_HALVES: Final = frozenset(
    ["am", "pm", "a.m", "p.m", "a.m.", "p.m.", "morning", "afternoon", "evening", "night", "noon"]
)


class TextToken(NamedTuple):
    """One token of a text: ``text == whole[start:end]``."""

    text: str
    start: int
    end: int
    lower: str


def tokens(text: str) -> list[TextToken]:
    """Return words, numbers and signs of a text, with where they stand.

    >>> [token.text for token in tokens("Book it at 7:30 p.m., don't wait!")]
    ['Book', 'it', 'at', '7:30', 'p.m.', ',', "don't", 'wait', '!']
    """
    return [
        TextToken(found[0], found.start(), found.end(), found[0].lower().replace("’", "'"))
        for found in _TOKEN.finditer(text)
    ]


def label_words(name: str) -> list[str]:
    """Return the words of a name as programs write it, in lower case.

    >>> label_words("number_of_seats"), label_words("FindRestaurants")
    (['number', 'of', 'seats'], ['find', 'restaurants'])
    """
    return [found[0].lower() for found in _PARTS.finditer(name)]


@lru_cache(maxsize=65536)
def word_vector(word: str) -> tuple[Array, float]:
    """Return the direction ``[WIDTH]`` of a word in lower case, and how much it says."""
    table = shipped_vectors()
    place = table.places.get(NUMBER if any(map(str.isdigit, word)) else word)
    row = (
        table.parts(word).total if place is None else table.words[place] * table.word_scales[place]
    )
    length = float(np.sqrt(row @ row))
    return np.asarray(row / np.float32(max(length, 1e-9)), np.float32), length


@lru_cache(maxsize=65536)
def plain(word: str) -> str:
    """Return a word in lower case as values are compared: numbers as digits."""
    return with_digits(word)


def directions(words: list[str]) -> tuple[Array, Array]:
    """Return the vectors of words ``[words, WIDTH]`` and their lengths ``[words]``."""
    if not words:
        return np.zeros((0, WIDTH), np.float32), np.zeros(0, np.float32)
    found = [word_vector(word) for word in words]
    return np.stack([one for one, _ in found]), np.array([n for _, n in found], np.float32)


def sum_vector(words: list[str]) -> Array:
    """Return the direction of several words together, all zero where there is none."""
    rows, lengths = directions(words)
    total = lengths @ rows
    return np.asarray(total / np.float32(max(float(np.sqrt(total @ total)), 1e-9)), np.float32)


@lru_cache(maxsize=65536)
def _shape(text: str) -> tuple[float, ...]:
    lower = text.lower()
    digit = any(map(str.isdigit, text))
    return (
        float(digit),
        float(text.isdigit()),
        float(digit and ":" in text),
        float(text[:1].isupper()),
        float(len(text) > 1 and text.isupper()),
        float(not text[:1].isalnum()),
        float(text == "?"),
        float(not digit and any(map(str.isdigit, with_digits(lower)))),
        float(lower in _TIMES),
        float(lower in _HALVES or (digit and lower.endswith(("am", "pm")))),
        float(text in "$£€#"),
        float(lower not in shipped_vectors().places),
        min(word_vector(lower)[1], 2.0),
    )


def shapes(read: list[TextToken], *, user: bool) -> Array:
    """Return what tokens look like ``[tokens, SHAPE]``: letters, digits, place, who says them."""
    table = np.zeros((len(read), SHAPE), np.float32)
    for number, token in enumerate(read):
        table[number, :13] = _shape(token.text)
        table[number, 13] = user
        table[number, 14] = number == 0 or read[number - 1].text in ".!?"
        table[number, 15] = number == len(read) - 1
    return table


@lru_cache(maxsize=65536)
def folded(text: str) -> str:
    """Return a text as values are compared: lower case, single blanks, numbers as digits."""
    return " ".join(with_digits(text).lower().split()).strip(" .,!?")


def says(text: str, value: str) -> bool:
    """Say whether a folded text has a folded value as whole words."""
    place = text.find(value) if value else -1
    while place >= 0:
        end = place + len(value)
        before, after = text[place - 1 : place], text[end : end + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        place = text.find(value, place + 1)
    return False
