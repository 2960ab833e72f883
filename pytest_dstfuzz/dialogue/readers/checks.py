"""JSON that says one thing, and checks of it that say which field of which file is wrong."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping
from typing import Final, cast

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import each_key_once

#: Characters of a value that a message shows.
_SHOWN = 40


def parse_json(text: str) -> object:
    """Return the value that a JSON text holds.

    Raises:
        DataError: it is no JSON, is nested too deeply, gives a key two different values, or
            holds a number that JSON does not have; the message says which, and where if known.
    """
    try:
        parsed: object = json.loads(text, object_pairs_hook=_ONCE, parse_constant=_refuse)
    except RecursionError:
        raise DataError("is nested too deeply to be read") from None
    except ValueError as error:  # Also numbers without end.
        raise DataError(f"is not valid JSON, perhaps cut off: {error}") from None
    return parsed


_ONCE = each_key_once(
    lambda key: DataError(f"has two values for the key {key[:_SHOWN]!r}: leave one out")
)


def _refuse(name: str) -> float:
    raise DataError(f"holds {name}, which is no value in JSON: leave it out, or write null")


_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def as_object(value: object, place: str, field: str) -> dict[str, object]:
    """Return ``value`` as a JSON object, or raise ``DataError`` naming ``field``."""
    if not isinstance(value, dict):
        raise _wrong(value, place, field, "an object")
    return cast("dict[str, object]", value)


def as_list(value: object, place: str, field: str) -> list[object]:
    """Return ``value`` as a list, or raise ``DataError`` naming ``field``."""
    if not isinstance(value, list):
        raise _wrong(value, place, field, "a list")
    return cast("list[object]", value)


def as_text(value: object, place: str, field: str) -> str:
    """Return ``value`` as a string, or raise ``DataError`` naming ``field``."""
    if not isinstance(value, str):
        raise _wrong(value, place, field, "a string")
    if not value.isascii() and _SURROGATE.search(value):
        raise DataError(
            f"{place}: {field} holds half of a character (a lone surrogate), which no text may"
        )
    return value


def as_state(
    values: Mapping[str, object], place: str, field: str, normalisation: str
) -> BeliefState:
    """Return the normalised state, or raise ``DataError`` naming ``field``."""
    for slot, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(f"{place}: {field}: the value of slot {slot!r} is no number ({value})")
    try:
        return normalise_state(values, normalisation)
    except DataError as error:
        raise DataError(f"{place}: {field}: {error}") from None


def strip_json(dialogue_id: str) -> str:
    """Return a dialogue id without the ``.json`` that MultiWOZ writes behind it."""
    return dialogue_id.removesuffix(".json")


def _wrong(value: object, place: str, field: str, expected: str) -> DataError:
    # Not repr: of what is nested deeply it fails.
    found = "nothing" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"
    return DataError(f"{place}: {field} must be {expected}, found {found}")
