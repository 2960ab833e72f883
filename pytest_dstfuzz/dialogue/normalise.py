"""Normalisation of values in labels and predictions, and facts about MultiWOZ."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.calls import list_text, members_of, parse_list, plain_marks
from pytest_dstfuzz.dialogue.dates import WEEKDAYS, hour_of_day
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState
from pytest_dstfuzz.dialogue.number_words import digits_up_to
from pytest_dstfuzz.errors import DataError, redact_text, unknown_name

__all__ = ["NORMALISATIONS", "SLOTS", "normalise_state"]


_SLOTS_OF: Final = {
    "attraction": "area,name,type",
    "hotel": "area,book day,book people,book stay,internet,name,parking,pricerange,stars,type",
    "restaurant": "area,book day,book people,book time,food,name,pricerange",
    "taxi": "arriveby,departure,destination,leaveat",
    "train": "arriveby,book people,day,departure,destination,leaveat",
}
#: The five domains for scoring trackers, sorted.
DOMAINS: Final = tuple(_SLOTS_OF)
#: The 30 slots, sorted.
SLOTS: Final = tuple(
    f"{domain}-{slot}" for domain, slots in _SLOTS_OF.items() for slot in slots.split(",")
)

#: Domains outside the 30 slots. Their labels are ignored.
OTHER_DOMAINS: Final = ("bus", "hospital", "police")

AREAS: Final = ("centre", "east", "north", "south", "west")
PRICES: Final = ("cheap", "expensive", "moderate")
ATTRACTION_TYPES: Final = (
    *("architecture", "boat", "church", "cinema", "college", "concert hall", "entertainment"),
    *("museum", "multiple sports", "nightclub", "park", "swimming pool", "theatre"),
)

#: Last part of a slot's name -> kind of its values (see ``slot_kind``).
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
    """Return the kind of value that ``slot`` takes. It is ``name`` for names and places."""
    domain, _, name = slot.partition("-")
    if name == "type" and domain in {"attraction", "hotel"}:
        return f"{domain} type"
    return KINDS.get(name, "name")


def values_of_closed_slot(slot: str) -> tuple[str, ...]:
    """Return all possible values of a closed slot, sorted. Empty for open slots."""
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
#: Ordinary words for a slot, without its domain. Yes/no slots have none.
SLOT_PHRASES: Final[Mapping[str, str]] = {
    slot: _PHRASES[name] for slot in SLOTS if (name := slot.partition("-")[2]) in _PHRASES
}

#: Words by which people request a yes/no slot, if they differ from its name.
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

#: Repairs of food labels: a misspelling, and pairs of values that the TRADE layout concatenates.
FOOD_REPAIRS: Final[Mapping[str, str]] = {
    "barbequemodern european": "barbeque",
    "caribbeanindian": "caribbean",
    "jamaicanchinese": "jamaican",
    "north americanindian": "north american",
    "portugese": "portuguese",
}

#: Repairs of whole names, applied after the general rules for names. The canonical form is the one
#: that people type, so that it is found in utterances.
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

#: Words that name the purpose of a value (domain and slot words), sorted.
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


#: Names of the normalisations, for options and reports.
NORMALISATIONS: Final = ("multiwoz", "plain", "multiwoz-codes")

#: Kinds of slots whose values are codes instead of words: ``true`` for yes or hotel.
_CODED: Final = ("yes/no", "hotel type")

#: MultiWOZ's spellings of an absent slot.
_ABSENT: Final = frozenset({"", "none", "not given", "not mentioned"})
# Compared without apostrophes, so "don't care" and "do n't care" are covered.
_DONTCARE: Final = frozenset(
    {
        "do not care",
        "do nt care",
        "does not care",
        "does not matter",
        "doesnt care",
        "doesnt matter",
        "dont care",
        "dont_care",
        "dontcare",
    }
)
#: Limit for numbers. Python refuses to print very large integers.
_TOO_GREAT: Final = 10**100
_ANY: Final = "any"  # MultiWOZ's spelling of dontcare. In other data it may be a value.

#: A whole number written with decimals.
_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\.0+")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-9]{2})(?: ?([ap])\.?m\.?)?")
#: From here on floats cannot represent all whole numbers, and no value is a count.
_EXACT: Final = 2.0**53
_NUMBER_WORDS: Final = digits_up_to(12)
_NUMBER = re.compile(r"([0-9]+|[a-z]+)(?:[ -]?(?:stars?|people|persons?|guests?|nights?|days?))?")
_TIME = re.compile(
    r"(?:(?:after|before|by|at|around|about) )?"
    r"([0-9]{1,2})[:.]?([0-9]{2})? ?(am|pm|a\.m\.?|p\.m\.?)?"
)
_AREA_LEAD = re.compile(r"^(?:in )?(?:the )?(?=[a-z])")
_CENTRE = re.compile(r"(?:(?:city|town) ?)?(?:centre|center)(?: of .*)?")
_ALTERNATIVES = re.compile(r"[|>]")
_CLITIC = re.compile(r"(?<=\w)(?: ?' ?| )s\b")
_JELLO = re.compile(r"caf\S{1,2} jello gall?ery")


def normalise_state(state: Mapping[str, object], normalisation: str) -> BeliefState:
    """Return ``state`` with canonical slots and values, without absent slots.

    All labels and predictions go through this function, so they are comparable. If two spellings of
    one slot have a value, the later value wins. See `value_text` for the types of values.
    """
    check_normalisation(normalisation)
    values: dict[str, str] = {}
    for raw_slot, raw_value in state.items():
        if not isinstance(raw_slot, str):
            raise DataError(f"slot names must be strings, got {raw_slot!r}")
        slot = normalise_slot(raw_slot, normalisation)
        if slot is None:
            continue
        value = normalise_value(slot, value_text(raw_slot, raw_value), normalisation)
        if value is not None:
            values[slot] = value
    return BeliefState(values)


def check_normalisation(name: str) -> str:
    """Return ``name``, or raise a ``UserError`` if no normalisation has this name."""
    if name not in NORMALISATIONS:
        raise unknown_name("normalisation", name, NORMALISATIONS)
    return name


@lru_cache(maxsize=4096)
def normalise_slot(slot: str, normalisation: str) -> str | None:
    """Return the canonical name of ``slot``, or ``None`` if it is out of scope.

    ``plain`` lower-cases the name and collapses blanks. The other normalisations map the names of
    all layouts to those in ``SLOTS``, drop the slots of `OTHER_DOMAINS`, and keep unknown names.
    """
    text = _clean(slot)
    if normalisation == "plain":
        return text
    domain = re.split(r"[^a-z]", text, maxsplit=1)[0]
    if domain in OTHER_DOMAINS:
        return None
    return _SLOT_NAMES.get(_squash(text), text)


@lru_cache(maxsize=65536)
def normalise_value(slot: str, value: str, normalisation: str) -> str | None:
    """Return the canonical value of a canonical slot, or ``None`` if the value means absence.

    A slot of MultiWOZ has one value, so the MultiWOZ normalisations use only the first item of a
    list.
    """
    listed = _listed(value)
    if listed is None:
        one = _one_value(slot, _clean(value), normalisation)
        # An alternative may be a list: the first one of `[]|` is.
        again = one is not None and one != value and _listed(one) is not None
        return normalise_value(slot, one, normalisation) if one is not None and again else one
    found = (normalise_value(slot, one, normalisation) for one in listed)
    members = [part for one in found if one is not None for part in members_of(one)]
    if not members:
        return None
    several = normalisation == "plain" or slot not in SLOTS
    return list_text(members) if several and len(members) > 1 else members[0]


def _listed(value: str) -> list[str] | None:
    """Parse a text as a JSON list. Return ``None`` if the text is not a list of values."""
    if "[" not in value:
        return None
    found = parse_list(value.strip())
    if found is None:
        found = parse_list(_clean(value))
    try:
        return None if found is None else [_scalar_text("", one) for one in found]
    except DataError:
        return None


def _one_value(slot: str, text: str, normalisation: str) -> str | None:
    """Return the canonical form of a value that is not a list."""
    if normalisation == "plain":
        return _special(_clock(_whole(text)), frozenset({""}), ())
    kind = slot_kind(slot)
    if normalisation == "multiwoz-codes" and kind not in _CODED:
        return _special(text, _ABSENT, ())
    rule = _RULES[kind]
    while True:
        # The result of a rule may need an earlier rule ("the center"), so repeat until stable.
        parts = [part.strip() for part in _ALTERNATIVES.split(text)]
        first = next((part for part in parts if part), "")
        special = _special(first, _ABSENT, (_ANY,))
        if special is None or special == DONTCARE:
            return special
        settled = _clean(rule(first))
        if settled == text:
            return settled
        text = settled


def value_text(slot: str, value: object) -> str:
    """Return a raw value of a tracker or service as a text.

    The value is a text, a number, a boolean (``true``, ``false``), ``None`` (absent: ``""``) or a
    list of such values. A list becomes JSON. NaN, infinity and integers of more than 100 digits are
    errors.
    """
    if type(value) is str:  # Fast path for nearly all values.
        return value
    if isinstance(value, list | tuple):
        members = [text for one in value if (text := _scalar_text(slot, one)).strip()]
        return json.dumps(members, ensure_ascii=False) if len(members) > 1 else "".join(members)
    return _scalar_text(slot, value)


def is_absent(value: object) -> bool:
    """Return whether a value is one of MultiWOZ's spellings of an absent slot.

    >>> is_absent("Not Mentioned"), is_absent(None), is_absent("0")
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and _clean(value) in _ABSENT)


