"""The operators of the three character-level transformations: typing errors of a word.

Each is a pure function of a word as typed and, where it needs to know more, of what the validity
profile allows; `operator` says what each kind of them is asked. In ``strict`` only those typing
errors are made of what they propose that are harmless: see `TypoTable`. The examples are run as
tests, with the policies ``strict`` and ``edit_rate`` over the shipped lexicon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.perturb.typos import ENDINGS, SEPARATORS
from pytest_dstfuzz.transformations import Typo, operator

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.edit_policy import EditPolicy

#: What is typed inside a word and at both its ends in the profile ``edit-rate``.
_ANY_PUNCTUATION: Final = (" ", "-", ".", ",", ";", ":", "!", "?", "'", '"', "_", "/")
#: Words shorter than this lose no letter and swap none in strict.
_SHORTEST: Final = 4


@operator("char_insert", "typo")
def repeat(word: str) -> list[Typo]:
    """Type a letter twice.

    >>> repeat("ab")
    [Typo(start=1, end=1, choices=('a',)), Typo(start=2, end=2, choices=('b',))]
    """
    return [Typo(place, place, (letter,)) for place, letter in enumerate(word, 1)]


@operator("char_insert", "typo")
def keyboard_insert(word: str, policy: EditPolicy) -> list[Typo]:
    """Hit the key beside a letter as well.

    >>> keyboard_insert("ok", strict)[0]
    Typo(start=1, end=1, choices=('i', 'k', 'l', 'p'))
    """
    return [Typo(place, place, policy.near(letter)) for place, letter in enumerate(word, 1)]


@operator("char_insert", "punctuate")
def punctuation(word: str, policy: EditPolicy) -> list[Typo]:
    """Type a blank or a mark in a word, or a mark after it.

    >>> [(typo.start, "".join(typo.choices)) for typo in punctuation("hello", strict)]
    [(2, ' -.,'), (3, ' -.,'), (5, ',.;!')]
    """
    length = len(word)
    if not policy.strict:
        return [Typo(place, place, _ANY_PUNCTUATION) for place in range(length + 1)]
    inside = [Typo(place, place, SEPARATORS) for place in range(2, length - 1)]
    return [*inside, Typo(length, length, ENDINGS)]


@operator("char_replace", "typo")
def look_alike(word: str, policy: EditPolicy) -> list[Typo]:
    """Put a character that looks alike in the place of a letter.

    >>> look_alike("o", strict)
    [Typo(start=0, end=1, choices=('ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ō', 'о', 'ο'))]
    """
    known = policy.lexicon.look_alikes
    return [Typo(place, place + 1, known.get(c, ())) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def keyboard(word: str, policy: EditPolicy) -> list[Typo]:
    """Hit the key beside a letter instead; in strict no digit, which would be a number.

    >>> keyboard("P", strict), "0" in keyboard("P", edit_rate)[0].choices
    ([Typo(start=0, end=1, choices=('L', 'O'))], True)
    """
    return [Typo(place, place + 1, policy.near(c)) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def swap(word: str, policy: EditPolicy) -> list[Typo]:
    """Type two letters in the wrong order.

    >>> swap("need", strict)
    [Typo(start=0, end=2, choices=('en',)), Typo(start=2, end=4, choices=('de',))]
    """
    if policy.strict and len(word) < _SHORTEST:
        return []
    return [
        Typo(place, place + 2, (word[place + 1] + word[place],))
        for place in range(len(word) - 1)
        if word[place] != word[place + 1]
    ]


@operator("char_drop", "join")
def blank(left: str, right: str, policy: EditPolicy) -> bool:
    """Leave the blank between two words out.

    >>> blank("need", "some", strict), blank("any", "one", strict)
    (True, False)
    """
    return policy.harmless(left + right)


@operator("char_drop", "typo", name="any")
def drop_letter(word: str, policy: EditPolicy) -> list[Typo]:
    """Leave a letter out.

    >>> drop_letter("taxi", strict)[0], drop_letter("bus", strict)
    (Typo(start=0, end=1, choices=('',)), [])
    """
    if policy.strict and len(word) < _SHORTEST:
        return []
    return [Typo(place, place + 1, ("",)) for place in range(len(word))]
