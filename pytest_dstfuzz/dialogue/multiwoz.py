"""What is known about MultiWOZ as such: its slots, their closed values, its spellings.

Only the readers and the value normalisation look in here; no other room knows a
slot of MultiWOZ by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.dialogue.dates import WEEKDAYS

__all__ = ["SLOTS"]

_SLOTS_OF: Final = {
    "attraction": "area,name,type",
    "hotel": "area,book day,book people,book stay,internet,name,parking,pricerange,stars,type",
    "restaurant": "area,book day,book people,book time,food,name,pricerange",
    "taxi": "arriveby,departure,destination,leaveat",
    "train": "arriveby,book people,day,departure,destination,leaveat",
}
#: The five domains that trackers are scored on, sorted.
DOMAINS: Final = tuple(_SLOTS_OF)
#: The 30 slots, sorted.
SLOTS: Final = tuple(
    f"{domain}-{slot}" for domain, slots in _SLOTS_OF.items() for slot in slots.split(",")
)

#: Domains of the data outside the 30 slots; their labels are left out.
OTHER_DOMAINS: Final = ("bus", "hospital", "police")

AREAS: Final = ("centre", "east", "north", "south", "west")
PRICES: Final = ("cheap", "expensive", "moderate")
ATTRACTION_TYPES: Final = (
    *("architecture", "boat", "church", "cinema", "college", "concert hall", "entertainment"),
    *("museum", "multiple sports", "nightclub", "park", "swimming pool", "theatre"),
)

#: What kind of value a slot takes, by the last part of its name (see ``slot_kind``).
KINDS: Final[Mapping[str, str]] = {
    "area": "area",
    "arriveby": "time",
    "book day": "day",
    "book people": "number",
    "book stay": "number",
    "book time": "time",
    "day": "day",
    "food": "food",
    "internet": "yes/no",
    "leaveat": "time",
    "parking": "yes/no",
    "pricerange": "price",
    "stars": "number",
}

_CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "area": AREAS,
    "attraction type": ATTRACTION_TYPES,
    "day": WEEKDAYS,
    "hotel type": ("guesthouse", "hotel"),
    "number": tuple(str(number) for number in range(1, 9)),
    "price": PRICES,
    "yes/no": ("no", "yes"),
}


def slot_kind(slot: str) -> str:
    """Return the kind of value that ``slot`` takes; names and places are ``name``."""
    domain, _, name = slot.partition("-")
    if name == "type" and domain in {"attraction", "hotel"}:
        return f"{domain} type"
    return KINDS.get(name, "name")


def closed_values(slot: str) -> tuple[str, ...]:
    """Return the values that ``slot`` always has, sorted; empty for open slots."""
    values = _CLOSED.get(slot_kind(slot), ())
    return tuple(sorted({*values, "0"} if slot == "hotel-stars" else values))


_PHRASES: Final = {
    "area": "area",
    "arriveby": "arrival time",
    "book day": "booking day",
    "book people": "number of people",
    "book stay": "number of nights",
    "book time": "booking time",
    "day": "day",
    "departure": "departure",
    "destination": "destination",
    "food": "type of food",
    "leaveat": "departure time",
    "name": "name",
    "pricerange": "price range",
    "stars": "number of stars",
    "type": "type",
}
#: What people call a slot, without its domain; yes/no slots are not asked for by a value.
SLOT_PHRASES: Final[Mapping[str, str]] = {
    slot: _PHRASES[name] for slot in SLOTS if (name := slot.partition("-")[2]) in _PHRASES
}

#: What people ask for by another word than the name of its yes/no slot.
FLAG_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"hotel-internet": ("wifi",)}

#: Repairs of attraction types: plurals and the spellings of 2.0 and 2.1.
TYPE_REPAIRS: Final[Mapping[str, str]] = {
    "architectural": "architecture",
    "boating": "boat",
    "boats": "boat",
    "churches": "church",
    "cinemas": "cinema",
    "colleges": "college",
    "concert halls": "concert hall",
    "concerthall": "concert hall",
    "concerthalls": "concert hall",
    "multiple sport": "multiple sports",
    "museums": "museum",
    "musuem": "museum",
    "mutliple sports": "multiple sports",
    "night club": "nightclub",
    "night clubs": "nightclub",
    "nightclubs": "nightclub",
    "parks": "park",
    "pool": "swimming pool",
    "pools": "swimming pool",
    "swimming pools": "swimming pool",
    "swimmingpool": "swimming pool",
    "swimmingpools": "swimming pool",
    "theater": "theatre",
    "theaters": "theatre",
    "theatres": "theatre",
}

#: Repairs of food labels: a spelling, and pairs that the TRADE layout runs together.
FOOD_REPAIRS: Final[Mapping[str, str]] = {
    "barbequemodern european": "barbeque",
    "caribbeanindian": "caribbean",
    "jamaicanchinese": "jamaican",
    "north americanindian": "north american",
    "portugese": "portuguese",
}

#: Repairs of whole names, applied after the general rules for names.
#: The canonical form is the one that people type, so that it is found in utterances.
NAME_REPAIRS: Final[Mapping[str, str]] = {
    "17": "one seven",
    "2 2": "two two",
    "2 two": "two two",
    "2 two and cote": "two two and cote",
    "christ college": "christs college",
    "churchills college": "churchill college",
    "city roomz": "cityroomz",
    "el shaddai guest house": "el shaddai",
    "el shaddia": "el shaddai",
    "el shaddia guest house": "el shaddai",
    "gallery at 12": "gallery at twelve",
    "gallery at 12 a high street": "gallery at twelve a high street",
    "museum of archaelogy and anthropogy": "museum of archaeology and anthropology",
    "museum of archaelogy and anthropology": "museum of archaeology and anthropology",
    "pizza hut fenditton": "pizza hut fen ditton",
    "restaurant 17": "restaurant one seven",
    "restaurant 2 2": "restaurant two two",
    "restaurant 2 two": "restaurant two two",
    "restaurant 22": "restaurant two two",
    "the gallery at 12": "the gallery at twelve",
}

#: Words that say which slot a value is for (domain and slot words), sorted.
CUE_WORDS: Final = tuple(
    word
    for line in (
        "area arrival arrive arrives arriving attraction attractions book booked booking cab",
        "called center centre cuisine cuisines day days depart departing departs departure",
        "destination dine eat food guest guesthouse guesthouses guests hotel hotels house",
        "internet leave leaves leaving lodging moderately name named night nights park parking",
        "part people person persons pick place price priced pricerange prices range rated",
        "rating reservation reserve restaurant restaurants serve serves serving side star stars",
        "stay staying table taxi ticket tickets time town train trains type visit wifi",
    )
    for word in line.split()
)
