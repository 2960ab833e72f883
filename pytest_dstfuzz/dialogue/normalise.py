"""One form for the values of labels and predictions, whatever the layout they come from.

Three named normalisations. ``plain`` lower-cases, collapses blanks, leaves out the
spellings of absence and unites those of ``dontcare``. ``multiwoz`` does the same and
brings the labels of MultiWOZ 2.0 to 2.4 and of the TRADE layout to one form:

- slots: ``hotel-book day``, ``taxi-leaveat`` (from ``bookday``, ``leaveAt``, ...); the
  slots of bus, hospital and police, outside the 30, are left out;
- yes/no slots ``yes`` and ``no`` (from ``true``, ``false``, ``free``), ``hotel-type``
  ``hotel`` and ``guesthouse``, times ``HH:MM``, ``centre``, attraction types in the
  singular, numbers in digits, spellings of names and foods that differ between versions;
- of alternatives (``a|b``, ``a>b``, or a list) the first is taken.

``multiwoz-codes`` is ``plain`` but for what layouts encode in ways of their own: slots, the
yes/no slots and ``hotel-type`` are as in ``multiwoz``, all other values the strings of the
labels. It says how much of an accuracy is owed to ``multiwoz``.

Absence and ``dontcare`` are never the same. Normalising twice changes nothing.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState
from pytest_dstfuzz.errors import DataError, unknown_name

#: Names of the normalisations, for options and reports.
NORMALISATIONS: Final = ("multiwoz", "plain", "multiwoz-codes")

#: Kinds of slots whose values are codes, not words of the dialogue: ``true`` for yes or hotel.
_CODED: Final = ("yes/no", "hotel type")

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

_QUOTES: Final = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'"})
_NUMBER_WORDS: Final[Mapping[str, str]] = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}
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
    """Return the canonical form of a value of a canonical slot; ``None`` where it means absence."""
    text = _clean(value)
    kind = multiwoz.slot_kind(slot)
    if normalisation == "plain" or (normalisation == "multiwoz-codes" and kind not in _CODED):
        return _special(text, ())
    rule = _RULES[kind]
    while True:
        # A rule may uncover what an earlier one handles ("the center"), so until it rests.
        parts = [part.strip() for part in _ALTERNATIVES.split(text)]
        first = next((part for part in parts if part), "")
        special = _special(first, (_ANY,))
        if special is None or special == DONTCARE:
            return special
        settled = _clean(rule(first))
        if settled == text:
            return settled
        text = settled


def value_text(slot: str, value: object) -> str:
    """Return a raw value as a text, as trackers and services may give them.

    It is a text, a number, a boolean (``true``, ``false``), ``None`` (absent: ``""``) or a list of
    alternatives, of which the first counts; NaN, infinite or beyond 100 digits is an error.
    """
    if type(value) is str:  # Nearly all of them are.
        return value
    if isinstance(value, list | tuple):
        value = value[0] if value else None
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
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(
        f"the value of slot {slot!r} must be a string, found {type(value).__name__} "
        f"{reprlib.repr(value)}"
    )


def _clean(text: str) -> str:
    return " ".join(text.lower().translate(_QUOTES).split())


def _special(text: str, more_dontcare: tuple[str, ...]) -> str | None:
    """Return ``None`` for absence, ``dontcare`` for its spellings, else the text."""
    if text in _ABSENT:
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
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "")[:1]
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return text
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
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
    "day": _starts_with(multiwoz.DAYS),
    "food": lambda text: multiwoz.FOOD_REPAIRS.get(text, text),
    "hotel type": _hotel_type,
    "name": _name,
    "number": _number,
    "price": _starts_with(multiwoz.PRICES),
    "time": _time,
    "yes/no": _yes_no,
}
