"""Other values of a slot: those that people ask for, in the form of the old one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Final

from pytest_dstfuzz.dialogue.dates import clock_like
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, DialogueSet
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.dialogue.values import members_of
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.spelling import content, spelled
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.inflections import inflections
from pytest_dstfuzz.relations.kinds import (
    FLAG_VALUES,
    SlotKind,
    domain_of,
    kind_of,
    name_words,
)

#: In how many dialogues a value has to be labelled to count, where there are `_MANY` labelled ones:
#: ontologies and labels hold slips of annotators.
_SUPPORT: Final = 3
_MANY: Final = 50
#: Kinds whose values mean something wherever they stand, also inside a name.
_CLOSED: Final = frozenset({"choice", "day", "number", "time"})
#: A mark before, a number with decimals or without, and a unit.
_AMOUNT: Final = re.compile(r"([^\w\s]?) ?(\d+)([.,]\d+)? ?([^\W\d]*|\W)")
_SMALL_WORDS: Final = frozenset({"and", "of", "the", "in", "at", "on", "s"})
_VOWEL_SOUND: Final = re.compile(r"(?!eu|uni|one\b|us)[aeiou]|8|11\b|18\b|hour")


@dataclass(frozen=True)
class ValueTable:
    """What is known about the slots of a data set: their kinds and the values that people use."""

    kinds: Mapping[str, SlotKind]
    values: Mapping[str, tuple[str, ...]]
    #: All values, those of too few dialogues too, as `joined` writes them.
    known: frozenset[str]
    #: Values of closed kinds as `joined` writes them -> the slots that take them.
    closed: Mapping[str, frozenset[str]]
    #: Words of slots and domains.
    titles: frozenset[str]
    normalisation: str
    #: What `others` has said already.
    _others: dict[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )
    #: Results of `_is_alike`.
    _alike: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, data: DialogueSet) -> ValueTable:
        """Count the labels of a data set and read its ontology."""
        counts, labelled = _label_counts(data)
        listed = data.ontology.values if data.ontology else {}
        slots = sorted({*listed, *counts})
        everything = {
            slot: sorted({*listed.get(slot, ()), *counts.get(slot, ())}) for slot in slots
        }
        values, kinds = {}, {}
        for slot in slots:
            found = counts.get(slot, Counter())
            needed = _SUPPORT if labelled[slot] >= _MANY else 0
            values[slot] = tuple(
                v for v in everything[slot] if v != DONTCARE and found[v] >= needed
            )
            kinds[slot] = kind_of(slot, values[slot] or everything[slot])
        closed: dict[str, set[str]] = {}
        for slot in slots:
            for value in values[slot] if kinds[slot] in _CLOSED else ():
                closed.setdefault(joined(value), set()).add(slot)
        titles = {spelled(w) for slot in slots for w in (*name_words(slot), domain_of(slot)) if w}
        return cls(
            kinds,
            values,
            frozenset(joined(value) for found in everything.values() for value in found),
            {value: frozenset(found) for value, found in closed.items()},
            frozenset(titles),
            data.normalisation,
        )

    @cached_property
    def joined_values(self) -> Mapping[str, frozenset[str]]:
        """The values of each slot as `joined` writes them."""
        return {slot: frozenset(map(joined, values)) for slot, values in self.values.items()}

    @cached_property
    def telling(self) -> frozenset[str]:
        """The values of all slots as `joined` writes them, but for yes and no."""
        return frozenset[str]().union(*self.joined_values.values()) - {*FLAG_VALUES, ""}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of slots, domains and values."""
        values = (value for found in self.values.values() for value in found)
        return self.titles.union(*map(content, values))

    def is_title(self, value: str) -> bool:
        """Say whether a value is made of words of slots and domains: `hotel`."""
        words = content(value)
        return bool(words) and self.titles.issuperset(words)

    def others(self, slot: str, old: str) -> tuple[str, ...]:
        """Return the values that a slot may have instead of ``old``, sorted.

        Not one that is part of the old one or holds it, one of another measure (`15 %` and `0.2`),
        nor one that is or holds a value of another slot (`museum` in a name) where the old one is
        or holds none. Of slots that take the same values, such as two cities, none is the other's.
        """
        if (slot, old) not in self._others:
            self._others[slot, old] = tuple(
                value
                for value in self.values.get(slot, ())
                if value != old and self._fits(slot, value, old)
            )
        return self._others[slot, old]

    def _fits(self, slot: str, value: str, old: str) -> bool:
        own, words = set(content(value)), set(content(old))
        if not own or own <= words or words <= own or self.is_title(value):
            return False
        if normalise_value(slot, value, self.normalisation) != value:
            return False
        if _measure(value) != _measure(old):
            return False
        return self.kinds[slot] in _CLOSED or self._inside(slot, value) <= self._inside(slot, old)

    def _inside(self, slot: str, value: str) -> frozenset[str]:
        """Return the values of other slots that a value holds, and the slots of which it is one."""
        words = word_list(value)
        whole = joined(value)
        found = set()
        for first, end in combinations(range(len(words) + 1), 2):
            part = joined(" ".join(words[first:end]))
            others = self.closed.get(part, frozenset()) - {slot}
            if part == whole:
                found |= {other for other in others if not self._is_alike(slot, other)}
            elif others:
                found.add(part)
        return frozenset(found)

    def _is_alike(self, slot: str, other: str) -> bool:
        """Say whether half of a slot's values are those of another, as of two ends of a journey."""
        if (slot, other) not in self._alike:
            own = self.joined_values[slot]
            self._alike[slot, other] = 2 * len(own & self.joined_values[other]) >= len(own)
        return self._alike[slot, other]


