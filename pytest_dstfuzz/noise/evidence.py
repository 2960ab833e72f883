"""Slips found in a log. They are the evidence for a noise model."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from rapidfuzz.distance import OSA

from pytest_dstfuzz.perturb.words import one_letter_away, word_list

#: Minimum length of a slip. Shorter texts are mostly abbreviations, endings and names.
SHORTEST: Final = 4
#: A slip's intended word must be at least this many times more frequent than the slip.
RARER: Final = 20
#: Count of an unseen pair of words.
_UNSEEN: Final = 0.05
#: Weight of the log count of a word that is subtracted from the score of its neighbours.
_COMMON: Final = 0.7


class SlipEvidence(NamedTuple):
    """A word, its typed form, and the dialogue or text of the slip."""

    #: In lower case. If the slip is a missing blank, these are two words with a blank.
    word: str
    typed: str
    source: str


class Text(NamedTuple):
    """A text that a user typed, and its dialogue."""

    source: str
    text: str


@dataclass(slots=True)
class TextCounts:
    """Counts of words and of adjacent pairs in texts, in lower case."""

    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextCounts:
        """Count the words and pairs of texts."""
        counts = cls()
        for text in texts:
            words = word_list(text)
            counts.words.update(words)
            counts.pairs.update(pairwise(words))
        return counts


#: Maximum length of a word in which slips are found. The time grows with the square of the length,
#: and a longer text may be a pasted key.
_LONGEST: Final = 40


def propose(
    counts: TextCounts,
    is_word: Callable[[str], bool],
    names: Iterable[str] = (),
    at_least: int = 5,
) -> dict[str, tuple[str, ...]]:
    """Map each slip to the words that may be intended, the most frequent first.

    Args:
        counts: the counts of the texts.
        is_word: whether a text is an English word.
        names: names in lower case, which are never slips.
        at_least: minimum count of an intended word in the texts.
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


def propose_split(
    counts: TextCounts, is_word: Callable[[str], bool], names: Iterable[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Map two texts with a blank between them to the frequent word that they form together.

    At least one of the texts is not a word or a name, and is rare outside of this word: `restau
    rant`.
    """
    known = frozenset(names)
    found: dict[str, tuple[str, ...]] = {}
    for (left, right), count in counts.pairs.items():
        word = left + right
        if not _is_spelled(word) or len(word) < SHORTEST or not is_word(word):
            continue
        odd = [part for part in (left, right) if not is_word(part) and part not in known]
        alone = any(counts.words[part] <= 2 * count for part in odd)
        if alone and counts.words[word] >= RARER * count:
            found[f"{left} {right}"] = (word,)
    return found


#: Minimum length of a word in which two slips are found, and its minimum count in the texts.
_LONG: Final = 6
_FREQUENT: Final = 20


def propose_two(
    counts: TextCounts, is_word: Callable[[str], bool], names: Iterable[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Map each text with two slips to the only frequent word within two slips.

    The first letter is right, and the text is not a word with an ending.
    """
    known = frozenset(names)
    likely = {
        word
        for word, count in counts.words.items()
        if count >= _FREQUENT and len(word) >= _LONG and _is_spelled(word) and is_word(word)
    }
    near: defaultdict[str, set[str]] = defaultdict(set)
    for word in likely:
        for text in _shorter(word):
            near[text].add(word)
    found: dict[str, tuple[str, ...]] = {}
    for typed, count in counts.words.items():
        if len(typed) < _LONG - 1 or not _is_spelled(typed) or is_word(typed) or typed in known:
            continue
        if any(is_word(typed[:-cut]) for cut in (1, 2, 3)):
            continue
        meant = {word for text in _shorter(typed) for word in near[text]}
        meant = {word for word in meant if word[0] == typed[0] and OSA.distance(word, typed) <= 2}
        if len(meant) == 1 and not one_letter_away(typed) & meant:
            (word,) = meant
            if counts.words[word] >= RARER * count:
                found[typed] = (word,)
    return found


def _shorter(word: str) -> set[str]:
    """Return the word, and all shorter texts without one or two of its letters."""
    one = {word[:place] + word[place + 1 :] for place in range(len(word))}
    two = {text[:place] + text[place + 1 :] for text in one for place in range(len(text))}
    return {word} | one | two


def find(
    texts: Iterable[Text], candidates: Mapping[str, Sequence[str]], counts: TextCounts
) -> list[SlipEvidence]:
    """Return the slips in texts, in order.

    Args:
        texts: the typed texts.
        candidates: slip -> words that may be intended.
        counts: the counts of the same or similar texts, to choose the intended word.
    """
    found = []
    for source, text in texts:
        words = ["", *word_list(text), ""]
        for left, typed, right in zip(words, words[1:], words[2:], strict=False):
            meant = candidates.get(typed)
            if meant:
                best = max(meant, key=lambda word: fit_of(left, word, right, counts))
                found.append(SlipEvidence(best, typed, source))
            split = candidates.get(f"{typed} {right}")
            if split:
                found.append(SlipEvidence(split[0], f"{typed} {right}", source))
    return found


def fit_of(left: str, word: str, right: str, counts: TextCounts) -> float:
    """Return how well one or two words fit between others, as a logarithm plus a constant."""
    chain = [left, *word.split(" "), right]
    joints = math.fsum(math.log(counts.pairs[pair] + _UNSEEN) for pair in pairwise(chain))
    # Subtract only a part, because people also intend frequent words more often.
    return joints - _COMMON * math.fsum(
        math.log(counts.words[inner] + RARER) for inner in chain[1:-1]
    )


def _is_spelled(word: str) -> bool:
    return len(word) <= _LONGEST and word.isascii() and word.isalpha()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data for fitting a model of typed text."""

    counts: TextCounts
    slips: Sequence[SlipEvidence]
    #: Correct form -> misspelled forms, from a list.
    misspellings: Mapping[str, Sequence[str]]
    keyboard: Mapping[str, str]
    #: Whether a text is a word. Slips that make a word cannot be found in a text.
    is_word: Callable[[str], bool]

    def finds(self, typed: str) -> bool:
        """Return whether a slip of one letter can be found, because the result is no word."""
        return not all(map(self.is_word, typed.split(" ")))

    def part(self, number: int, parts: int) -> tuple[list[SlipEvidence], list[SlipEvidence]]:
        """Return the slips outside and inside of a part. Each dialogue belongs to one part."""
        inside = [part_of(slip.source, parts) == number for slip in self.slips]
        kept = [slip for slip, held in zip(self.slips, inside, strict=True) if not held]
        return kept, [slip for slip, held in zip(self.slips, inside, strict=True) if held]


def part_of(source: str, parts: int) -> int:
    """Return the number of the part that a dialogue belongs to."""
    return int(hashlib.sha256(source.encode()).hexdigest()[:8], 16) % parts


def distinct_slips(slips: Iterable[SlipEvidence]) -> Counter[tuple[str, str]]:
    """Count for each (word, slip) the dialogues that have it, in sorted order."""
    places = {(slip.word, slip.typed, slip.source) for slip in slips}
    return Counter((word, typed) for word, typed, _ in sorted(places))
