"""Quantities in a text: numbers and amounts, clock times, dates, references."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dates import DAYS_PATTERN, MONTH, WEEKDAY, days_of, month_number
from pytest_dstfuzz.dialogue.number_words import with_digits


class Quantity(NamedTuple):
    """One number, amount, time, date, weekday or reference, with its spelling."""

    kind: str
    said: str
    #: The number in the canonical unit, or a clock time in minutes after midnight.
    value: float = 0.0
    #: The canonical unit of an amount, the names of days, or the text of a reference.
    unit: str = ""
    #: False for a clock time without a known half of the day, and for a date whose day and month
    #: may be swapped.
    sure: bool = True
    #: Year, month and day of a date. A missing part is 0.
    date: tuple[int, int, int] = (0, 0, 0)
    #: The number of an amount as written, before conversion of its unit.
    bare: float = 0.0
    #: Whether the text may omit it: `one room` is `a room`, and `open daily` is `open`.
    spare: bool = False


_MONTH: Final = rf"(?:{MONTH})\b\.?"
#: Canonical name of a unit, factor, pattern of spellings.
_UNITS: Final[tuple[tuple[str, float, str], ...]] = (
    ("£", 1, r"£|gbp|pounds?|quid"),
    ("$", 1, r"\$|usd|dollars?|bucks"),
    ("€", 1, r"€|eur|euros?"),
    ("%", 1, r"%|percent|per ?cent"),
    ("min", 1, r"min(?:ute)?s?"),
    ("min", 60, r"hours?|hrs?|h"),
    ("min", 1 / 60, r"seconds?|secs?"),
    ("min", 1440, r"days?"),
    ("min", 10080, r"weeks?"),
    ("month", 1, r"months?"),
    ("month", 12, r"years?|yrs?"),
    ("m", 1000, r"km|kilomet(?:er|re)s?"),
    ("m", 0.01, r"cm|centimet(?:er|re)s?"),
    ("m", 1, r"met(?:er|re)s?|m"),
    ("mile", 1, r"miles?|mi"),
    ("g", 1000, r"kg|kilos?|kilograms?"),
    ("g", 1, r"grams?|g"),
    ("l", 1, r"lit(?:er|re)s?|l"),
    ("l", 0.001, r"ml"),
    ("°", 1, r"°[cf]?|degrees?(?: (?:celsius|fahrenheit))?"),
    ("GB", 1, r"gb|gigabytes?"),
    ("MB", 1, r"mb|megabytes?"),
)
#: Nouns that are counted. Nouns in one row are interchangeable.
COUNTED: Final = tuple(
    frozenset(row.split())
    for row in (
        (
            "people person persons guest guests adult adults passenger passengers traveller "
            "travellers traveler travelers us ticket tickets seat seats"
        ),
        "night nights day days stay",
        "star stars",
        "room rooms",
        "bag bags suitcase suitcases luggage",
    )
)
#: Marks that turn the number before them into a price, a time or a share.
NUMBER_MARKS: Final = frozenset(
    [
        *("am", "pm", "a.m", "p.m", "o'clock", "oclock", "hrs", "hr", "st", "nd", "rd", "th"),
        *("gbp", "usd", "eur", "pound", "pounds", "dollar", "dollars", "euro", "euros"),
        *("percent", "pence", "p"),
    ]
)
_UNIT: Final = "|".join(spelled for _, _, spelled in _UNITS)
_MERIDIEM: Final = (
    r"(?:\s*(?P<{0}>[ap]\.?\s?m\b\.?|o['’]?clock(?:\s+(?:in the \w+|at night|[ap]\.?m\b\.?))?"
    r"|in the (?:morning|afternoon|evening)|at night))"
)
_PARTS: Final = (
    (
        # Look for an address once per word, from its start to its first @. A search from each
        # letter would take the square or cube of the length.
        r"(?P<skipped>https?://\S+|www\.\S+|(?<!\S)\S[^\s@]*+@\S+\.\w+|\[\d+\]"
        r"|^[^\S\n]*\d{1,2}[.)]\s)"
    ),
    r"(?P<iso>\b(?P<iy>\d{4})-(?P<im>\d{1,2})-(?P<id>\d{1,2})\b)",
    (
        r"(?P<slashed>\b(?P<sd>\d{1,2})(?P<sep>[/.])(?P<sm>\d{1,2})(?P=sep)(?P<sy>\d{4}|\d\d)\b"
        r"|\b(?P<td>\d{1,2})/(?P<tm>\d{1,2})\b)"
    ),
    (
        rf"(?P<past>\b(?:half|(?:a )?quarter|\d{{1,2}}(?: minutes?)?)\s+(?:past|after)"
        r"\s+\d{1,2}\b"
        rf"|\b(?:(?:a )?quarter|\d{{1,2}} minutes)\s+(?:to|before)\s+\d{{1,2}}\b)"
        rf"{_MERIDIEM.format('pm')}?"
    ),
    (
        rf"(?P<clock>\b\d{{1,2}}(?::\d\d(?::\d\d)?|(?:[.:]\d\d)?(?={_MERIDIEM.format('_')}))(?!\d))"
        rf"{_MERIDIEM.format('cm')}?"
    ),
    r"(?P<noon>\bnoon\b|\bmidday\b|\bmidnight\b)",
    (
        rf"(?P<dated>\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH})"
        rf"|(?P<m2>{_MONTH})\s+(?:the\s+)?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]))"
        r"(?:,?\s+(?P<dy>\d{4})\b)?)"
    ),
    rf"(?P<month>\b(?P<m3>{_MONTH})(?:,?\s+(?:of\s+)?(?P<my>\d{{4}})\b)?)",
    DAYS_PATTERN,
    (
        rf"(?P<weekday>\b{WEEKDAY}\b|\b(?:tomorrow|yesterday)\b"
        r"|\b(?-i:Mon|Tues?|Thu(?:rs?)?|Fri)\b|(?<=[-–/])(?-i:Wed|Sat|Sun)\b"
        r"|\b(?-i:Wed|Sat|Sun)(?=[-–/]))"
    ),
    (
        rf"(?P<spoken>\bhalf an? (?P<hu>{_UNIT})\b|\bhalf a dozen\b|\ba dozen\b"
        rf"|\b(?P<an>an hour)(?P<ah> and a half)?\b)"
    ),
    r"(?P<phone>(?<![\w.])(?=(?:[ ()+-]{0,2}\d){9})\+?\(?\d[\d ()-]{7,}\d\b)",
    (
        r"(?P<number>(?:(?<![\w.,)])[-−](?=[£$€]\s?\d))?(?P<money>[£$€]\s?)?"
        rf"(?:(?<![\w.,)])[-−])?(?<![\w.])(?P<digits>\d{{1,3}}(?:,\d{{3}})+"
        rf"(?:\.\d+)?|\d+(?:[.,]\d+)*)(?P<half>\s+and a half|½)?"
        r"(?:\s*(?P<scale>hundred|thousand|million|billion|bn|k|dozen)\b)?"
        rf"(?:(?P<ordinal>st|nd|rd|th)\b|[\s-]*(?P<unit>{_UNIT})(?!\w))?(?!\w))"
    ),
    r"(?P<code>\b(?=[\w-]{0,99}\d)\w[\w-]*)",
)
_QUANTITY: Final = re.compile("|".join(_PARTS), re.IGNORECASE | re.MULTILINE)
#: A text without any such sign has no quantity.
_SIGNS: Final = re.compile(
    r"\d|https?:|www\.|@|\b(?:noon|midday|midnight|half|dozen|an hour|[a-z]+days?|daily"
    r"|every|each|weekends?|tomorrow"
    r"|yesterday"
    r"|mon|tues?|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
#: A spoken sign. Between two numbers, it is a subtraction.
_MINUS: Final = re.compile(r"(?<!\d )\bminus (?=[£$€]?\d)", re.IGNORECASE)
_SCALES: Final = {
    "hundred": 100.0,
    "thousand": 1e3,
    "k": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "dozen": 12.0,
}
#: Up to here a float is equal to no other whole number.
_EXACT: Final = 2**53
#: Words before the name of a month, for names that are also other words.
_BEFORE_MONTH: Final = re.compile(
    r"\b(?:in|of|by|since|until|till|this|next|last|from|to|through|and|or|early|late|mid|every)"
    r"[\s-]+$",
    re.IGNORECASE,
)
#: Most characters before a month that are looked at.
_BEFORE: Final = 40
_NOON: Final = 12 * 60


@lru_cache(maxsize=1 << 14)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of a text in reading order. Skip list numbers and addresses.

    >>> [one.said for one in quantities("Table for two at half past 8 on 12 May, ref. AB12.")]
    ['2', 'half past 8', '12 May', 'AB12']
    """
    spelled = _spelled(text)
    if not _SIGNS.search(spelled):
        return ()
    found = (_quantity(match) for match in _QUANTITY.finditer(spelled))
    return tuple(one for one in found if one is not None)


