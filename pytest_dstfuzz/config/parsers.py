"""From the text of an option to its value; a ``ValueError`` says what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable

from pytest_dstfuzz.config.secret import Header, without_credentials
from pytest_dstfuzz.config.settings import SPLIT_ALIASES, SPLITS
from pytest_dstfuzz.errors import unknown_name
from pytest_dstfuzz.transformations import TRANSFORMATIONS, select, transformation_names


def text(value: str) -> str:
    """Take any text that is not empty."""
    if not value.strip():
        raise ValueError("is empty")
    return value


def tracker(value: str) -> str:
    """Take the name or the address of a tracker."""
    return without_credentials(text(value))


def names(value: str) -> tuple[str, ...]:
    """Take names with commas between them."""
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found:
        # Nothing would be taken as everything.
        raise ValueError("names nothing: leave the option out for all")
    return found


def lines(value: str) -> tuple[str, ...]:
    """Take one text a line."""
    # A regular expression may hold a comma, so ini files give one lock a line.
    return tuple(line.strip() for line in value.splitlines() if line.strip())


def choice(kind: str, valid: tuple[str, ...]) -> Callable[[str], str]:
    """Return a parser of one of ``valid``; ``kind`` says what they are."""

    def parse(value: str) -> str:
        if value not in valid:
            raise unknown_name(kind, value, valid)
        return value

    return parse


def canonical_split(name: str) -> str:
    """Return the split of that name or alias, in any case; without one, a ``UserError``."""
    if name.strip().lower() not in SPLIT_ALIASES:
        raise unknown_name("split", name, SPLITS)
    return SPLIT_ALIASES[name.strip().lower()]


def transformations(value: str) -> tuple[str, ...]:
    """Take names of transformations and operators; the result is in the order of application."""
    return select(names(value)).written


def switch(value: str) -> bool:
    """Take yes or no."""
    if value not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return value == "yes"


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``low`` to ``high``."""
    bounds = f"from {low} to {high}" if high is not None else f"of at least {low}"

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number {bounds}") from None
        if number < low or (high is not None and number > high):
            raise ValueError(f"must be a whole number {bounds}")
        return number

    return parse


def associated(value: str) -> int:
    """Take a number of transformations: at most as many as there are."""
    known = len(TRANSFORMATIONS)
    number = integer(1)(value) if value.isdecimal() and int(value) else 0
    return integer(1, known if number <= known else len(transformation_names()))(value)


def odd(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of odd whole numbers from ``low`` to ``high``."""
    whole = integer(low, high)

    def parse(value: str) -> int:
        number = whole(value)
        if not number % 2:
            near = f"{number - 1} or {number + 1}"
            raise ValueError(f"must be odd, so that there is a majority: {near}")
        return number

    return parse


def turns(value: str) -> int | None:
    """Take a number of turns, or 'all'."""
    if value == "all":
        return None
    try:
        return integer(1)(value)
    except ValueError:
        raise ValueError("must be a whole number of at least 1, or 'all'") from None


def positive(what: str) -> Callable[[str], float]:
    """Return a parser of numbers above 0; ``what`` says of what."""

    def parse(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"must be a number of {what} above 0")
        return number

    return parse


def prices(value: str) -> tuple[float, float]:
    """Take two amounts of money with a comma between them."""
    try:
        first, second = (float(part) for part in value.split(","))
    except ValueError:
        first = second = math.nan
    if not all(price >= 0 and math.isfinite(price) for price in (first, second)):
        raise ValueError("must be two amounts of money with a comma between them, such as 0.15,0.6")
    return first, second


def headers(value: str) -> tuple[Header, ...]:
    """Take one header a line."""
    return tuple(Header.parse(line) for line in lines(value))
