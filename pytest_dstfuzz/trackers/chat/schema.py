"""How an answer may be asked for: by a JSON Schema, as any JSON object, or in words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """One way to ask for JSON: what goes into a request under ``response_format``."""

    name: str
    #: ``None`` = the prompt alone asks for JSON.
    response_format: dict[str, Any] | None


def state_schema(slots: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of a belief state, as the strict mode of OpenAI's API wants it.

    There every property is required and no other is allowed, so a slot that was not mentioned
    is null. Values are free: a tracker may name a restaurant that no ontology lists.
    """
    return {
        "type": "object",
        "properties": {slot: {"type": ["string", "null"]} for slot in slots},
        "required": list(slots),
        "additionalProperties": False,
    }


def answer_formats(slots: Sequence[str]) -> tuple[AnswerFormat, ...]:
    """Return the ways to ask for a belief state, the strictest first.

    Args:
        slots: of the data; where none are known there is no schema to ask for.
    """
    schema = {"name": "belief_state", "strict": True, "schema": state_schema(slots)}
    by_schema = AnswerFormat("json_schema", {"type": "json_schema", "json_schema": schema})
    by_words = AnswerFormat("json_object", {"type": "json_object"}), AnswerFormat("prompt", None)
    return (by_schema, *by_words) if slots else by_words