def _spelled(text: str) -> str:
    digits = with_digits(unicodedata.normalize("NFKC", text.replace("½", " and a half")))
    return _MINUS.sub("-", digits)


def without_quantities(text: str, instead: str) -> str:
    """Replace each quantity in a text by ``instead``.

    >>> without_quantities("Table for two at half past 8, please.", "#")
    'Table for # at #, please.'
    """
    spelled = _spelled(text)
    if not _SIGNS.search(spelled):
        return spelled
    return _QUANTITY.sub(lambda match: match[0] if _quantity(match) is None else instead, spelled)


def _quantity(match: re.Match[str]) -> Quantity | None:
    groups = match.groupdict()
    said = match[0].strip()
    for kind, read in _READERS.items():
        if groups[kind] is not None:
            return read(match, said)
    return None


def _clock(match: re.Match[str], said: str) -> Quantity | None:
    parts = [int(part) for part in re.split("[:.]", match["clock"])]
    hour, minute = parts[0], parts[1] if len(parts) > 1 else 0
    if hour > 24 or minute > 59:
        return Quantity("code", said, unit=said)
    sure = ":" in match["clock"] and (hour > 12 or hour == 0 or match["clock"][0] == "0")
    return _time(60 * hour + minute, match["cm"], said, sure=sure)


