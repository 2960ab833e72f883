"""Checks of JSON that say which field of which file is wrong."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Final, cast

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import DataError

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
