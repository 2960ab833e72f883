"""What a text brings and what it points back to: names, nouns, verbs, pronouns.

No parser and no model: the lexicon says which part of speech a word mostly is, capitals say what is
a name. Forms are folded to the singular and the infinitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.perturb.words import Parts, listed, take_apart
from pytest_dstfuzz.relations.inflections import inflections

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon

__all__ = ["DEMONSTRATIVES", "PERSONS", "THINGS", "read"]

PERSONS: Final = listed("he him his himself she her hers herself")
THINGS: Final = listed("it its itself they them their theirs themselves")
DEMONSTRATIVES: Final = listed("this that these those")
#: Words that ask, help, or mean next to nothing alone; beside the lexicon's stop words.
_LIGHT: Final = listed(
    "get got have has had do does did done be been make made go went gone happen happened become"
    " became know tell say said give gave also else ever any anything something anyone someone"
    " interesting interest aspect article information thing way time lot kind sort type first"
    " other another would could much many cannot i'm don't didn't wasn't isn't"
)
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_SENTENCE_END: Final = re.compile(r"[.!?…]")
#: ``that`` after one of these is no pointer: it begins a clause.
_NOUN_LIKE: Final = listed("anything something everything nothing all one ones someone anyone")


@dataclass(frozen=True, slots=True)
class ReadText:
    """What stands in a text."""

    #: Words in lower case, in reading order, without a possessive ending.
    lowers: tuple[str, ...]
    #: Those that are names, by place.
    names: frozenset[int]
    #: Those that are nouns, by place.
    nouns: frozenset[int]
    #: Base forms of names, nouns and verbs, and numbers.
    units: frozenset[str]
    #: Base forms of all words but stop words.
    content: frozenset[str]
    #: Of the units the names and what has a digit.
    entities: frozenset[str]
    #: Places of pronouns, possessives and demonstratives that point out of the text.
    unresolved: tuple[int, ...] = ()

    def pointers(self) -> frozenset[str]:
        """Return the pronouns, possessives and demonstratives that point out of the text."""
        return frozenset(self.lowers[place] for place in self.unresolved)


@lru_cache(maxsize=65_536)
def read(text: str, lexicon: Lexicon) -> ReadText:
    """Take a text apart; kept, as the questions of a sequence come again and again."""
    parts = take_apart(text)
    lowers = tuple(_POSSESSIVE.sub("", word.lower) for word in parts.words)
    names = _names(parts, lowers, lexicon)
    nouns, units, content = set(), set(), set()
    for place, lower in enumerate(lowers):
        pos = lexicon.majority_pos(lower)
        number = lower[:1].isdigit()
        if place not in names and not number and (_is_stop(lower, lexicon) or pos == "function"):
            continue
        base = _base(lower, name=place in names)
        content.add(base)
        if pos == "noun" or (pos is None and place not in names and not number):
            nouns.add(place)
        if place in names or number or pos in {"noun", "verb", None}:
            units.add(base)
    entities = {_base(lowers[place], name=True) for place in names}
    entities |= {lower for lower in lowers if any(map(str.isdigit, lower))} & units
    reading = ReadText(
        lowers,
        frozenset(names),
        frozenset(nouns),
        frozenset(units),
        frozenset(content),
        frozenset(entities),
    )
    places = range(len(lowers))
    return replace(
        reading, unresolved=tuple(one for one in places if _points_out(reading, one, lexicon))
    )


def _is_stop(lower: str, lexicon: Lexicon) -> bool:
    return lower in _stops(lexicon) or lower in _LIGHT


@lru_cache(maxsize=4)
def _stops(lexicon: Lexicon) -> frozenset[str]:
    return frozenset(lexicon.stop_words)


def _base(lower: str, *, name: bool) -> str:
    """Return the singular or the infinitive of a word; names stay."""
    if name:
        return lower
    forms = inflections()
    return forms.singular(lower) or forms.infinitive(lower) or lower


def _names(parts: Parts, lowers: tuple[str, ...], lexicon: Lexicon) -> set[int]:
    """Return the words written with a capital that no start of a sentence asks for."""
    found = set()
    for place, word in enumerate(parts.words):
        if not word.text[0].isupper() or word.lower in {"i", "i'm", "i'd", "i've", "i'll"}:
            continue
        starts = not place or _SENTENCE_END.search(parts.gaps[place]) is not None
        known = lexicon.is_word(lowers[place])
        if starts and known and (_is_stop(lowers[place], lexicon) or not _next(parts, place)):
            continue
        found.add(place)
    return found


def _next(parts: Parts, place: int) -> bool:
    """Whether the next word has a capital, too."""
    return place + 1 < len(parts.words) and parts.words[place + 1].text[0].isupper()


def _points_out(found: ReadText, place: int, lexicon: Lexicon) -> bool:
    """Whether a word points to something that does not stand before it in the text."""
    lower = found.lowers[place]
    after = found.lowers[place + 1] if place + 1 < len(found.lowers) else ""
    before = found.lowers[place - 1] if place else ""
    earlier = range(place)
    if lower in PERSONS or lower in THINGS:
        # A noun is what is asked for more often than what a pronoun stands for: `what songs did
        # they sing`.
        return not any(one in found.names for one in earlier)
    if lower not in DEMONSTRATIVES:
        return False
    if lower == "that":
        clause = place - 1 in found.nouns or place - 1 in found.names or before in _NOUN_LIKE
        said = before and lexicon.majority_pos(before) == "verb" and after
        if clause or (said and place + 1 not in found.nouns):
            return False
    if place + 1 in found.nouns:
        return _base(after, name=False) not in {
            _base(found.lowers[one], name=False) for one in earlier
        }
    return True
