"""Words of an utterance as typed, with their spans.

A word is a run of characters that are neither blank nor punctuation, held together by
apostrophes and hyphens between letters and by ``. : , /`` between digits (``don't``,
``pre-book``, ``17:15``). Clitics that stand alone (``I 'm``, ``John 's``) are words with
their apostrophe. Emoji, combining marks, zero-width characters and every script count as
word characters, so that no utterance is without something to work on unless it is blank.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

#: Punctuation that ends a word. Currency signs are not in it: ``£20`` is one word.
PUNCTUATION: Final = (
    r"!\"#%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"
    r"¡§«¶·»¿‐-‧‰-⁞、-〃〈-】〔-〟"
    r"！-／：-＠［-｀｛-･،؛؟۔־׀׃׳״।॥"
)
_CORE: Final = rf"[^\s{PUNCTUATION}]"
_WORD: Final = re.compile(
    rf"['’](?:s|m|d|re|ve|ll|t)(?!{_CORE})"
    rf"|{_CORE}+(?:(?:['’\-](?={_CORE})|(?<=\d)[.:,/](?=\d)){_CORE}+)*",
    re.IGNORECASE,
)
_CHARACTER: Final = re.compile(_CORE)


class Word(NamedTuple):
    """One word: ``text == utterance[start:end]``, offsets in code points."""

    text: str
    start: int
    end: int
    lower: str


def split_words(text: str) -> list[Word]:
    """Return the words of ``text`` in reading order; every utterance is allowed."""
    return [Word(word := match[0], *match.span(), word.lower()) for match in _WORD.finditer(text)]


def word_list(text: str) -> list[str]:
    """Return the lower-cased words of ``text`` in reading order."""
    # One lower-case over the whole is quicker; spans are not needed here.
    return _WORD.findall(text.lower())


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
