"""Reads misspelled words: an unknown word becomes the word that the user probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from pytest_dstfuzz.lexicon import load_lexicon

#: Minimum length of a word that may have any slip, and of one that may have two.
_SHORTEST: Final = 3
_SHORTEST_OF_TWO: Final = 6
#: Maximum length of a word that is read as another one.
_LONGEST: Final = 30
#: Weights of the frequency of a word: if its letters are only swapped, if its first letter is
#: wrong, and if there are two slips.
_SWAPPED: Final = 3.0
_FIRST: Final = 0.1
_TWO: Final = 0.002
#: A word is a slip if a word that is one slip away is so much more frequent: if it is in no
#: dictionary, and if it is. (The lexicon knows a few misspelled words.) Short words of a dictionary
#: are no slips.
_RATIO: Final = 20
_RATIO_OF_WORD: Final = 50
_SHORTEST_WORD: Final = 7
#: Number of words whose reading is remembered.
_REMEMBERED: Final = 100_000


class NearestWords:
    """Reads an unknown word as the most frequent known word that is one or two slips away.

    A slip is a letter that is missing, added or wrong, two swapped letters, or a missing or added
    blank. Codes and numbers stay as they are. So do words of the shipped lexicon, if they are short
    or no frequent word is one slip away.

    >>> NearestWords({"hotel": 90, "the": 70, "parking": 5}).read(["teh", "hotl", "theparking"])
    ('the', 'hotel', 'the', 'parking')
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Store the known words with their frequencies."""
        self._counts = counts
        self._words = [word for word in counts if word.isalpha()]
        # Each context repeats the words of the turns before.
        self._meant = lru_cache(_REMEMBERED)(self._find_meant)
        self._is_word = lru_cache(_REMEMBERED)(self._look_up)

    def read(self, words: Sequence[str], said: Collection[str] = ()) -> tuple[str, ...]:
        """Return words as they were meant. Those in ``said`` are known, too."""
        found: list[str] = []
        skipped = False
        for word, after in pairwise((*words, "")):
            if skipped:
                skipped = False
            elif self._joins(word, after, said):
                found.append(word + after)
                skipped = True
            elif not word.isalpha() or self._knows(word, said):
                found.append(word)
            else:
                found += self._meant(word)
        return tuple(found)

    def _joins(self, word: str, after: str, said: Collection[str]) -> bool:
        """Return whether two words are one with an added blank."""
        both = word + after in self._counts and word.isalpha() and after.isalpha()
        return both and not (self._knows(word, said) and self._knows(after, said))

    def _knows(self, word: str, said: Collection[str]) -> bool:
        return word in self._counts or word in said or self._is_word(word)

    def _look_up(self, word: str) -> bool:
        """Return whether a word is in the lexicon and no slip."""
        return load_lexicon().is_word(word) and not is_slip(word, 1, self._counts, self._words)

    def _find_meant(self, word: str) -> tuple[str, ...]:
        return max(self._candidates(word), default=(0.0, (word,)))[1]

    def _candidates(self, word: str) -> Iterator[tuple[float, tuple[str, ...]]]:
        """Yield what a word may mean, each with its weight."""
        if len(word) > _LONGEST:
            return
        most = 2 if len(word) >= _SHORTEST_OF_TWO else 1
        for near, distance, _ in process.extract(
            word, self._words, scorer=OSA.distance, score_cutoff=most, limit=None
        ):
            swapped = sorted(near) == sorted(word)
            if len(word) < _SHORTEST and not swapped:
                continue
            weight = self._counts[near] * (_SWAPPED if swapped else 1.0)
            weight *= _TWO if distance > 1 else 1.0
            yield weight * (1.0 if near[0] == word[0] else _FIRST), (near,)
        for place in range(1, len(word)):
            parts = word[:place], word[place:]
            if all(part in self._counts for part in parts):
                yield float(min(self._counts[part] for part in parts)), parts


def is_slip(word: str, count: int, counts: Mapping[str, int], words: Sequence[str]) -> bool:
    """Return whether a word is probably a slip in a more frequent one.

    ``count`` is the frequency of the word, ``words`` are the alphabetic keys of ``counts``.
    """
    near = process.extract(word, words, scorer=OSA.distance, score_cutoff=1, limit=None)
    frequent = (one for one, _, _ in near if counts[one] >= _RATIO * count)
    if not load_lexicon().is_word(word):
        return any(frequent)
    # A word with another ending, such as a plural, is no slip.
    return len(word) >= _SHORTEST_WORD and any(
        counts[one] >= _RATIO_OF_WORD * count and not word.startswith(one) for one in frequent
    )


def known_words(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the words of a training split without those that are slips, sorted."""
    words = [word for word in counts if word.isalpha()]
    return {
        word: count
        for word, count in sorted(counts.items())
        if not (word.isalpha() and is_slip(word, count, counts, words))
    }
