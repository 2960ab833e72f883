"""One form for the values of labels and predictions, whatever the layout they come from.

Three named normalisations. ``plain`` is for data of your own. It lower-cases, brings quotes,
dashes, blanks and accents to one spelling (`plain_marks`), unites the spellings of
``dontcare``, and writes ``2.0`` as ``2`` and ``9:00`` or ``9:00 am`` as ``09:00``. A list of
values stays a list (`list_text`). The empty text, the empty list and null mean that a slot is
absent; the text ``none`` is a value like any other.

``multiwoz`` lower-cases and unites spellings too, takes ``none``, ``not given`` and ``not
mentioned`` for absence, and brings the labels of MultiWOZ 2.0 to 2.4 and of the TRADE layout to
one form:

- slots: ``hotel-book day``, ``taxi-leaveat`` (from ``bookday``, ``leaveAt``, ...); the
  slots of bus, hospital and police, outside the 30, are left out;
- yes/no slots ``yes`` and ``no`` (from ``true``, ``false``, ``free``), ``hotel-type``
  ``hotel`` and ``guesthouse``, times ``HH:MM``, ``centre``, attraction types in the
  singular, numbers in digits, spellings of names and foods that differ between versions;
- of alternatives (``a|b``, ``a>b``, or a list of a slot of MultiWOZ) the first is taken.

``multiwoz-codes`` is ``multiwoz`` but for the words of values: slots, absence, lists, the yes/no
slots and ``hotel-type`` are as in ``multiwoz``, all other values the strings of the labels. It
says how much of an accuracy is owed to ``multiwoz``.

Absence and ``dontcare`` are never the same. Normalising twice changes nothing.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.dates import WEEKDAYS, hour_of_day
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState
from pytest_dstfuzz.dialogue.number_words import digits_up_to
from pytest_dstfuzz.dialogue.values import list_text, members_of, parsed_list, plain_marks
from pytest_dstfuzz.errors import DataError, unknown_name

__all__ = ["NORMALISATIONS", "normalise_state"]

#: Names of the normalisations, for options and reports.
NORMALISATIONS: Final = ("multiwoz", "plain", "multiwoz-codes")

#: Kinds of slots whose values are codes, not words of the dialogue: ``true`` for yes or hotel.
_CODED: Final = ("yes/no", "hotel type")

#: How MultiWOZ writes that a slot is absent.
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
#: Python refuses to write out numbers without end.
_TOO_GREAT: Final = 10**100
_ANY: Final = "any"  # MultiWOZ writes it for dontcare; elsewhere it may be a value.

#: A whole number that is written with decimals.
_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\.0+")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-9]{2})(?: ?([ap])\.?m\.?)?")
#: From here on floats leave out whole numbers, and none of them is a count.
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
    """Return ``state`` with canonical slots and values; absent slots are left out.

    Labels of every reader and predictions of every tracker go through here, so that
    they can be compared. Where two spellings of one slot have a value, the later wins.
    For values see `value_text`.
    """
    check_normalisation(normalisation)
    values: dict[str, str] = {}
    for raw_slot, raw_value in state.items():
        if not isinstance(raw_slot, str):
            raise DataError(f"slot names must be strings, found {raw_slot!r}")
        slot = normalise_slot(raw_slot, normalisation)
        if slot is None:
            continue
        value = normalise_value(slot, value_text(raw_slot, raw_value), normalisation)
        if value is not None:
            values[slot] = value
    return BeliefState(values)


def check_normalisation(name: str) -> str:
    """Return ``name`` when it is a normalisation, else raise ``UserError``."""
    if name not in NORMALISATIONS:
        raise unknown_name("normalisation", name, NORMALISATIONS)
    return name


@lru_cache(maxsize=4096)
def normalise_slot(slot: str, normalisation: str) -> str | None:
    """Return the canonical name of ``slot``, or ``None`` where it is out of scope.

    ``plain`` lower-cases and collapses blanks. The others map the names of all
    layouts to those of ``multiwoz.SLOTS``, leave out the slots of the other three
    domains, and keep a name that they do not know.
    """
    text = _clean(slot)
    if normalisation == "plain":
        return text
    domain = re.split(r"[^a-z]", text, maxsplit=1)[0]
    if domain in multiwoz.OTHER_DOMAINS:
        return None
    return _SLOT_NAMES.get(_squash(text), text)


@lru_cache(maxsize=65536)
def normalise_value(slot: str, value: str, normalisation: str) -> str | None:
    """Return the canonical form of a value of a canonical slot; ``None`` where it means absence.

    A slot of MultiWOZ has one value: of a list the normalisations of MultiWOZ take the first.
    """
    listed = _listed(value)
    if listed is None:
        return _one_value(slot, _clean(value), normalisation)
    found = (normalise_value(slot, one, normalisation) for one in listed)
    members = [part for one in found if one is not None for part in members_of(one)]
    if not members:
        return None
    several = normalisation == "plain" or slot not in multiwoz.SLOTS
    return list_text(members) if several and len(members) > 1 else members[0]


def _listed(value: str) -> list[str] | None:
    """Return the members of the JSON list that a text is; ``None`` = it is none of values."""
    if "[" not in value:
        return None
    found = parsed_list(value.strip())
    if found is None:
        found = parsed_list(_clean(value))
    try:
        return None if found is None else [_scalar_text("", one) for one in found]
    except DataError:
        return None


def _one_value(slot: str, text: str, normalisation: str) -> str | None:
    """Return the canonical form of a value that is no list."""
    if normalisation == "plain":
        return _special(_clock(_whole(text)), frozenset({""}), ())
    kind = multiwoz.slot_kind(slot)
    if normalisation == "multiwoz-codes" and kind not in _CODED:
        return _special(text, _ABSENT, ())
    rule = _RULES[kind]
    while True:
        # A rule may uncover what an earlier one handles ("the center"), so until it rests.
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
    """Return a raw value as a text, as trackers and services may give them.

    It is a text, a number, a boolean (``true``, ``false``), ``None`` (absent: ``""``) or a list of
    such, which becomes JSON; NaN, infinite or beyond 100 digits is an error.
    """
    if type(value) is str:  # Nearly all of them are.
        return value
    if isinstance(value, list | tuple):
        members = [text for one in value if (text := _scalar_text(slot, one)).strip()]
        return json.dumps(members, ensure_ascii=False) if len(members) > 1 else "".join(members)
    return _scalar_text(slot, value)


def is_absent(value: object) -> bool:
    """Whether MultiWOZ writes so that a slot is absent.

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
            f"the value of slot {slot!r} is {value}, which is no value: leave the slot out, or "
            "write None"
        )
    if isinstance(value, int) and abs(value) >= _TOO_GREAT:
        raise DataError(f"the value of slot {slot!r} is a number of more than 100 digits")
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    # Members of enumerations are written as their values, not as their names.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return (int if isinstance(value, int) else float).__repr__(value)
    raise DataError(
        f"the value of slot {slot!r} must be a string, found {type(value).__name__} "
        f"{reprlib.repr(value)}; numbers, true, false and lists of such are right, too"
    )