def _time(minutes: int, meridiem: str | None, said: str, *, sure: bool = False) -> Quantity:
    told = (meridiem or "").lower().replace(".", "").replace(" ", "")
    late = told.endswith("pm") or "afternoon" in told or "evening" in told or "night" in told
    early = told.endswith("am") or "morning" in told
    if (late and minutes < _NOON) or (early and _NOON <= minutes < _NOON + 60):
        minutes += _NOON if late else -_NOON
    return Quantity("time", said, minutes % (2 * _NOON), sure=sure or late or early)


def _past(match: re.Match[str], said: str) -> Quantity:
    head, word, hour = re.split(r"\s+(past|after|to|before)\s+", match["past"].lower())
    minutes = 30 if head == "half" else 15 if "quarter" in head else int(head.split()[0])
    sign = 1 if word in ("past", "after") else -1
    return _time((60 * int(hour) + sign * minutes) % (2 * _NOON), match["pm"], said)


def _noon(match: re.Match[str], said: str) -> Quantity:
    return Quantity("time", said, 0 if match["noon"].lower() == "midnight" else _NOON)


def _iso(match: re.Match[str], said: str) -> Quantity:
    return Quantity("date", said, date=(int(match["iy"]), int(match["im"]), int(match["id"])))


def _slashed(match: re.Match[str], said: str) -> Quantity | None:
    day, month = int(match["sd"] or match["td"]), int(match["sm"] or match["tm"])
    if min(day, month) > 12 or max(day, month) > 31:
        return Quantity("code", said, unit=said)
    year = int(match["sy"] or 0)
    year += 2000 if 0 < year < 100 else 0
    if day > 12 or month > 12:
        return Quantity("date", said, date=(year, min(day, month), max(day, month)))
    return Quantity("date", said, date=(year, month, day), sure=False)


