"""Tools in the OpenAI form as the assistant reads them: their words and those of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.models.assistant.words import (
    Array,
    directions,
    folded,
    label_words,
    plain,
    sum_vector,
    tokens,
)

_BOOLEAN: Final = ("True", "False")
_NUMBERS: Final = ("integer", "number")


def _words(text: str) -> list[str]:
    return [token.lower for token in tokens(text) if token.text[:1].isalnum()]


@dataclass(frozen=True)
class Described:
    """Something with a name and a description."""

    name: str
    description: str

    @cached_property
    def label(self) -> list[str]:
        """The words of the name, without its numbers."""
        return [word for word in label_words(self.name) if not word.isdigit()]

    @cached_property
    def about(self) -> list[str]:
        """The words of the description."""
        return _words(self.description)

    @cached_property
    def label_vector(self) -> Array:
        """The direction of the name ``[WIDTH]``."""
        return sum_vector(self.label)

    @cached_property
    def about_vector(self) -> Array:
        """The direction of the description ``[WIDTH]``."""
        return sum_vector(self.about)

    @cached_property
    def label_rows(self) -> Array:
        """The vectors of the words of the name, with their lengths ``[words, WIDTH]``."""
        return _rows(self.label)

    @cached_property
    def about_rows(self) -> Array:
        """The vectors of the words of the description, with their lengths."""
        return _rows(self.about)


def _rows(words: list[str]) -> Array:
    rows, lengths = directions(words)
    return np.asarray(rows * np.minimum(lengths, 1)[:, None], np.float32)


@dataclass(frozen=True)
class Slot(Described):
    """A parameter; the same name, description and values make the same slot in every tool."""

    values: tuple[str, ...]
    #: JSON type of the parameter, ``string`` where none is said.
    kind: str
    #: What stands where nothing is said, as text.
    default: str | None = field(default=None, compare=False)

    @cached_property
    def value_words(self) -> tuple[list[str], ...]:
        """The words of each value."""
        return tuple(label_words(value) or _words(value) for value in self.values)

    @cached_property
    def value_vectors(self) -> Array:
        """The directions of the values ``[values, WIDTH]``."""
        return np.stack([sum_vector(words) for words in self.value_words])

    @cached_property
    def value_rows(self) -> tuple[Array, ...]:
        """The vectors of the words of each value, with their lengths."""
        return tuple(_rows(words) for words in self.value_words)

    @cached_property
    def folded_values(self) -> tuple[str, ...]:
        """The values as they are looked for in texts."""
        return tuple(folded(value.replace("_", " ")) for value in self.values)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words that stand in the values."""
        return frozenset(word for words in self.value_words for word in words if len(word) > 2)

    @cached_property
    def value_tokens(self) -> tuple[tuple[str, ...], ...]:
        """The values as rows of tokens, as they are looked for in texts."""
        return tuple(
            tuple(plain(token.lower) for token in tokens(value.replace("_", " ")))
            for value in self.values
        )

    @property
    def boolean(self) -> bool:
        """Whether it is yes or no."""
        return {value.lower() for value in self.values} == {"true", "false"}

    @property
    def number(self) -> bool:
        """Whether the schema asks for a number."""
        return self.kind in _NUMBERS


@dataclass(frozen=True)
class ToolView(Described):
    """One tool: its parameters in the order of the schema."""

    slots: tuple[Slot, ...]
    #: In the order of the schema: what is missing is asked for in it.
    required: tuple[str, ...]


def read_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[ToolView, ...]:
    """Return the tools of a request; what is no function with a name is left out."""
    found = []
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            found.append(_tool(function))
    return tuple(found)


def _tool(function: Mapping[str, Any]) -> ToolView:
    schema = _mapping(function.get("parameters"))
    properties = _mapping(schema.get("properties"))
    required = schema.get("required")
    slots = tuple(_slot(str(name), _mapping(given)) for name, given in properties.items())
    return ToolView(
        function["name"],
        str(function.get("description") or ""),
        slots,
        tuple(name for name in required if name in properties)
        if isinstance(required, list)
        else (),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _slot(name: str, given: Mapping[str, Any]) -> Slot:
    kind = given.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array" and isinstance(given.get("items"), Mapping):
        values = given["items"].get("enum")
    else:
        values = given.get("enum")
    if kind == "boolean":
        listed: tuple[str, ...] = _BOOLEAN
    else:
        listed = tuple(
            str(value)
            for value in (values if isinstance(values, list) else ())
            if value is not None
        )
    default = given.get("default")
    return Slot(
        name,
        str(given.get("description") or ""),
        listed,
        str(kind),
        None if default is None else str(default),
    )
