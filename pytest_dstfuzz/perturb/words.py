"""Word splitting, and the types for edits and variants."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal, NamedTuple

__all__ = ["Action", "Edit", "Variant", "word_list"]


#: Result of the validity check of one variant, before any tracker sees it.
Status = Literal["valid", "vacuous", "vetoed", "over_rate"]


@dataclass(frozen=True, slots=True)
class Action:
    """A point of the unit cube, and the number of transformations to apply."""

    #: Reals in [0, 1] on the grid of 1/1024; see `ActionSpace` for the layout.
    vector: tuple[float, ...]
    k: int  #: Number of transformations to apply: the ``k`` with the highest importance.


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, with offsets in the text after all earlier edits.

    The edit replaces ``text[start:end]``, which equals ``before``, by ``after``. Offsets are
    in code points.
    """

    transformation: str
    operator: str
    start: int
    end: int
    before: str
    after: str


class Variant(NamedTuple):
    """A perturbed utterance, its edits, and the result of its validity check."""

    #: The clean utterance.
    source: str
    text: str
    #: The edits, in the order in which they were applied.
    edits: tuple[Edit, ...]
    #: Jaccard distance of the word sets, before and after the word-level edits, in [0, 1].
    edit_w: float
    #: 1 - Jaro similarity, before and after the character-level edits, in [0, 1].
    edit_c: float
    status: Status
    #: The reason if the variant is not valid: the lock that vetoed it, or the rate that exceeds its
    #: limit. It is ``""`` if the variant is valid.
    reason: str = ""
    #: Natural logarithm of the probability of the text under the noise model, given that no slip
    #: touches a lock. ``None`` if the profile has no noise model or the model cannot make the text.
    log_probability: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the variant passed the validity profile."""
        return self.status == "valid"


#: Punctuation that ends a word. It has no currency signs: ``£20`` is one word.
PUNCTUATION: Final = (
    r"!\"#%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"
    r"¡§«¶·»¿‐-‧‰-⁞、-〃〈-】〔-〟"
    r"！-／：-＠［-｀｛-･،؛؟۔־׀׃׳״।॥"
)
# List all blanks, because a single character class matches faster than two.
_BLANKS: Final = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CORE: Final = rf"[^{_BLANKS}{PUNCTUATION}]"
# Ignore case only for clitics, because it is slow for a large character class.
_WORD: Final = re.compile(
    rf"['’](?i:s|m|d|re|ve|ll|t)(?!{_CORE})"
    rf"|{_CORE}+(?:(?:['’\-](?={_CORE})|(?<=\d)[.:,/](?=\d)){_CORE}+)*"
)
_CAPTURED_WORD: Final = re.compile(f"({_WORD.pattern})")
_CHARACTER: Final = re.compile(_CORE)
_MARK: Final = re.compile(rf"[{PUNCTUATION}]")


class Word(NamedTuple):
    """One word: ``text == utterance[start:end]``. Offsets are in code points."""

    text: str
    start: int
    end: int
    lower: str


class Parts(NamedTuple):
    """A text split into words: ``gaps[0] + words[0].text + gaps[1] + ... + gaps[-1]``."""

    words: tuple[Word, ...]
    #: The text before each word, and the text after the last one.
    gaps: list[str]
    #: Start and end offsets of the words.
    starts: list[int]
    ends: list[int]


def take_apart(text: str) -> Parts:
    """Split any text into its words and the text between them."""
    pieces = _CAPTURED_WORD.split(text)
    words = pieces[1::2]
    offsets = list(accumulate(map(len, pieces)))
    starts, ends = offsets[:-1:2], offsets[1::2]
    spelled = tuple(map(Word, words, starts, ends, map(str.lower, words)))
    return Parts(spelled, pieces[::2], starts, ends)


def marks(text: str) -> list[str]:
    """Return the punctuation marks of ``text``, including those inside words."""
    return _MARK.findall(text)


def word_list(text: str) -> list[str]:
    """Return the lower-cased words of ``text`` in reading order."""
    # Lower the whole text at once, which is faster, because spans are not needed.
    return _WORD.findall(text.lower())


def equal_ends(one: str, other: str) -> tuple[int, int]:
    """Return the lengths of the common prefix of two texts, and of the common suffix after it.

    >>> equal_ends("leaving", "leavng"), equal_ends("aa", "aaa")
    ((4, 2), (2, 0))
    """
    shortest = min(len(one), len(other))
    head = 0
    while head < shortest and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < shortest - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    return head, tail


def one_letter_away(word: str) -> set[str]:
    """Return all texts one typing error away: a letter dropped, added, replaced or two swapped."""
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = string.ascii_lowercase
    found = {head + tail[1:] for head, tail in parts if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1}
    found |= {head + new + tail[1:] for head, tail in parts if tail for new in letters}
    found |= {head + new + tail for head, tail in parts for new in letters}
    return found - {word}


def word_set(text: str) -> frozenset[str]:
    """Split a list of words written as text, separated by blanks."""
    return frozenset(text.split())


@lru_cache(maxsize=8192)
def is_word_character(character: str) -> bool:
    """Return whether ``character`` can be part of a word. Blanks and punctuation cannot."""
    return _CHARACTER.match(character) is not None


def match_case(model: str, word: str) -> str:
    """Return ``word`` in the case pattern of ``model``: lower, Title or UPPER."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word
