"""Byte-pair encoding of words, learned from a training split (Sennrich et al., ACL 2016).

A piece that continues a word begins with a mark, so that joined pieces give the words again.
Letters that the training split lacks stay as they are. So a network can copy every word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

#: Beginning of a piece that continues a word.
MARK: Final = "##"
#: Two adjacent pieces.
Pair = tuple[str, str]
#: A pair of pieces that occurs less often is not merged.
_FEWEST: Final = 2
#: Number of words whose pieces are remembered.
_REMEMBERED: Final = 100_000


def learn_merges(counts: Mapping[str, int], number: int) -> tuple[Pair, ...]:
    """Return at most ``number`` merges, each of the most frequent pair. ``counts`` are of words."""
    pieces = {word: list(_letters(word)) for word in counts}
    pairs: Counter[Pair] = Counter()
    places: dict[Pair, set[str]] = defaultdict(set)

    def count(word: str, sign: int) -> None:
        for pair in pairwise(pieces[word]):
            pairs[pair] += sign * counts[word]
            places[pair].add(word)

    for word in pieces:
        count(word, 1)
    merges: list[Pair] = []
    while len(merges) < number and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < _FEWEST:
            break
        merges.append(best)
        for word in places.pop(best):
            count(word, -1)
            pieces[word] = _merged(pieces[word], best)
            count(word, 1)
        del pairs[best]
    return tuple(merges)


class Subwords:
    """Splits words into pieces by merges."""

    def __init__(self, merges: Iterable[Pair]) -> None:
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._known: dict[str, tuple[str, ...]] = {}

    def split(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word."""
        if word not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[word] = self._pieces(word)
        return self._known[word]

    def _pieces(self, word: str) -> tuple[str, ...]:
        pieces = list(_letters(word))
        while True:
            known = [pair for pair in pairwise(pieces) if pair in self._ranks]
            if not known:
                return tuple(pieces)
            pieces = _merged(pieces, min(known, key=self._ranks.__getitem__))


def join_pieces(pieces: Sequence[str]) -> str:
    """Return pieces as text, with a space between words."""
    return " ".join(pieces).replace(f" {MARK}", "").removeprefix(MARK)


def _letters(word: str) -> Iterable[str]:
    return (letter if place == 0 else MARK + letter for place, letter in enumerate(word))


def _merged(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Return pieces with each occurrence of a pair joined, from left to right."""
    found: list[str] = []
    place = 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            found.append(pair[0] + pair[1].removeprefix(MARK))
            place += 2
        else:
            found.append(pieces[place])
            place += 1
    return found