def _scalar_text(slot: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(
            f"the value of slot {slot!r} is {value}, which is not allowed: leave the slot out, or "
            "write None"
        )
    if isinstance(value, int) and abs(value) >= _TOO_GREAT:
        raise DataError(f"the value of slot {slot!r} is a number of more than 100 digits")
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    # Write members of enumerations as their values, not as their names.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return (int if isinstance(value, int) else float).__repr__(value)
    raise DataError(
        f"the value of slot {slot!r} must be a string, a number, true, false or a list of these, "
        f"got {type(value).__name__} {redact_text(reprlib.repr(value))}"
    )


def _clean(text: str) -> str:
    # Lower-casing may split a letter into two characters, so normalise again.
    return plain_marks(plain_marks(text).lower())


def _whole(text: str) -> str:
    """Return a whole number without decimals. Return other texts unchanged."""
    match = _WHOLE.fullmatch(text)
    return text if match is None else match[1] * (match[2] != "0") + match[2]


def _clock(text: str) -> str:
    """Return a time with minutes in 24-hour format. Return other texts unchanged."""
    match = _CLOCK.fullmatch(text)
    return text if match is None else _hours(text, int(match[1]), int(match[2]), match[3] or "")


def _special(text: str, absent: frozenset[str], more_dontcare: tuple[str, ...]) -> str | None:
    """Return ``None`` for absence and ``dontcare`` for its spellings; otherwise the text."""
    if text in absent:
        return None
    if text.replace("'", "") in _DONTCARE or text in more_dontcare:
        return DONTCARE
    return text


def _squash(slot: str) -> str:
    """Reduce a slot name to the part common to all layouts (``hotel-semi-area``: ``hotelarea``)."""
    letters = re.sub(r"[^a-z]", "", slot)
    return re.sub(rf"^({'|'.join(DOMAINS)})semi", r"\1", letters)


_SLOT_NAMES: Final[Mapping[str, str]] = {_squash(slot): slot for slot in SLOTS}


def _yes_no(text: str) -> str:
    return {"true": "yes", "free": "yes", "y": "yes", "false": "no", "n": "no"}.get(text, text)


def _hotel_type(text: str) -> str:
    if text in {"true", "hotels"}:
        return "hotel"
    if text in {"false", "guest house", "guest houses", "guesthouses"}:
        return "guesthouse"
    return text


def _time(text: str) -> str:
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    return _hours(text, int(match[1]), int(match[2] or 0), (match[3] or "")[:1])


def _hours(text: str, hour: int, minute: int, half: str) -> str:
    """Return a time as ``HH:MM``, or the original text if no such time exists."""
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return text
    if half:
        hour = hour_of_day(hour, half)
    return f"{hour % 24:02d}:{minute:02d}"


def _number(text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    return match[1] if match[1].isdigit() else _NUMBER_WORDS.get(match[1], text)


def _starts_with(known: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that shortens a text to a known value at its start.

    In the TRADE layout, two values of a closed slot may be concatenated.
    """

    def rule(text: str) -> str:
        return next((value for value in known if text.startswith(value)), text)

    return rule


def _area(text: str) -> str:
    bare = _AREA_LEAD.sub("", text)
    return "centre" if _CENTRE.fullmatch(bare) else bare if bare in AREAS else text


def _name(text: str) -> str:
    text = _CLITIC.sub("s", text).replace("'", "").replace("-", " ").replace("&", " and ")
    text = re.sub(r"\bb and b$", "bed and breakfast", _clean(text))
    text = re.sub(r"\bguesthouse\b", "guest house", text)
    text = "cafe jello gallery" if _JELLO.fullmatch(text) else text
    return NAME_REPAIRS.get(text, text)


_RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "area": _area,
    "attraction type": lambda text: TYPE_REPAIRS.get(text, text),
    "day": _starts_with(WEEKDAYS),
    "food": lambda text: FOOD_REPAIRS.get(text, text),
    "hotel type": _hotel_type,
    "name": _name,
    "number": _number,
    "price": _starts_with(PRICES),
    "time": _time,
    "yes/no": _yes_no,
}
