"""The comparison of numbers: amounts, clock times, dates and references must be the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.quantities import Quantity, quantities

_HALF_A_DAY: Final = 12 * 60
#: Digits of a reference that may be a number: Python reads no more than 4,300.
_LONGEST: Final = 300
#: Quantities of one side that a report names.
_SHOWN: Final = 3


class SameNumbers(Comparison):
    """Both texts name the same numbers, amounts, times, dates and references.

    How they are written is all one (``two`` and ``2``, ``half past 8`` and ``8:30``), and so is
    how often: who repeats a time says nothing else. A unit, a year or `p.m.` that one of them
    leaves out is not held against it.
    """

    name = "numbers"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether each quantity of either text is in the other."""
        del path, asked
        return _compared(before, found)


@lru_cache(maxsize=1 << 14)
def _compared(before: str, found: str) -> Compared:
    first, second = quantities(before), quantities(found)
    left, right = _missing(first, second), _missing(second, first)
    if not left and not right:
        return Compared(same=True)
    return Compared(same=False, why=f"{_told(left)} / {_told(right)}")


def _missing(mine: tuple[Quantity, ...], others: tuple[Quantity, ...]) -> list[Quantity]:
    """Return the quantities of one text that the other has not."""
    units = {other.unit for other in others if other.kind == "number" and other.unit}
    days = {day for other in others if other.kind == "day" for day in other.unit.split()}
    return [
        one
        for one in mine
        if (
            (days or not one.spare) and not days.issuperset(one.unit.split())
            if one.kind == "day"
            else not (one.spare and one.unit not in units)
            and not any(_agree(one, other) for other in others)
        )
    ]


def _told(missing: list[Quantity]) -> str:
    shown = list(dict.fromkeys(one.said for one in missing))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) + more) or "-"


def _agree(one: Quantity, other: Quantity) -> bool:
    if one.kind > other.kind:
        one, other = other, one
    return _RULES[one.kind, other.kind](one, other)


def _numbers(one: Quantity, other: Quantity) -> bool:
    if one.unit and other.unit:
        return one.value == other.value and one.unit == other.unit
    return one.bare == other.bare


def _times(one: Quantity, other: Quantity) -> bool:
    if one.value == other.value:
        return True
    either = not (one.sure and other.sure)
    return either and one.value % _HALF_A_DAY == other.value % _HALF_A_DAY


def _number_and_time(number: Quantity, time: Quantity) -> bool:
    """`a table at 8` says `8 pm`, and so does `8.30` a time where it is written so."""
    hours, minutes = divmod(round(100 * number.value), 100)
    if number.unit or number.value < 0 or hours > 24 or minutes > 59:
        return False
    return (60 * hours + minutes) % _HALF_A_DAY == time.value % _HALF_A_DAY


def _dates(one: Quantity, other: Quantity) -> bool:
    (year, month, day), (year_too, month_too, day_too) = one.date, other.date
    if year and year_too and year != year_too:
        return False
    orders = [(month_too, day_too)]
    if not (one.sure and other.sure):
        orders.append((day_too, month_too))
    return any(month == m and (not day or not d or day == d) for m, d in orders)


def _date_and_number(date: Quantity, number: Quantity) -> bool:
    """`the 12th` is told of `12 May`, and `1969` of `July 1969`."""
    return (number.unit in ("", "th")) and number.value in (date.date[0], date.date[2])


def _code_and_number(code: Quantity, number: Quantity) -> bool:
    digits = "".join(filter(str.isdigit, code.unit))
    return 0 < len(digits) <= _LONGEST and int(digits) == number.value


def _units(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit


def _never(one: Quantity, other: Quantity) -> bool:
    del one, other
    return False


_RULES: Final = {
    **dict.fromkeys(
        [
            *(("code", "date"), ("code", "day"), ("code", "time"), ("date", "day")),
            *(("date", "time"), ("day", "number"), ("day", "time")),
        ],
        _never,
    ),
    ("number", "number"): _numbers,
    ("time", "time"): _times,
    ("number", "time"): _number_and_time,
    ("date", "date"): _dates,
    ("date", "number"): _date_and_number,
    ("code", "number"): _code_and_number,
    ("code", "code"): _units,
}
