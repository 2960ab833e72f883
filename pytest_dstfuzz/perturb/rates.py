"""How far a variant is from its source: the two edit rates and their limits."""

from __future__ import annotations

from typing import Final

import jellyfish

from pytest_dstfuzz.perturb.edits import equal_ends
from pytest_dstfuzz.perturb.words import word_list

#: Characters of the longest utterance that is edited. Jaro similarity takes time by the square
#: of the length: a quarter of a second here, more than a minute for 164,000 characters.
LONGEST_EDITED: Final = 10_000
#: Letters up to which two words are compared letter by letter, likewise: so many by so many.
_LONGEST_WORD: Final = 100


def distinct_words(text: str) -> frozenset[str]:
    """Return the different words of ``text``, lower-cased, without punctuation."""
    return frozenset(word_list(text))


def edit_w(before: frozenset[str], after: str) -> float:
    """Return the Jaccard distance of two word sets, in [0, 1]; 0 where both are empty.

    Args:
        before: `distinct_words` of the clean utterance, which all its variants share.
        after: the text to compare with it.
    """
    new = distinct_words(after)
    # One division, so that 2 of 3 words is the same float as the limit 2 / 3.
    return len(before ^ new) / len(before | new) if before or new else 0.0


def edit_c(before: str, after: str) -> float:
    """Return 1 - Jaro similarity of the texts, in [0, 1]; 0 for equal ones.

    Takes time by the square of their lengths; see `LONGEST_EDITED`.
    """
    if before == after:
        return 0.0
    return 1.0 - float(jellyfish.jaro_similarity(_encodable(before), _encodable(after)))


def typing_distance(one: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance: drops, inserts, changes and swaps of letters.

    Of words of more than 100 letters only what is between their equal ends is compared; where
    that is longer still, the length of the longer word is returned, which is no typing error.
    """
    longest = max(len(one), len(other))
    if longest > _LONGEST_WORD:
        head, tail = equal_ends(one, other)
        one, other = one[head : len(one) - tail], other[head : len(other) - tail]
        if max(len(one), len(other)) > _LONGEST_WORD:
            return longest
    return int(jellyfish.damerau_levenshtein_distance(_encodable(one), _encodable(other)))


def word_limit(source: frozenset[str], limit: float, *, flat: bool = False) -> float:
    """Return the largest `edit_w` that is allowed for variants of the words ``source``.

    ``max(limit, 2 / (n + 1))`` with n different words: replacing one word always fits.
    ``flat`` gives the thesis' limit as it is. A limit of 0 forbids every edit.
    """
    if flat or limit <= 0.0:
        return limit
    return max(limit, 2.0 / (len(source) + 1))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which broken input may hold and jellyfish refuses."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