def _clean(text: str) -> str:
    # A letter in lower case may be written as two characters.
    return plain_marks(plain_marks(text).lower())


def _whole(text: str) -> str:
    """Return a whole number without decimals, other texts as they are."""
    match = _WHOLE.fullmatch(text)
    return text if match is None else match[1] * (match[2] != "0") + match[2]


def _clock(text: str) -> str:
    """Return a time with its minutes in 24 hours, other texts as they are."""
    match = _CLOCK.fullmatch(text)
    return text if match is None else _hours(text, int(match[1]), int(match[2]), match[3] or "")


def _special(text: str, absent: frozenset[str], more_dontcare: tuple[str, ...]) -> str | None:
    """Return ``None`` for absence, ``dontcare`` for its spellings, else the text."""
    if text in absent:
        return None
    if text.replace("'", "") in _DONTCARE or text in more_dontcare:
        return DONTCARE
    return text


def _squash(slot: str) -> str:
    """Reduce a slot name to what all layouts share (``hotel-semi-area``: ``hotelarea``)."""
    letters = re.sub(r"[^a-z]", "", slot)
    return re.sub(rf"^({'|'.join(multiwoz.DOMAINS)})semi", r"\1", letters)


_SLOT_NAMES: Final[Mapping[str, str]] = {_squash(slot): slot for slot in multiwoz.SLOTS}


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
    """Return a time as ``HH:MM``; the text that says it where there is no such time."""
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
    """Make a rule for closed slots; the TRADE layout runs two values together."""

    def rule(text: str) -> str:
        return next((value for value in known if text.startswith(value)), text)

    return rule


def _area(text: str) -> str:
    bare = _AREA_LEAD.sub("", text)
    return "centre" if _CENTRE.fullmatch(bare) else bare if bare in multiwoz.AREAS else text


def _name(text: str) -> str:
    text = _CLITIC.sub("s", text).replace("'", "").replace("-", " ").replace("&", " and ")
    text = re.sub(r"\bb and b$", "bed and breakfast", _clean(text))
    text = re.sub(r"\bguesthouse\b", "guest house", text)
    text = "cafe jello gallery" if _JELLO.fullmatch(text) else text
    return multiwoz.NAME_REPAIRS.get(text, text)


_RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "area": _area,
    "attraction type": lambda text: multiwoz.TYPE_REPAIRS.get(text, text),
    "day": _starts_with(WEEKDAYS),
    "food": lambda text: multiwoz.FOOD_REPAIRS.get(text, text),
    "hotel type": _hotel_type,
    "name": _name,
    "number": _number,
    "price": _starts_with(multiwoz.PRICES),
    "time": _time,
    "yes/no": _yes_no,
}
