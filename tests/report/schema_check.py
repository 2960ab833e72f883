"""As much of JSON Schema as the shipped schema uses; an unknown keyword is an error."""

from __future__ import annotations

from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
NOTES = {"$schema", "$defs", "title", "description"}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """Return what is wrong with ``value``."""
    found: list[str] = []
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            found += problems(value, root["$defs"][wanted.rsplit("/", 1)[1]], root, at)
        elif keyword == "allOf":
            found += [text for part in wanted for text in problems(value, part, root, at)]
        elif keyword in ("properties", "additionalProperties", "required"):
            found += _object(value, keyword, schema, root, at)
        elif keyword == "items":
            for number, item in enumerate(value or ()):
                found += problems(item, wanted, root, f"{at}[{number}]")
        elif keyword not in NOTES and not _holds(value, keyword, wanted):
            found.append(f"{at}: {value!r} breaks {keyword} {wanted!r}")
    return found


def _object(
    value: Any, keyword: str, schema: dict[str, Any], root: dict[str, Any], at: str
) -> list[str]:
    if not isinstance(value, dict):
        return []
    if keyword == "required":
        return [f"{at}: lacks {name}" for name in schema["required"] if name not in value]
    known = schema.get("properties", {})
    return [
        text
        for name, item in value.items()
        if (name in known) == (keyword == "properties")
        for text in problems(
            item, known[name] if name in known else schema[keyword], root, f"{at}.{name}"
        )
    ]


def _holds(value: Any, keyword: str, wanted: Any) -> bool:
    if keyword == "type":
        names = wanted if isinstance(wanted, list) else [wanted]
        # A boolean is an int to Python, but not to JSON.
        return any(
            isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
            for name in names
        )
    if keyword in ("minimum", "maximum"):
        return value is None or (value >= wanted if keyword == "minimum" else value <= wanted)
    if keyword in ("minItems", "maxItems"):
        return value is None or (
            len(value) >= wanted if keyword == "minItems" else len(value) <= wanted
        )
    if keyword in ("enum", "const"):
        return bool(value in wanted if keyword == "enum" else value == wanted)
    raise ValueError(f"the check does not know {keyword}")
