"""What kind of values a slot takes, told from its values and the words of its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal

from pytest_dstfuzz.dialogue.dates import CLOCK_TIME, WEEKDAYS
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.dialogue.quantities import COUNTED
from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.perturb.words import listed

SlotKind = Literal["yes-no", "number", "time", "day", "end", "name", "choice"]

#: What data writes in a yes/no slot for what is wanted -> for what is not.
REFUSED: Final[Mapping[str, str]] = {"yes": "no", "true": "false"}
#: Values that nobody says: the name of the slot stands for them.
FLAG_VALUES: Final = frozenset({*REFUSED, *REFUSED.values()})
#: Values that an utterance does not say as they are written.
UNSPOKEN: Final = FLAG_VALUES | {DONTCARE}

_YES_NO: Final = FLAG_VALUES | listed("y n")
_DAYS: Final = frozenset({*WEEKDAYS, "today", "tomorrow"})
#: Words in the names of slots that are the two ends of a journey, by their letters.
_STARTS: Final = ("depart", "origin", "source", "pickup", "from", "start")
_GOALS: Final = ("destin", "dropoff", "to")
_LEAVES: Final = ("leav", "depart", "start", "outbound", "pickup")
_ARRIVES: Final = ("arriv", "return", "inbound")
#: Share of the values that have to be of a kind: ontologies hold slips of annotators.
_MOST: Final = 0.6
#: A choice has at most so many values, and names have more words.
_FEW: Final = 40


def name_words(slot: str) -> list[str]:
    """Return the words of a slot's name without its domain.

    >>> name_words("hotel-book stay"), name_words("Flights_1-departureTime")
    (['book', 'stay'], ['departure', 'time'])
    """
    return list(_name_words(slot))


@lru_cache(maxsize=4096)
def _name_words(slot: str) -> tuple[str, ...]:
    name = slot.partition("-")[2] or slot
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+", name)
    return tuple([word.lower() for word in found]) or (name.lower(),)


def domain_of(slot: str) -> str:
    """Return the domain of a slot, ``""`` for one without.

    >>> domain_of("hotel-area"), domain_of("area")
    ('hotel', '')
    """
    return slot.partition("-")[0] if "-" in slot else ""


def kind_of(slot: str, values: Collection[str]) -> SlotKind:
    """Return the kind of a slot, from the values that are known for it and its name.

    >>> kind_of("hotel-parking", ["no", "yes"]), kind_of("train-leaveat", ["09:15", "10:00"])
    ('yes-no', 'time')
    >>> kind_of("taxi-departure", ["ely"]), kind_of("hotel-area", ["east", "west"])
    ('end', 'choice')
    """

    def mostly(count: int) -> bool:
        return bool(values) and count >= _MOST * len(values)

    if values and _YES_NO.issuperset(values):
        return "yes-no"
    if mostly(sum(bool(CLOCK_TIME.match(value)) for value in values)):
        return "time"
    if mostly(sum(value in _DAYS for value in values)):
        return "day"
    if mostly(sum(spelled(value).isdigit() for value in values)):
        return "number"
    if end_of(slot):
        return "end"
    long = sum(len(value.split()) > 1 for value in values)
    few = len(values) <= _FEW and not mostly(long)
    return "choice" if few and "name" not in name_words(slot) else "name"


def end_of(slot: str) -> Literal["from", "to", ""]:
    """Return which end of a journey a slot is, ``""`` for none.

    >>> end_of("taxi-departure"), end_of("train-destination"), end_of("hotel-area")
    ('from', 'to', '')
    """
    words = name_words(slot)
    if "time" in words or "date" in words:
        return ""
    if any(word.startswith(_STARTS) for word in words):
        return "from"
    return "to" if any(w == "to" or w.startswith(_GOALS[:-1]) for w in words) else ""


def moment_of(slot: str) -> Literal["leave", "arrive", ""]:
    """Return whether a slot of times is about leaving or arriving, ``""`` for neither.

    >>> moment_of("train-leaveat"), moment_of("taxi-arriveby"), moment_of("hotel-book time")
    ('leave', 'arrive', '')
    """
    words = name_words(slot)
    if any(word.startswith(_LEAVES) for word in words):
        return "leave"
    return "arrive" if any(word.startswith(_ARRIVES) for word in words) else ""


def counted_by(slot: str) -> frozenset[str]:
    """Return the nouns that a number of this slot counts, those of its name among them.

    >>> "guests" in counted_by("hotel-book people"), "guests" in counted_by("hotel-stars")
    (True, False)
    """
    words = frozenset(name_words(slot))
    return words.union(*(row for row in COUNTED if row & words))


def alike(one: Iterable[str], other: Iterable[str]) -> bool:
    """Say whether two slots of one kind take the same values: half of the smaller set in common."""
    first, second = set(one), set(other)
    return 2 * len(first & second) >= min(len(first), len(second)) > 0
