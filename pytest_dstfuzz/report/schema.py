"""Whether a JSON value is as a schema has it: as much of JSON Schema as the shipped one uses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.json_data import shown_value, with_article

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
#: Keywords that were looked at before, or that only say something about the schema.
_NOTES: Final = frozenset({"$schema", "$defs", "title", "description", "type"})
_STRUCTURE: Final = frozenset({"required", "properties", "additionalProperties", "items"})


class _Check(NamedTuple):
    root: Mapping[str, Any]
    #: Whether keys that are required must be there.
    complete: bool


def problems(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], *, complete: bool = True
) -> list[str]:
    """Return what is wrong with a value of JSON, each with its place; ``root`` has the ``$defs``.

    Where it is not ``complete``, it may lack keys that are required. A keyword of a schema that is
    not known here is a ``ValueError``.
    """
    return list(_problems(value, schema, _Check(root, complete), "$"))


def _at(root: Mapping[str, Any], pointer: str) -> Mapping[str, Any]:
    """Return the part of a schema that a reference such as ``#/$defs/summary`` names."""
    found = root
    for name in pointer.removeprefix("#/").split("/"):
        found = found[name]
    return found


def _problems(value: Any, schema: Mapping[str, Any], check: _Check, at: str) -> Iterator[str]:
    wanted = schema.get("type", ())
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if kinds and not _is_of(value, kinds):
        # All else in the schema is about values of the type.
        yield f"{at}: {shown_value(value)} where {with_article(kinds)} is expected"
        return
    for keyword, rule in schema.items():
        if keyword == "$ref":
            yield from _problems(value, _at(check.root, rule), check, at)
        elif keyword == "allOf":
            for part in rule:
                yield from _problems(value, part, check, at)
        elif keyword in _STRUCTURE:
            yield from _inside(value, keyword, schema, check, at)
        elif keyword not in _NOTES and not _holds(value, keyword, rule):
            yield f"{at}: {shown_value(value)} breaks {keyword} {rule!r}"


def _inside(
    value: Any, keyword: str, schema: Mapping[str, Any], check: _Check, at: str
) -> Iterator[str]:
    """Yield what is wrong with the keys of an object, or the items of an array."""
    rule = schema[keyword]
    if keyword == "items" and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, rule, check, f"{at}[{number}]")
    elif keyword == "required" and isinstance(value, dict) and check.complete:
        yield from (f"{at}: lacks {name}" for name in rule if name not in value)
    elif keyword in ("properties", "additionalProperties") and isinstance(value, dict):
        known = schema.get("properties", {})
        for name, item in value.items():
            if (name in known) == (keyword == "properties"):
                of = known.get(name, rule)
                yield from _problems(item, of, check, f"{at}.{name}")


def _is_of(value: Any, names: Sequence[str]) -> bool:
    if isinstance(value, bool):
        # A boolean is an int to Python, but not to JSON.
        return "boolean" in names
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return any(isinstance(value, _TYPES[name]) for name in names)


def _holds(value: Any, keyword: str, rule: Any) -> bool:
    if keyword in ("minimum", "maximum"):
        return value is None or (value >= rule if keyword == "minimum" else value <= rule)
    if keyword in ("minItems", "maxItems"):
        length = None if value is None else len(value)
        return _holds(length, "minimum" if keyword == "minItems" else "maximum", rule)
    if keyword in ("enum", "const"):
        allowed = rule if keyword == "enum" else [rule]
        return any(value == one and type(value) is type(one) for one in allowed)
    raise ValueError(f"the check does not know {keyword}")
