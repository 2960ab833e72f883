"""JSON that says one thing: no key twice with two values, no NaN, and not nested without end."""

from __future__ import annotations

import json
from typing import Any

from pytest_dstfuzz.errors import DataError

#: Characters of a value that a message shows.
_SHOWN = 40


def parse_json(text: str) -> object:
    """Return the value that a JSON text holds.

    Raises:
        DataError: it is no JSON, is nested too deeply, gives a key two different values, or
            holds a number that JSON does not have; the message says which, and where if known.
    """
    try:
        parsed: object = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise DataError("is nested too deeply to be read") from None
    except ValueError as error:  # Also numbers without end.
        raise DataError(f"is not valid JSON, perhaps cut off: {error}") from None
    return parsed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; of two values for one key it would not be known which is meant."""
    values = dict(pairs)
    if len(values) < len(pairs):
        for key, value in pairs:
            if values[key] != value:
                raise DataError(f"has two values for the key {key[:_SHOWN]!r}: leave one out")
    return values


def _refuse(name: str) -> float:
    raise DataError(f"holds {name}, which is no value in JSON: leave it out, or write null")
