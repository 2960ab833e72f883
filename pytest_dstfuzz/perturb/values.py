"""Mentions of slot values in a text, in any spelling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from pytest_dstfuzz.dialogue.calls import plain_marks
from pytest_dstfuzz.dialogue.dates import CLOCK_TIME, hour_of_day
from pytest_dstfuzz.dialogue.number_words import digits_up_to
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import word_list

__all__ = ["canonical"]


#: Words that only some spellings of a name have.
_TRANSPARENT: Final = frozenset({"s", "'s", "the", "and", "n"})
#: A longer word mentions a value if it begins with this many letters of the value.
_STEM: Final = 6
_SPELLINGS: Final = {"saint": "st", "center": "centre", "theater": "theatre", "&": "and"}


def canonical(word: str) -> str:
    """Return a lower-case word in the form for comparisons; ``""`` for ignored words."""
    # Values have a single encoding of diacritics. An utterance has the encoding of its typist.
    bare = word if word.isascii() else plain_marks(word)
    if bare in _TRANSPARENT:
        return ""
    if not bare.isalpha():
        bare = bare.removesuffix("'s").replace("'", "").replace("-", "")
    bare = _SPELLINGS.get(bare, bare)
    return bare[:-1] if len(bare) > 3 and bare.endswith("s") else bare


@dataclass(frozen=True, slots=True)
class ValuePieces:
    """The words and word pairs of some values, in canonical form."""

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    #: First words of values that start with an article.
    articled: frozenset[str]
    #: Prefixes of longer words: ``architectural`` mentions ``architecture``.
    stems: frozenset[str]

    @classmethod
    def of(cls, values: Iterable[str], common: Collection[str]) -> ValuePieces:
        """Split values into words and pairs.

        Args:
            values: in the spelling of the state or the ontology.
            common: canonical words that do not identify a value (``in``, ``restaurant``). They
                count only in pairs, or if they are the whole value.
        """
        words: set[str] = set()
        pairs: set[tuple[str, str]] = set()
        articled: set[str] = set()
        for value in values:
            spelled = word_list(value)
            parts = [part for part in map(canonical, spelled) if part]
            if len(spelled) > 1 and spelled[0] == "the":
                articled.update(parts[:1])
            if len(parts) == 1:
                words.add(parts[0])
            words.update(part for part in parts if part not in common)
            pairs.update(pairwise(parts))
        words.update(first + second for first, second in pairs)
        stems = frozenset(word[:_STEM] for word in words if len(word) >= _STEM)
        return cls(frozenset(words), frozenset(pairs), frozenset(articled), stems)

    def joined(self, other: ValuePieces) -> ValuePieces:
        """Return the pieces of both objects."""
        if other.words <= self.words and other.pairs <= self.pairs:
            return self  # The ontology has the value. This is by far the most frequent case.
        return ValuePieces(
            self.words | other.words,
            self.pairs | other.pairs,
            self.articled | other.articled,
            self.stems | other.stems,
        )

    def begins_like(self, form: str) -> bool:
        """Return whether a canonical word is a longer form of a value's word."""
        return len(form) > _STEM and form[:_STEM] in self.stems

    def mentions(
        self, words: Sequence[str], forms: Sequence[str], ends: Iterable[int]
    ) -> list[tuple[int, int]]:
        """Return the spans ``(first, last + 1)`` of words that mention a value, in order.

        Args:
            words: the lower-cased words of an utterance.
            forms: their canonical forms.
            ends: indices of the words that may end a mention, in order. Passing all indices
                gives the same result more slowly.
        """
        known = self.words
        spans: list[tuple[int, int]] = []
        for index in ends:
            form = forms[index]
            if not form:
                continue
            earlier = index - 1
            while earlier >= 0 and not forms[earlier]:
                earlier -= 1
            before = forms[earlier] if earlier >= 0 else ""
            if before and ((before, form) in self.pairs or before + form in known):
                first = earlier
            elif form in known or self.begins_like(form):
                first = index
            else:
                continue
            if spans and first < spans[-1][1]:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((first, index + 1))
        return [self._whole(span, words) for span in spans]

    def _whole(self, span: tuple[int, int], words: Sequence[str]) -> tuple[int, int]:
        """Extend a mention by the article of its name, and by a following ``'s``."""
        first, end = span
        if first and words[first - 1] == "the" and canonical(words[first]) in self.articled:
            first -= 1
        if end < len(words) and words[end] in {"'s", "’s"}:
            end += 1
        return first, end


_HOUR: Final = re.compile(r"(\d{1,2})(am|pm)")


class Mentions:
    """The words of some texts, prepared for finding values in them."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Split the texts into words, in order."""
        words = [spell_compared(word) for text in texts for word in word_list(text)]
        self._words = [word for word in words if word not in _idle()]

    def says(self, value: str | None) -> bool:
        """Return whether the texts contain a value. Articles and other stop words are ignored.

        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("08:15")
        True
        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("night club")
        True
        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("5")
        False
        """
        wanted = "".join(content(value or ""))
        # A match has at most as many words as the value has characters.
        return bool(wanted) and any(
            wanted.startswith(word) and _begins(self._words[place : place + len(wanted)], wanted)
            for place, word in enumerate(self._words)
        )


@lru_cache(maxsize=1 << 16)
def spell_compared(word: str) -> str:
    """Return a lower-case word in the form for comparisons, with digits for times and numbers.

    >>> [spell_compared(word) for word in ("8:15", "7pm", "two", "hotels")]
    ['08:15', '19:00', '2', 'hotel']
    """
    if clock := CLOCK_TIME.fullmatch(word):
        return f"{int(clock[1]):02}:{clock[2]}"
    if hour := _HOUR.fullmatch(word):
        return f"{hour_of_day(int(hour[1]), hour[2]):02}:00"
    return _digits().get(word) or canonical(word)


def content(value: str) -> list[str]:
    """Return the words that identify a value."""
    return list(_content(value))


@lru_cache(maxsize=1 << 14)
def _content(value: str) -> tuple[str, ...]:
    return tuple([word for word in map(spell_compared, word_list(value)) if word not in _idle()])


def _begins(words: Sequence[str], wanted: str) -> bool:
    found = ""
    for word in words:
        found += word
        if len(found) >= len(wanted):
            break
    return found == wanted


@cache
def _idle() -> frozenset[str]:
    return frozenset(map(canonical, load_lexicon().stop_words)) | {""}


@cache
def _digits() -> dict[str, str]:
    # The word `one` is usually a reference: `the one in the north`.
    pointing = load_lexicon().references
    return {word: n for word, n in digits_up_to(12).items() if word not in pointing}
