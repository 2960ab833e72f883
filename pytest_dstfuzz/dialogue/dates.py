"""Dates, days of the week and clock times: words, patterns and parsing.

Only a whole text is parsed as an instant. `tomorrow` and `next week` are not instants. Neither is
`05/03/2024`, because either number may be the month.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import plain_marks

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
#: Patterns for a month, in full or abbreviated, and a full weekday, in singular or plural.
MONTH: Final = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
#: A time of day as people write it: hour, separator, minutes, blank and half of the day.
CLOCK: Final = r"(\d{1,2})(?:([:.])(\d\d))?( ?)(am|pm|a\.m\.?|p\.m\.?)?"
#: Hour and minutes of a time in digits.
CLOCK_TIME: Final = re.compile(r"(\d{1,2})[:.](\d\d)")
_CLOCK_ALONE: Final = re.compile(CLOCK, re.IGNORECASE)
_TWO_DIGITS: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_WEEK: Final = tuple(day[:3] for day in WEEKDAYS)
_DAY_OF_WEEK: Final = rf"(?:{WEEKDAY}|(?-i:Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun))"
#: A pattern with the group ``days``, for matching without case. It skips `every day except Monday`.
DAYS_PATTERN: Final = (
    rf"(?P<days>\b(?:(?P<first>{_DAY_OF_WEEK})"
    r"\s*(?:-|–|to|through|thru|until|till|up to(?: and including)?)"
    rf"\s*(?P<last>{_DAY_OF_WEEK})\b"
    rf"|(?<=between )(?P<from>{_DAY_OF_WEEK}) and (?P<upto>{_DAY_OF_WEEK})\b"
    r"|(?P<working>(?:(?:on|every|each|all) )?weekdays|(?:every|each|on any) weekday)\b"
    r"|(?P<free>(?:(?:at|on|over|during) (?:the )?|every |each )weekends?|weekends)\b"
    r"|(?P<all>(?:(?:every|each)(?: single)? day|7 days a week)\b"
    r"|daily\b(?=[,.;:!?]|\s*$| (?:from|at|between|until|till|to)\b)))"
    r"(?! (?:except|but|apart|other)))"
)
_DAY_BEFORE: Final = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?"
_DATE: Final = (
    r"(?:(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})"
    r"|(?P<y2>\d{4})(?P<m2>\d\d)(?P<d2>\d\d)(?=T)"
    r"|(?P<d3>\d{1,2})\.(?P<m3>\d{1,2})\.(?P<y3>\d{4})"
    r"|(?P<one>\d{1,2})/(?P<other>\d{1,2})/(?P<y4>\d{4})"
    rf"|{_DAY_BEFORE}(?:the\s+)?(?P<d5>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m5>{MONTH})\.?"
    r"(?:,?\s+(?P<y5>\d{4}))?"
    rf"|{_DAY_BEFORE}(?P<m6>{MONTH})\.?\s+(?:the\s+)?(?P<d6>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<y6>\d{4}))?)"
)
_TIME: Final = (
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?)?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?|(?P<basic>\d{6}|\d{4})(?=Z|[+-]|$)"
    r"|(?P<word>noon|midday|midnight))"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?"
)
_SPELLED: Final = (
    re.compile(rf"{_DATE}(?:(?:T|,?\s+(?:at\s+)?){_TIME})?", re.IGNORECASE),
    re.compile(rf"{_TIME}(?:,?\s+(?:on\s+)?{_DATE})?", re.IGNORECASE),
)
#: A clock time with an hour of one or two digits, and minutes.
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d(?:\s?[ap]\.?m\b\.?)?", re.IGNORECASE)
_ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"|\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
)
#: A number in one of these ranges is in seconds or milliseconds since 1970, in the years 2001 to
#: 2286.
_SECONDS: Final = range(10**9, 10**10)
_MILLISECONDS: Final = range(10**12, 10**13)
#: Maximum number of digits of such a number.
_DIGITS: Final = 13
_NOON: Final = 12
_DAY: Final = 24
#: The year for dates without one. It is a leap year.
_ANY_YEAR: Final = 4


class Instant(NamedTuple):
    """A point in time, as precise as its text. Equal instants are the same time."""

    #: ``instant`` (in UTC), ``local`` (no time zone), ``yearly`` (no year), ``time`` (no date), or
    #: ``time in UTC`` (no date, but a time zone).
    kind: str
    at: datetime


def days_of(match: re.Match[str]) -> tuple[str, ...]:
    """Return the days in a match of `DAYS_PATTERN`, from Monday on.

    >>> days_of(re.search(DAYS_PATTERN, "Sat to Mon", re.IGNORECASE))
    ('mon', 'sat', 'sun')
    """
    if match["working"]:
        return _WEEK[:5]
    if match["free"]:
        return _WEEK[5:]
    if match["all"]:
        return _WEEK
    first, last = (
        _WEEK.index((match[name] or match[other])[:3].lower())
        for name, other in (("first", "from"), ("last", "upto"))
    )
    span = {(first + step) % 7 for step in range((last - first) % 7 + 1)}
    return tuple(day for place, day in enumerate(_WEEK) if place in span)


def month_number(name: str) -> int:
    """Return the number of a month from 1. Its name may be abbreviated to three letters or more.

    >>> month_number("Sept"), month_number("may")
    (9, 5)
    """
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name[:3].lower()))


def hour_of_day(hour: int, half: str) -> int:
    """Convert an hour of the 12-hour clock, with ``am``, ``p.m.`` or similar, to 24 hours.

    >>> hour_of_day(12, "am"), hour_of_day(7, "P.M.")
    (0, 19)
    """
    return hour % _NOON + (_NOON if half[:1].lower() == "p" else 0)


def clock_like(value: str, model: str) -> str | None:
    """Return a time ``HH:MM`` in the format of ``model``, or ``None`` if that is impossible.

    >>> clock_like("17:30", "9.15 pm"), clock_like("09:15", "7pm")
    ('5.30 pm', None)
    """
    new, old = _TWO_DIGITS.fullmatch(value), _CLOCK_ALONE.fullmatch(model)
    if new is None or old is None:
        return None
    hour, minutes = int(new[1]), new[2]
    half = old[5]
    if half:
        # The value is in the other half of the day.
        if (hour >= _NOON) != half.lower().startswith("p"):
            return None
        hour = hour % _NOON or _NOON
    if not old[3]:
        return f"{hour}{old[4]}{half}" if minutes == "00" else None
    padded = f"{hour:02}" if len(old[1]) == 2 and not half else str(hour)
    return f"{padded}{old[2]}{minutes}{old[4]}{half or ''}"


def is_moment(text: str) -> bool:
    """Return whether a text is a date or time in ISO 8601, or a clock time.

    >>> is_moment("2024-03-05"), is_moment("9:00 am"), is_moment("9"), is_moment("7pm")
    (True, True, False, False)
    """
    plain = plain_marks(text)
    return bool(_ISO.fullmatch(plain) or _CLOCK.fullmatch(plain))


def instant_of(value: object) -> Instant | None:
    """Return the instant that a JSON value stands for, or ``None`` if it is not an instant.

    A number is in seconds or milliseconds since 1970. A date without a time means midnight.

    >>> instant_of("5 March 2024, 6pm") == instant_of("2024-03-05T18:00")
    True
    >>> instant_of("2024-03-05T18:00Z") == instant_of("2024-03-05T20:00+02:00")
    True
    """
    if isinstance(value, str):
        return _read(plain_marks(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A very large integer has no finite float.
    if isinstance(value, int) or isfinite(value):
        whole = int(value)
        if whole in _SECONDS or whole in _MILLISECONDS:
            return Instant("instant", datetime.fromtimestamp(_seconds(value), UTC))
    return None


def _seconds(value: float) -> float:
    return value / 1000 if int(value) in _MILLISECONDS else value


@lru_cache(maxsize=1 << 12)
def _read(text: str) -> Instant | None:
    # int() raises an error if there are many more digits.
    number = int(text) if text.isdecimal() and len(text) <= _DIGITS else 0
    if number in _SECONDS or number in _MILLISECONDS:
        return instant_of(number)
    for spelled in _SPELLED:
        if found := spelled.fullmatch(text):
            try:
                return _made(found)
            except (ValueError, OverflowError):
                return None  # For example the 31st of February.
    return None


def _made(found: re.Match[str]) -> Instant | None:
    date = _date(found)
    clock = _clock(found)
    if clock is None:
        # A number alone is not a time.
        return None if date is None else Instant(*_dated(date, timedelta()))
    zone = found["zone"]
    if date is None:
        if found["basic"] and zone is None:
            return None  # Four digits alone may also be a year or a number.
        at = datetime(_ANY_YEAR, 1, 1) + clock % timedelta(days=1)  # noqa: DTZ001 - none is named
        if zone is None:
            return Instant("time", at)
        return Instant("time in UTC", (at - _offset(zone)).replace(month=1, day=1, year=_ANY_YEAR))
    kind, at = _dated(date, clock)
    if zone is None or kind == "yearly":
        return Instant(kind, at)
    return Instant("instant", at.replace(tzinfo=timezone(_offset(zone))).astimezone(UTC))


def _date(found: re.Match[str]) -> tuple[int, int, int] | None:
    """Return year (0 if missing), month and day, or ``None`` if there is no date."""
    for year, month, day in (("y", "m", "d"), ("y2", "m2", "d2"), ("y3", "m3", "d3")):
        if found[year]:
            return int(found[year]), int(found[month]), int(found[day])
    for year, month, day in (("y5", "m5", "d5"), ("y6", "m6", "d6")):
        if found[month]:
            named = month_number(found[month])
            return int(found[year] or 0), named, int(found[day])
    if found["y4"]:
        one, other = int(found["one"]), int(found["other"])
        if (one > len(MONTHS)) == (other > len(MONTHS)) and one != other:
            raise ValueError("either of them may be the month")
        return int(found["y4"]), min(one, other), max(one, other)
    return None


def _clock(found: re.Match[str]) -> timedelta | None:
    """Return the time since midnight, or ``None`` if there is no time."""
    if found["word"]:
        return timedelta(hours=0 if found["word"].lower() == "midnight" else _NOON)
    if basic := found["basic"]:
        parts = [int(basic[at : at + 2]) for at in range(0, len(basic), 2)]
        return _time(*parts)
    if found["hour"] is None or not (found["minute"] or found["half"]):
        return None
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= _NOON:
            raise ValueError("no hour of twelve")
        hour = hour_of_day(hour, found["half"])
    part = int((found["part"] or "0").ljust(6, "0")[:6])
    return _time(hour, int(found["minute"] or 0), int(found["second"] or 0), part)


def _time(hour: int, minute: int, second: int = 0, part: int = 0) -> timedelta:
    if minute > 59 or second > 60 or hour > _DAY or (hour == _DAY and (minute or second)):
        raise ValueError("no clock time")
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=part)


def _dated(date: tuple[int, int, int], clock: timedelta) -> tuple[str, datetime]:
    year, month, day = date
    kind = "local" if year else "yearly"
    return kind, datetime(year or _ANY_YEAR, month, day) + clock  # noqa: DTZ001 - none is named


def _offset(zone: str) -> timedelta:
    if zone[0] not in "+-":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    sign = -1 if zone[0] == "-" else 1
    return sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
