"""A spelling corrector, to measure how many violations it would prevent before a bot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from rapidfuzz.distance import DamerauLevenshtein

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import one_letter_away, take_apart, word_list

__all__ = ["SpellingCorrector", "words_of_ontology"]

#: Minimum length of a token that is corrected, of a token that is corrected by few words, and of a
#: token with two wrong letters. (Many names with four letters are near one of the few words.)
_SHORTEST: Final = 3
_SHORTEST_OF_OWN: Final = 5
_SHORTEST_OF_TWO: Final = 6
#: Maximum length of a token that is corrected, because the time to find a near word grows fast.
_LONGEST: Final = 30
#: Rank of a word that is not frequent.
_RARE: Final = 1 << 20

_near = lru_cache(maxsize=4096)(one_letter_away)


class SpellingCorrector:
    """Replaces unknown words by known ones, without a model.

    It knows the shipped lexicon and the words of the bot. It never changes a known word, even if
    the user meant another one (`form` for `from`). It replaces an unknown word by the nearest known
    word. Among equally near words, words with the same letters come first, then the words of the
    bot, then more frequent words. It keeps codes, numbers and words with marks. If ``only_own`` is
    true, it corrects only to words of the bot.

    >>> SpellingCorrector(["parkside"]).correct("Plese book thetable at parksdie, on firday 5")
    'Please book the table at parkside, on friday 5'
    >>> SpellingCorrector(["parkside"], only_own=True).correct("Plese book parksdie")
    'Plese book parkside'
    """

    def __init__(self, words: Iterable[str] = (), *, only_own: bool = False) -> None:
        """Store the ``words`` of the bot, such as the values of its ontology, in any case."""
        self._own = frozenset(map(str.lower, words))
        self._only_own = only_own
        self._lexicon = load_lexicon()

    def correct(self, text: str, said: Collection[str] = ()) -> str:
        """Return a corrected text. ``said`` are further known words, in lower case."""
        words, gaps, _, _ = take_apart(text)
        found = gaps[0]
        skip = False
        for place, word in enumerate(words):
            if skip:
                skip = False
                continue
            gap = gaps[place + 1]
            fixed = word.text if self._stays(word.lower, said) else self._nearest(word.lower, said)
            after = words[place + 1].lower if gap == " " and place + 1 < len(words) else ""
            both = word.lower + after
            # A blank inside a word.
            if after and both.isalpha() and self._joins(word.lower, after, said):
                fixed, gap, skip = both, gaps[place + 2], True
            found += _in_case_of(word.text, fixed) + gap
        return found

    def knows(self, word: str, said: Collection[str] = ()) -> bool:
        """Return whether a lower-case word is known, so that it is kept."""
        return word in self._own or word in said or self._lexicon.is_word(word)

    def _stays(self, word: str, said: Collection[str]) -> bool:
        fits = (_SHORTEST_OF_OWN if self._only_own else _SHORTEST) <= len(word) <= _LONGEST
        return not fits or not word.isalpha() or self.knows(word, said)

    def _joins(self, left: str, right: str, said: Collection[str]) -> bool:
        parts = self.knows(left, said) and self.knows(right, said)
        return not parts and self.knows(left + right, said) and self._takes(left + right, said)

    def _takes(self, text: str, said: Collection[str]) -> bool:
        """Return whether an unknown word may become this text."""
        own = (part in self._own or part in said for part in text.split(" "))
        return not self._only_own or all(own)

    def _nearest(self, word: str, said: Collection[str]) -> str:
        """Return the best correction of an unknown word, or the word if no correction fits."""
        near = [one for one in _near(word) if self.knows(one, said)]
        for place in range(1, len(word)):
            parts = word[:place], word[place:]
            if all(len(part) > 1 or part in "ai" for part in parts) and all(
                self.knows(part, said) for part in parts
            ):
                near.append(" ".join(parts))
        if not near and len(word) >= _SHORTEST_OF_TWO:
            near = [
                one
                for one in (*self._frequent.get(word[0], ()), *sorted(said))
                if DamerauLevenshtein.distance(word, one) == 2
            ]
        # Prefer swapped letters, because they are the plainest slip.
        letters = sorted(word)
        found = min(
            near,
            key=lambda one: (sorted(one) != letters, self._rank(one, said), one),
            default=word,
        )
        return found if self._takes(found, said) else word

    @cached_property
    def _frequent(self) -> dict[str, list[str]]:
        """The words of the bot and frequent words, by their first letter."""
        found: dict[str, list[str]] = {}
        for word in sorted({*self._own, *self._lexicon.frequent_words}):
            if len(word) >= _SHORTEST_OF_TWO - 1 and self._lexicon.is_word(word):
                found.setdefault(word[0], []).append(word)
        return found

    def _rank(self, text: str, said: Collection[str]) -> tuple[bool, int]:
        parts = text.split(" ")
        ranks = [self._lexicon.frequency_rank(part) for part in parts]
        known = all(part in self._own or part in said for part in parts)
        return not known, max(_RARE if rank is None else rank for rank in ranks)


def _in_case_of(typed: str, word: str) -> str:
    """Return a lower-case word in the case of the typed word."""
    if typed.lower() == word.lower():
        return typed
    if len(typed) > 1 and typed.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def words_of_ontology(ontology: Ontology | None) -> Iterator[str]:
    """Yield the words of all values and slot names, which may repeat."""
    for slot, values in () if ontology is None else ontology.values.items():
        for text in (slot.replace("-", " ").replace("_", " "), *values):
            yield from word_list(text)
