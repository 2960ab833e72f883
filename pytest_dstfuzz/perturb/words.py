"""Words of an utterance as typed, with their spans.

A word is a run of characters that are neither blank nor punctuation, held together by
apostrophes and hyphens between letters and by ``. : , /`` between digits (``don't``,
``pre-book``, ``17:15``). Clitics that stand alone (``I 'm``, ``John 's``) are words with
their apostrophe. Emoji, combining marks, zero-width characters and every script count as
word characters, so that no utterance is without something to work on unless it is blank.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

__all__ = ["word_list"]

#: Punctuation that ends a word. Currency signs are not in it: ``£20`` is one word.
PUNCTUATION: Final = (
    r"!\"#%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"
    r"¡§«¶·»¿‐-‧‰-⁞、-〃〈-】〔-〟"
    r"！-／：-＠［-｀｛-･،؛؟۔־׀׃׳״।॥"
)
# Every blank is spelled out: one class of characters is looked up faster than two.
_BLANKS: Final = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CORE: Final = rf"[^{_BLANKS}{PUNCTUATION}]"
# Case is ignored in clitics alone: over a whole class of characters that takes long.
_WORD: Final = re.compile(
    rf"['’](?i:s|m|d|re|ve|ll|t)(?!{_CORE})"
    rf"|{_CORE}+(?:(?:['’\-](?={_CORE})|(?<=\d)[.:,/](?=\d)){_CORE}+)*"
)
_CAPTURED_WORD: Final = re.compile(f"({_WORD.pattern})")
_CHARACTER: Final = re.compile(_CORE)
_MARK: Final = re.compile(rf"[{PUNCTUATION}]")


class Word(NamedTuple):
    """One word: ``text == utterance[start:end]``, offsets in code points."""

    text: str
    start: int
    end: int
    lower: str


class Parts(NamedTuple):
    """A text taken apart: ``gaps[0] + words[0].text + gaps[1] + ... + gaps[-1]``."""

    words: tuple[Word, ...]
    #: What is before each word, and after the last one.
    gaps: list[str]
    #: Offsets at which words start, and at which they end.
    starts: list[int]
    ends: list[int]


def take_apart(text: str) -> Parts:
    """Return the words of ``text`` and what is between them; every utterance is allowed."""
    pieces = _CAPTURED_WORD.split(text)
    words = pieces[1::2]
    offsets = list(accumulate(map(len, pieces)))
    starts, ends = offsets[:-1:2], offsets[1::2]
    spelled = tuple(map(Word, words, starts, ends, map(str.lower, words)))
    return Parts(spelled, pieces[::2], starts, ends)


def marks(text: str) -> list[str]:
    """Return the punctuation of ``text``, in words too."""
    return _MARK.findall(text)


def word_list(text: str) -> list[str]:
    """Return the lower-cased words of ``text`` in reading order."""
    # One lower-case over the whole is quicker; spans are not needed here.
    return _WORD.findall(text.lower())


def one_letter_away(word: str) -> set[str]:
    """Return what is one letter from a word: left out, put in, replaced, or two swapped."""
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = string.ascii_lowercase
    found = {head + tail[1:] for head, tail in parts if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1}
    found |= {head + new + tail[1:] for head, tail in parts if tail for new in letters}
    found |= {head + new + tail for head, tail in parts for new in letters}
    return found - {word}


def listed(text: str) -> frozenset[str]:
    """Return the words of a list written as text, parted by blanks."""
    return frozenset(text.split())


@lru_cache(maxsize=8192)
def is_word_character(character: str) -> bool:
    """Say whether ``character`` is part of words: neither blank nor punctuation."""
    return _CHARACTER.match(character) is not None


def match_case(model: str, word: str) -> str:
    """Give ``word`` the case pattern of ``model``: lower, Title or UPPER."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word
