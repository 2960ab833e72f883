"""Probabilities of words in context, from counts of word pairs and triples.

``python -m tools.lexicon.neighbours`` makes the counts. The README next to the file lists their
sources and licences.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.perturb.words import Parts

#: Stand for the start or end of a sentence, a text with a digit, and a word without counts.
EDGE, DIGITS, OTHER = ".", "#", "*"
_END: Final = re.compile(r"[.?!;:\n]")
_DIGIT: Final = re.compile(r"\d")
_FILE: Final = resources.files("pytest_dstfuzz") / "resources" / "lexicon" / "neighbours.json.gz"
_Array = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


class WordsBeside(NamedTuple):
    """The two words before a word and the two words after it, as indices of counted words."""

    before: tuple[int, int]
    after: tuple[int, int]


def tokens(parts: Parts) -> tuple[list[str], list[int]]:
    """Return the words of a text with sentence boundaries, and the position of each word.

    >>> from pytest_dstfuzz.perturb.words import take_apart
    >>> tokens(take_apart("No. A room for 2"))
    (['.', 'no', '.', 'a', 'room', 'for', '#', '.'], [1, 3, 4, 5, 6])
    """
    found, places = [EDGE], []
    for word, gap in zip(parts.words, parts.gaps, strict=False):
        if found[-1] != EDGE and _END.search(gap):
            found.append(EDGE)
        places.append(len(found))
        found.append(DIGITS if _DIGIT.search(word.lower) else word.lower.replace("’", "'"))
    return [*found, EDGE], places


class _Table(NamedTuple):
    """Counts of word sequences: sorted codes of the sequences, and their counts."""

    codes: _Array
    counts: _Array

    def find(self, codes: _Array) -> tuple[_Array, npt.NDArray[np.bool_]]:
        """Return the position of each code, and whether the table has it."""
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return at, self.codes[at] == codes


class NeighbourCounts:
    """Counts of neighbouring words, with the probability of a word in a sentence.

    The probability of a word after two others combines three estimates, from triples, pairs and
    single words. Each estimate gets a part of the probability that the previous ones leave.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        """Read the ``table`` of a file."""
        words = table["words"].split(" ")
        self._index = {word: at for at, word in enumerate(words)}
        self._other = self._index[OTHER]
        self._size = len(words)
        counts = np.array(table["counts"], dtype=np.int64)
        # No share is 0, so that each word is possible at every place.
        self._share = (counts + 1) / (counts + 1).sum()
        self._pairs, self._triples = (_read(table[name]) for name in ("pairs", "triples"))
        self._rest, self._whole = _backing(
            self._pairs.codes // self._size, self._pairs.counts, counts
        )
        first = self._pairs.find(self._triples.codes // self._size)[0]
        self._pair_rest, self._pair_whole = _backing(
            first, self._triples.counts, self._pairs.counts
        )

    def sides(self, parts: Parts) -> list[WordsBeside]:
        """Return the words around each word of a text."""
        words, places = tokens(parts)
        edge = self._index[EDGE]
        found = [edge, *(self._index.get(word, self._other) for word in words), edge]
        return [
            WordsBeside((found[at - 1], found[at]), (found[at + 2], found[at + 3])) for at in places
        ]

    def fit(self, words: Sequence[str], sides: WordsBeside) -> _Floats:
        """Return how much likelier each word is in this context than in general."""
        here = np.array([self._index.get(word, self._other) for word in words], dtype=np.int64)
        (far, left), (right, end) = (map(np.full_like, (here, here), side) for side in sides)
        chances = self._after(far, left, here) * self._after(left, here, right)
        found: _Floats = chances * self._after(here, right, end) / self._share[here]
        return found

    def _after(self, one: _Array, two: _Array, three: _Array) -> _Floats:
        """Return the probabilities of words after two others."""
        pair = two * self._size + three
        at, known = self._pairs.find(pair)
        seen = np.where(known, self._pairs.counts[at], 0)
        by_pair = (seen + self._rest[two] * self._share[three]) / self._whole[two]
        first, known = self._pairs.find(one * self._size + two)
        at, found = self._triples.find(one * self._size**2 + pair)
        seen = np.where(found, self._triples.counts[at], 0)
        by_triple = (seen + self._pair_rest[first] * by_pair) / self._pair_whole[first]
        chances: _Floats = np.where(known, by_triple, by_pair)
        return chances


def _read(table: Sequence[Sequence[int]]) -> _Table:
    steps, counts = table
    return _Table(np.array([*accumulate(steps)], np.int64), np.array(counts, np.int64))


def _backing(first: _Array, counts: _Array, whole: _Array) -> tuple[_Floats, _Floats]:
    """Return for each start the weight that its sequences in the table leave, and the sum.

    Args:
        first: the starts of the sequences in the table.
        counts: the counts of these sequences.
        whole: the counts of the starts.
    """
    kinds = np.bincount(first, minlength=len(whole)).astype(float)
    listed = np.bincount(first, counts, minlength=len(whole))
    rest = np.maximum(whole - listed, 0) + kinds
    return np.where(kinds > 0, rest, 1.0), np.where(kinds > 0, listed + rest, 1.0)


@cache
def neighbour_counts() -> NeighbourCounts:
    """Return the shipped counts."""
    return NeighbourCounts(json.loads(gzip.decompress(_FILE.read_bytes())))