def _label_counts(data: DialogueSet) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Return in how many dialogues each value is labelled, and in how many each slot."""
    counts: dict[str, Counter[str]] = {}
    labelled: Counter[str] = Counter()
    for dialogue in data.dialogues:
        pairs = dict.fromkeys(
            (slot, member)
            for turn in dialogue.turns
            for slot, value in (turn.state or {}).items()
            for member in members_of(value)
        )
        for slot, value in pairs:
            counts.setdefault(slot, Counter())[value] += 1
        labelled.update(dict.fromkeys((slot for slot, _ in pairs), 1))
    return counts, labelled


@lru_cache(maxsize=1 << 16)
def joined(value: str) -> str:
    """Return a value in the form in which it is compared with others.

    >>> joined("the Night Club"), joined("two")
    ('nightclub', '2')
    """
    return "".join(content(value))


def _measure(value: str) -> tuple[str, bool] | None:
    """Return the marks of an amount, and whether it has decimals; ``None`` = it is no amount.

    >>> _measure("15"), _measure("0.2"), _measure("$ 20"), _measure("15%"), _measure("cheap")
    (('', False), ('', True), ('$', False), ('%', False), None)
    """
    found = _AMOUNT.fullmatch(value)
    return None if found is None else (found[1] + found[4], bool(found[3]))


def written(kind: SlotKind, value: str, model: str) -> str | None:
    """Return ``value`` written as ``model``, the text that says the old one, is; else ``None``.

    >>> written("time", "17:45", "5:15 pm"), written("time", "17:45", "5pm")
    ('5:45 pm', None)
    >>> written("number", "3", "Two"), written("name", "the old mill", "Green Man")
    ('Three', 'The Old Mill')
    """
    if kind == "time":
        return clock_like(value, model)
    if kind == "number":
        # The noun that is counted stays as it is: `1 night`, `2 nights`.
        if not value.isdigit() or (value == "1") != (spelled(model.lower()) in {"1", "one"}):
            return None
        text = value if model.isdigit() else _number_word(value)
        return text and _cased(text, model)
    if abs(len(value.split()) - len(model.split())) > 1:
        return None
    return value if "@" in value else _cased(value, model)


def plural_of(value: str) -> str | None:
    """Return the plural of a value that is a noun, ``None`` where that is not known.

    >>> plural_of("swimming pool"), plural_of("cheap")
    ('swimming pools', None)
    """
    head, blank, noun = value.rpartition(" ")
    form = inflections().plural(noun)
    return form and head + blank + form


def article_before(text: str) -> str:
    """Return the article for what follows.

    >>> [article_before(text) for text in ("expensive", "european", "8 star", "cheap")]
    ['an', 'a', 'an', 'a']
    """
    return "an" if _VOWEL_SOUND.match(text.lower()) else "a"


def _number_word(value: str) -> str | None:
    return next((word for word in load_lexicon().number_words if spelled(word) == value), None)


def _cased(value: str, model: str) -> str:
    if len(model) > 1 and model.isupper():
        return value.upper()
    words = model.split()
    if not words or not words[-1][:1].isupper():
        return value
    parts = value.split()
    return " ".join(
        part if part in _SMALL_WORDS and place else part[:1].upper() + part[1:]
        for place, part in enumerate(parts)
    )
