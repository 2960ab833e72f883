"""Slips found in a log, as evidence for a noise model."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.words import one_letter_away, word_list

#: Slips with fewer letters are mostly abbreviations, endings and names.
SHORTEST: Final = 4
#: A word is meant where it is so many times as frequent as what stands there.
RARER: Final = 20
#: What an unseen pair of words counts as.
_UNSEEN: Final = 0.05
#: Of the logarithm of a word's count, what is taken off where the words beside it are weighed.
_COMMON: Final = 0.7


class Slipped(NamedTuple):
    """A word, what was typed for it, and in which dialogue (or text)."""

    #: In lower case; of two words with a blank between them the blank is missing.
    word: str
    typed: str
    source: str


class Text(NamedTuple):
    """A text that somebody typed, and the dialogue it is of."""

    source: str
    text: str


@dataclass(slots=True)
class TextCounts:
    """Words and neighbours of some texts, in lower case."""

    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextCounts:
        """Count them."""
        counts = cls()
        for text in texts:
            words = word_list(text)
            counts.words.update(words)
            counts.pairs.update(pairwise(words))
        return counts


def propose(
    counts: TextCounts,
    is_word: Callable[[str], bool],
    names: Iterable[str] = (),
    at_least: int = 5,
) -> dict[str, tuple[str, ...]]:
    """Return slip -> words that may be meant, the most frequent first.

    Args:
        counts: of the texts.
        is_word: whether a text is an English word.
        names: in lower case; they are no slips, whatever they are near to.
        at_least: how often a word that is meant stands in the texts.
    """
    known = frozenset(names)
    frequent = {word for word, count in counts.words.items() if count >= at_least and is_word(word)}
    found: dict[str, tuple[str, ...]] = {}
    for typed, count in counts.words.items():
        if len(typed) < SHORTEST or not _is_spelled(typed) or typed in known or is_word(typed):
            continue
        meant = {word for word in one_letter_away(typed) & frequent if len(word) >= SHORTEST - 1}
        meant = {word for word in meant if counts.words[word] >= RARER * count}
        halves = {
            f"{typed[:place]} {typed[place:]}"
            for place in range(1, len(typed))
            if counts.pairs[typed[:place], typed[place:]] >= max(at_least, RARER * count)
        }
        if meant or halves:
            order = sorted(meant, key=lambda word: (-counts.words[word], word))
            found[typed] = (*order, *sorted(halves))
    return found


def find(
    texts: Iterable[Text], candidates: Mapping[str, Sequence[str]], counts: TextCounts
) -> list[Slipped]:
    """Return the slips of texts, in their order.

    Args:
        texts: what was typed.
        candidates: slip -> words that may be meant.
        counts: of the texts, or of others like them: they tell which word is meant.
    """
    found = []
    for source, text in texts:
        words = ["", *word_list(text), ""]
        for left, typed, right in zip(words, words[1:], words[2:], strict=False):
            meant = candidates.get(typed)
            if meant:
                best = max(meant, key=lambda word: fit_of(left, word, right, counts))
                found.append(Slipped(best, typed, source))
    return found


def fit_of(left: str, word: str, right: str, counts: TextCounts) -> float:
    """Return how well a word, or two, stands between others: a logarithm, up to a constant."""
    chain = [left, *word.split(" "), right]
    joints = math.fsum(math.log(counts.pairs[pair] + _UNSEEN) for pair in pairwise(chain))
    # Less than all of it: a frequent word is meant more often, too.
    return joints - _COMMON * math.fsum(
        math.log(counts.words[inner] + RARER) for inner in chain[1:-1]
    )


def _is_spelled(word: str) -> bool:
    return word.isascii() and word.isalpha()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a model of typed text is fitted to."""

    counts: TextCounts
    slips: Sequence[Slipped]
    #: Correct form -> misspelled ones, of a list.
    misspellings: Mapping[str, Sequence[str]]
    keyboard: Mapping[str, str]

    def part(self, number: int, parts: int) -> tuple[list[Slipped], list[Slipped]]:
        """Return the slips of all other parts, and those of one; a dialogue is in one part."""
        inside = [part_of(slip.source, parts) == number for slip in self.slips]
        kept = [slip for slip, held in zip(self.slips, inside, strict=True) if not held]
        return kept, [slip for slip, held in zip(self.slips, inside, strict=True) if held]


def part_of(source: str, parts: int) -> int:
    """Return in which of some parts a dialogue is."""
    return int(hashlib.sha256(source.encode()).hexdigest()[:8], 16) % parts


def distinct_slips(slips: Iterable[Slipped]) -> Counter[tuple[str, str]]:
    """Return word and slip -> dialogues that have it, sorted."""
    places = {(slip.word, slip.typed, slip.source) for slip in slips}
    return Counter((word, typed) for word, typed, _ in sorted(places))
