"""Whether a JSON value is as a JSON Schema has it, in the words of our other messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_dstfuzz.json_data import shown_value, with_article


def problems(value: Any, schema: Mapping[str, Any], *, complete: bool = True) -> list[str]:
    """Return what is wrong with a value of JSON, each problem with its place.

    If it need not be ``complete``, it may lack keys that are required.
    """
    # Only a file that is read is checked.
    import jsonschema_rs  # noqa: PLC0415

    validator = jsonschema_rs.validator_for(dict(schema))
    try:
        errors = list(validator.iter_errors(value))
    except UnicodeEncodeError:
        # A lone surrogate, which only Python takes for a character.
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        errors = list(validator.iter_errors(json.loads(text)))
    return [_message(error) for error in errors if complete or error.kind.name != "required"]


def _message(error: Any) -> str:
    place = "".join(
        f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.instance_path
    )
    rule, limit, value = error.kind.name, error.kind.value, error.instance
    if rule == "required":
        return f"${place}: lacks {limit}"
    if rule == "type":
        return f"${place}: {shown_value(value)} where {with_article(limit)} is expected"
    return f"${place}: {shown_value(value)} breaks {rule} {limit!r}"
