"""Values of options that are lists, as the experiments take them."""

from __future__ import annotations

from collections.abc import Callable

from pytest_dstfuzz.config import VALIDITIES, parse_option
from pytest_dstfuzz.config.command_line import whole_number
from pytest_dstfuzz.errors import unknown_name


def splits(text: str) -> tuple[str, ...]:
    """Read ``val,test``."""
    names = [parse_option("split", part.strip(), "--split") for part in text.split(",")]
    return tuple(dict.fromkeys(names))


def ks(text: str) -> tuple[int, ...]:
    """Read ``1,2,6``: numbers of transformations."""
    numbers = whole_numbers(1)(text)
    if any(number > 6 for number in numbers):
        raise ValueError("must be numbers from 1 to 6, such as 1,2,6")
    return numbers


def whole_numbers(low: int) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of lists of whole numbers of at least ``low``."""
    number = whole_number(low)
    return lambda text: tuple(dict.fromkeys(number(part.strip()) for part in text.split(",")))


def validities(text: str) -> tuple[str, ...]:
    """Read ``strict``, ``strict,edit-rate`` or ``both``."""
    if text == "both":
        return ("edit-rate", "strict")
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in VALIDITIES:
            raise unknown_name("validity profile", name, (*VALIDITIES, "both"))
    return tuple(dict.fromkeys(names))


def switches(text: str) -> tuple[bool, ...]:
    """Read ``yes``, ``no`` or both, as ``yes,no``."""
    found = [part.strip() for part in text.split(",")]
    if not set(found) <= {"yes", "no"}:
        raise ValueError("must be yes, no or yes,no")
    return tuple(dict.fromkeys(part == "yes" for part in found))
