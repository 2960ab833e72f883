"""What the locks know about a word wherever it stands, found once for each different word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Words that are listed in one lock, and the lock.
Entry = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class WordFacts:
    """One word, and all that needs no look at its neighbours.

    Attributes:
        lower: in lower case.
        stop_word: whether it is one.
        plain: in lower case, with typewriter apostrophes: the form that lists have.
        form: the form in which values are compared, ``""`` for a word that is skipped.
        mentions: whether it can end the mention of a value of the ontology.
        listed: whether any of the five that follow says something.
        own: the lock of the word alone, ``""`` for none.
        phrases: second word -> listed phrases that may begin here, in the order of the
            lists, the word alone among them.
        second_half: whether it may be the end of a listed word that was written apart.
        joined: the lock of the word without its hyphens, where it has some.
        contracted: whether it is the ``n't`` of the word before.
        number: whether a digit makes it one.
        unit: whether it turns a number before it into a price, a time or a share.
        unknown: whether it looks like a word and is none.
        capital: whether it is written like a name.
        clitic: whether it leans on the word before.
        noun: whether it is a noun most of the time.
        nounish: likewise, or of no known part of speech.
        long: whether it can take a typing error where it is a cue.
    """

    lower: str
    stop_word: bool
    plain: str
    form: str
    mentions: bool
    listed: bool
    own: str
    phrases: Mapping[str, tuple[Entry, ...]]
    second_half: bool
    joined: str
    contracted: bool
    number: bool
    unit: bool
    unknown: bool
    capital: bool
    clitic: bool
    noun: bool
    nounish: bool
    long: bool


class Endings:
    """Answers whether one of some words ends like this."""

    __slots__ = ("_reversed",)

    def __init__(self, words: Iterable[str]) -> None:
        """Sort the words by their ends."""
        self._reversed = sorted(word[::-1] for word in words)

    def __contains__(self, ending: str) -> bool:
        """Say whether a word ends with ``ending``."""
        key = ending[::-1]
        at = bisect_left(self._reversed, key)
        return at < len(self._reversed) and self._reversed[at].startswith(key)
