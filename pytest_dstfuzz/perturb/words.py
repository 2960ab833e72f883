"""Words of a text, and the types of edits."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal, NamedTuple

__all__ = ["Action", "Edit", "Variant", "word_list"]


#: What became of one generated variant before any tracker saw it.
Status = Literal["valid", "vacuous", "vetoed", "over_rate"]


@dataclass(frozen=True, slots=True)
class Action:
    """A point of the unit cube, and how many transformations it associates."""

    #: Reals in [0, 1] on the grid of 1/1024; see `ActionSpace` for the layout.
    vector: tuple[float, ...]
    k: int  #: Number of associated transformations: those of largest importance.


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, as made on the text that the edits before it had produced.

    ``text[start:end] == before`` holds for that text, and the edit puts ``after``
    in its place; offsets are in code points.
    """

    transformation: str
    operator: str
    start: int
    end: int
    before: str
    after: str


class Variant(NamedTuple):
    """A perturbed utterance and how it came about."""

    #: The clean utterance.
    source: str
    text: str
    #: In the order in which they were made.
    edits: tuple[Edit, ...]
    #: Jaccard distance of the word sets, before and after the word-level edits, in [0, 1].
    edit_w: float
    #: 1 - Jaro similarity, before and after the character-level edits, in [0, 1].
    edit_c: float
    status: Status
    #: Why it is not valid: the lock that vetoed it, or the rate that is over its limit;
    #: ``""`` for a valid variant.
    reason: str = ""
    #: Natural logarithm of how likely the noise model makes the text, given that no lock is
    #: touched; ``None`` in profiles without one, and for what it cannot make.
    log_probability: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the variant passed the validity profile."""
        return self.status == "valid"


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


def word_set(text: str) -> frozenset[str]:
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