def _dated(match: re.Match[str], said: str) -> Quantity:
    month = month_number(match["m1"] or match["m2"])
    return Quantity(
        "date", said, date=(int(match["dy"] or 0), month, int(match["d1"] or match["d2"]))
    )


def _of_month(match: re.Match[str], said: str) -> Quantity | None:
    name = match["m3"].rstrip(".")
    before = match.string[max(0, match.start() - _BEFORE) : match.start()]
    verb = name.lower() in ("may", "march", "mar", "dec", "jan") or len(name) == 3
    if verb and not (name[0].isupper() and (match["my"] or _BEFORE_MONTH.search(before))):
        return None
    return Quantity("date", said, date=(int(match["my"] or 0), month_number(name), 0))


def _weekday(match: re.Match[str], said: str) -> Quantity:
    return Quantity("day", said, unit=match["weekday"][:3].lower())


def _days(match: re.Match[str], said: str) -> Quantity:
    return Quantity(
        "day", said, unit=" ".join(days_of(match)), spare=not (match["first"] or match["from"])
    )


def _spoken(match: re.Match[str], said: str) -> Quantity:
    if match["hu"]:
        return _amount(0.5, match["hu"], said)
    if match["an"]:
        return _amount(1.5 if match["ah"] else 1.0, "hour", said)
    dozen = 6.0 if "half" in said else 12.0
    return Quantity("number", said, dozen, bare=dozen)


def _phone(match: re.Match[str], said: str) -> Quantity:
    return Quantity("code", said, unit=re.sub(r"\D", "", match["phone"]))


def _number(match: re.Match[str], said: str) -> Quantity:
    digits = match["digits"]
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        digits = digits.replace(",", "")
    elif re.fullmatch(r"\d+,\d{1,2}", digits):
        digits = digits.replace(",", ".")
    if not re.fullmatch(r"\d+(?:\.\d+)?", digits):
        return Quantity("code", said, unit=digits)
    value = float(digits)
    if math.isinf(value):
        return Quantity("code", said, unit=digits)
    if value > _EXACT and digits.isdecimal():
        value = int(digits)
    if match["half"]:
        value += 0.5
    if match["scale"]:
        value *= _SCALES[match["scale"].lower()]
    sign = -1 if re.match(r"(?:[£$€]\s?)?[-−]", match["number"]) else 1
    unit = (match["money"] or "").strip() or match["unit"] or ""
    if match["ordinal"]:
        return Quantity("number", said, value, unit="th", bare=value, spare=value == 1)
    return _amount(sign * value, unit, said)


def _amount(value: float, unit: str, said: str) -> Quantity:
    for name, factor, spelled in _UNITS:
        if unit and re.fullmatch(spelled, unit, re.IGNORECASE):
            scaled = round(value * factor, 6)
            return Quantity("number", said, scaled, unit=name, bare=value, spare=value == 1)
    return Quantity("number", said, value, bare=value, spare=value == 1)


def _code(match: re.Match[str], said: str) -> Quantity:
    return Quantity("code", said, unit=match["code"].replace("-", "").lower())


_READERS: Final = {
    "iso": _iso,
    "slashed": _slashed,
    "past": _past,
    "clock": _clock,
    "noon": _noon,
    "dated": _dated,
    "month": _of_month,
    "days": _days,
    "weekday": _weekday,
    "spoken": _spoken,
    "phone": _phone,
    "number": _number,
    "code": _code,
}
