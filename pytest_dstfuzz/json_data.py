"""Conversion of dataclasses to JSON and back, and JSON parsing that rejects duplicate keys."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from textwrap import shorten
from typing import Any, Final, TypeVar

import msgspec

from pytest_dstfuzz.errors import DataError, redact_text

__all__ = [
    "RawJson",
    "from_json",
    "json_decoder",
    "json_encoded",
    "load_json",
    "parse_json",
    "to_json",
]

_Kind = TypeVar("_Kind")
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_LENGTH = re.compile(r"Expected `array` of length (\d+), got (\d+)")
_MISSING = re.compile(r"Object missing required field `(.+?)`")
#: JSON text within an object, decoded later and written unchanged.
RawJson = msgspec.Raw
#: The names of JSON types in messages.
_NAMES = {"str": "text", "array": "list", "int": "whole number", "float": "number"}
_NAMES |= {"string": "text", "integer": "whole number"}  # the names of JSON Schema
_STEP = re.compile(r"([^.\[\]]+)(?!\])|\[(\d+)\]")
_PLACE = re.compile(r" - at `\$\.?(.*)`$")
#: Maximum number of characters that a message shows of a key, and of a value.
_SHOWN, _LONGEST = 40, 200


def to_json(value: object) -> Any:
    """Return a dataclass, or a container of dataclasses, as plain JSON values.

    The fields keep their order. A custom mapping, such as a belief state, becomes a dictionary.
    """
    return _arrays(msgspec.to_builtins(value, enc_hook=_plain))


def from_json(kind: type[_Kind], data: object) -> _Kind:
    """Build an object of type ``kind`` from values of `to_json`. Ignore unknown keys.

    Raises:
        ValueError: the data have another shape; the message names the place.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_built)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error), data)) from None


def json_encoded(value: object) -> bytes:
    """Return the values of `to_json` as compact JSON text. Floats are exact."""
    return msgspec.json.encode(value, enc_hook=_plain)


def json_decoder(kind: type[_Kind]) -> Callable[[bytes | RawJson], _Kind]:
    """Return a decoder for texts that `json_encoded` of this version wrote.

    The decoder raises a ``ValueError`` for any other text.
    """
    decoder = msgspec.json.Decoder(kind, dec_hook=_built)

    def decode(text: bytes | RawJson) -> _Kind:
        try:
            return decoder.decode(text)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None

    return decode


def each_key_once(
    refuse: Callable[[str], Exception],
) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a hook for `json.loads` that rejects conflicting duplicate keys.

    It is used as ``object_pairs_hook``. By default, `json` silently takes the last value.
    ``refuse`` returns the error for a key. Duplicate keys with equal values are no error.
    """

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            seen: dict[str, Any] = {}
            for key, value in pairs:
                if key in seen and seen[key] != value:
                    raise refuse(key)
                seen[key] = value
        return values

    return build


def load_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text as `json.loads` does.

    Raises:
        ValueError: the text is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_ONCE = each_key_once(
    lambda key: DataError(f"has two values for the key {key[:_SHOWN]!r}: leave one out")
)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise DataError(f"contains {text}, which is not a JSON value: leave it out, or write null")
    return number


#: Maximum number of digits of an integer, which is Python's default.
_MOST_DIGITS: Final = 4300
_LONG_NUMBER: Final = re.compile(rf"(?<!\d)\d{{{_MOST_DIGITS + 1},}}(?!\d)")


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, without conflicting duplicate keys, infinity or NaN.

    Raises:
        DataError: the text is invalid. The message continues a sentence that begins with the name
            of the text: "is nested too deeply ...".
    """
    try:
        return json.loads(
            text, object_pairs_hook=_ONCE, parse_constant=_finite, parse_float=_finite
        )
    except RecursionError:
        raise DataError("is nested too deeply to be read") from None
    except ValueError as error:
        if not isinstance(error, json.JSONDecodeError) and (long := _LONG_NUMBER.search(text)):
            raise DataError(
                f"has a number of {len(long.group()):,} digits, and at most {_MOST_DIGITS:,} can "
                "be read: write the number as a text, in quotes"
            ) from None
        raise DataError(f"is not valid JSON, perhaps cut off: {error}") from None


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return [_arrays(item) for item in value] if isinstance(value, list | tuple) else value


def _built(kind: type[Any], data: object) -> object:
    """Build a custom mapping with texts as keys and values, such as a belief state."""
    return kind(msgspec.convert(data, dict[str, str]))


def shorten_value(value: object) -> str:
    """Return the representation of a value for a message, cut if it is long.

    If messages are redacted, it is kept back: the value may be what a user said.
    """
    return redact_text(shorten(reprlib.repr(value), _LONGEST, placeholder="..."))


def _in_words(message: str, data: object) -> str:
    """Return a `msgspec` message in the style of this package: place first, then value.

    >>> _in_words("Expected `int`, got `str` - at `$.edits[0].start`", {"edits": [{"start": "a"}]})
    "edits[0].start: 'a' instead of a whole number"
    >>> _in_words("Object missing required field `id`", {})
    "lacks 'id'"
    """
    found = _PLACE.search(message)
    place = found[1] if found else ""

    def expected(kinds: re.Match[str]) -> str:
        try:
            shown = shorten_value(_at(data, place))
        except (LookupError, TypeError):
            shown = with_article(kinds[2].split(" | "))
        return f"{shown} instead of {with_article(kinds[1].split(' | '))}"

    text = _MISSING.sub(r"lacks '\1'", _PLACE.sub("", message))
    text = _LENGTH.sub(r"a list of \2 instead of one of \1", text)
    text = _EXPECTED.sub(expected, text)
    return f"{place}: {text}" if place else text


def _at(data: Any, place: str) -> object:
    """Return the value at a place such as ``edits[0].start``.

    Raises:
        LookupError: the place contains ``[...]``, which stands for any key of a mapping.
    """
    for name, number in _STEP.findall(place):
        data = data[name] if name else data[int(number)]
    if "[...]" in place:
        raise LookupError(place)
    return data


def with_article(kinds: Iterable[str]) -> str:
    """Return the names of JSON types with articles for a message: ``a text or null``."""
    names = [_NAMES.get(kind, kind) for kind in kinds]
    return " or ".join(
        name if name == "null" else f"{'an' if name[0] in 'aeio' else 'a'} {name}" for name in names
    )
