"""Slips of the letters of one word: what may be typed in its place, and what makes it likely.

A slip of letters has *features*, from coarse to fine: how long the word is, where in it the
finger slipped, and which letters are concerned. A model has a factor for each feature that it
knows; how likely a slip is, before its kind is weighed, is the product of its factors.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.words import match_case

#: Kind -> transformation and operator, as edits record it.
LETTER_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "keyboard": ("char_replace", "keyboard"),
    "confusion": ("char_replace", "confusion"),
    "repeat": ("char_insert", "repeat"),
    "keyboard_insert": ("char_insert", "keyboard_insert"),
    "missing": ("char_drop", "any"),
    "swap": ("char_replace", "swap"),
    # For likelihoods alone: a letter that neither the keyboard nor a habit explains.
    "other": ("char_replace", "any"),
}
OTHER: Final = "other"

#: Longer words are addresses and tokens, not typed by hand.
LONGEST: Final = 40
_VOWELS: Final = frozenset("aeiou")
_LOW: Final = string.ascii_lowercase
#: Nothing before the first letter, nothing after the last.
_EDGE: Final = "^"


class LetterSlip(NamedTuple):
    """``word[start:end]`` becomes ``after`` (in the case of the word)."""

    kind: str
    start: int
    end: int
    after: str
    #: From coarse to fine.
    features: tuple[str, ...]

    def put_into(self, word: str) -> str:
        """Return the word with the slip."""
        return word[: self.start] + self.after + word[self.end :]


class Habits(NamedTuple):
    """What letters can be typed for which: the alphabet of slips."""

    #: Letter or digit -> the keys around it.
    keyboard: Mapping[str, str]
    #: Letter -> letters that people write for it, which are not beside it.
    confusions: Mapping[str, str]


def letter_slips(word: str, habits: Habits, *, every: bool = False) -> Iterator[LetterSlip]:
    """Yield the slips of letters of a word as typed; no two of them give the same text.

    Nothing is done to a letter of one alone but to hit it, or the key beside it, once more:
    the word would be another. Characters that are no letters and no digits stay.

    Args:
        word: as typed.
        habits: which letters can stand for which.
        every: also any other letter, which no keyboard and no habit explains.
    """
    low = word.lower()
    if len(low) != len(word) or len(low) > LONGEST:
        return
    size = _size(len(low))
    if len(low) > 1:
        yield from _missing(low, size)
        yield from _swaps(word, low, size)
        yield from _replaced(word, low, size, habits, every=every)
    yield from _inserted(word, low, size, habits, every=every)


def _missing(low: str, size: str) -> Iterator[LetterSlip]:
    for place, letter in enumerate(low):
        # Of letters in a row it does not show which one is missing.
        if not letter.isalnum() or (place and low[place - 1] == letter):
            continue
        before = low[place - 1] if place else _EDGE
        twice = low[place + 1 : place + 2] == letter
        yield LetterSlip(
            "missing",
            place,
            place + 1,
            "",
            (
                size,
                _place(place, len(low) - 1 - twice),
                "of two" if twice else "alone",
                f"class {_class(letter)}",
                f"letter {letter}",
                f"pair {before}{letter}",
            ),
        )


def _swaps(word: str, low: str, size: str) -> Iterator[LetterSlip]:
    for place in range(len(low) - 1):
        one, other = low[place], low[place + 1]
        if one == other or not (one.isalnum() and other.isalnum()):
            continue
        # A capital stays where it is: `Hte` for `The`.
        swapped = word[place + 1] + word[place]
        if word[place].isupper() and word[place + 1].islower():
            swapped = match_case(word[place : place + 2], swapped.lower())
        where = _place(place, len(low) - 2)
        classes = f"class {_class(one)}{_class(other)}"
        features = (size, where, classes, f"pair {one}{other}")
        yield LetterSlip("swap", place, place + 2, swapped, features)


def _replaced(
    word: str, low: str, size: str, habits: Habits, *, every: bool
) -> Iterator[LetterSlip]:
    for place, letter in enumerate(low):
        where = _place(place, len(low) - 1)
        upper = word[place].isupper()
        near = habits.keyboard.get(letter, "")
        confused = habits.confusions.get(letter, "") if letter in _LOW else ""
        for kind, letters in (("keyboard", near), ("confusion", confused)):
            for new in letters:
                features = (size, where, f"letter {letter}", f"pair {letter}{new}")
                after = new.upper() if upper else new
                yield LetterSlip(kind, place, place + 1, after, features)
        if every and letter in _LOW:
            for new in _LOW:
                if new not in near and new not in confused and new != letter:
                    after = new.upper() if upper else new
                    yield LetterSlip(OTHER, place, place + 1, after, ("replaced", size, where))


def _inserted(
    word: str, low: str, size: str, habits: Habits, *, every: bool
) -> Iterator[LetterSlip]:
    capitals = len(word) > 1 and word.isupper()
    for place in range(len(low) + 1):
        left = low[place - 1] if place else _EDGE
        right = low[place] if place < len(low) else _EDGE
        where = _place(place, len(low))
        # After the last of letters in a row: it does not show after which.
        if place and left.isalnum() and left != right:
            twice = "of two" if low[place - 2 : place - 1] == left else "alone"
            again = (size, where, twice, f"class {_class(left)}", f"letter {left}")
            yield LetterSlip("repeat", place, place, word[place - 1], again)
        near = habits.keyboard.get(left, "") + habits.keyboard.get(right, "")
        for new in dict.fromkeys(near):
            if new in (left, right):
                continue
            beside = left if new in habits.keyboard.get(left, "") else right
            features = (size, where, f"letter {new}", f"pair {beside}{new}")
            after = new.upper() if capitals else new
            yield LetterSlip("keyboard_insert", place, place, after, features)
        if every and (left in _LOW or right in _LOW):
            for new in _LOW:
                if new not in near and new not in (left, right):
                    after = new.upper() if capitals else new
                    yield LetterSlip(OTHER, place, place, after, ("inserted", size, where))


def _size(length: int) -> str:
    """Name the length of a word, longer ones in classes."""
    if length < 5:
        return f"length {length}"
    return "length 5 to 6" if length < 7 else "length 7 to 8" if length < 9 else "length 9"


def _place(place: int, last: int) -> str:
    """Name a place in a word: first, last, second, or inside."""
    if place == 0:
        return "first"
    return "last" if place >= last else "second" if place == 1 else "inside"


def _class(letter: str) -> str:
    return "v" if letter in _VOWELS else "c" if letter in _LOW else "d"
