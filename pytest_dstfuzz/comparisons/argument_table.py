"""Which rule an argument is compared by, and what its tool's schema says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any, Final

from pytest_dstfuzz.comparisons.argument_rules import AUTO, UNKNOWN, ArgumentKind, Rule
from pytest_dstfuzz.dialogue.calls import Tool, canonical

_WILD: Final = frozenset("*?[")
#: Schemas refer to themselves: so deep arguments are looked for.
_DEEPEST: Final = 12


def is_pattern(name: str) -> bool:
    """Whether a name of arguments or slots has wildcards."""
    return bool(_WILD & set(name))


class ArgumentTable:
    """The rules of arguments (or of slots) by pattern, and the schemas of the tools.

    A pattern is ``book_table.people``, ``*.id``, ``book_table.*``: an argument without places in
    lists, or a tool. A name without a wildcard goes before patterns, of which the last counts.
    """

    def __init__(self, rules: Sequence[tuple[str, Rule]] = (), tools: Iterable[Tool] = ()) -> None:
        self.rules = tuple(rules)
        self._tools = tuple(dict.fromkeys(tools))
        self._exact = {pattern: rule for pattern, rule in rules if not is_pattern(pattern)}
        self._patterns = [one for one in reversed(rules) if one[0] not in self._exact]
        self._named = lru_cache(1 << 14)(self._find)

    def named(self, slot: str) -> Rule | None:
        """Return the rule that somebody gave for an argument or a tool; ``None`` = nobody did."""
        return self._named(slot)

    def kind(self, slot: str) -> ArgumentKind:
        """Return what the schema of its tool says of an argument."""
        return self._kinds.get(slot, UNKNOWN)

    def governing(self, tool: str, way: Sequence[str | int]) -> tuple[Rule, int]:
        """Return the rule of an argument, and how many steps of the way lead to what it is of.

        The first rule of the whole on the way, else the last one that is named, else `AUTO`.
        """
        slot, found = tool, (AUTO, len(way))
        for at, step in enumerate(way, start=1):
            if isinstance(step, int):
                continue
            slot = f"{slot}.{step}"
            rule = self.named(slot)
            if rule is None:
                continue
            if rule.whole:
                return rule, at
            found = rule, len(way)
        return found

    def fits(self, pattern: str, slot: str) -> bool:
        """Whether a rule of a pattern may be about an argument, or about what is within it.

        What is within an object of which a schema says nothing is not known.
        """
        inner = pattern.startswith((f"{slot}.", "*"))
        return fnmatchcase(slot, pattern) or (inner and self.kind(slot).type == "object")

    @property
    def slots(self) -> tuple[str, ...]:
        """The tools and their arguments, as far as schemas say them."""
        return tuple(dict.fromkeys([*(tool.name for tool in self._tools), *self._kinds]))

    def _find(self, slot: str) -> Rule | None:
        if slot in self._exact:
            return self._exact[slot]
        return next((rule for name, rule in self._patterns if fnmatchcase(slot, name)), None)

    @cached_property
    def _kinds(self) -> dict[str, ArgumentKind]:
        found: dict[str, ArgumentKind] = {}
        for tool in self._tools:
            schema = tool.schema
            for slot, kind in _kinds(tool.name, schema, schema, _DEEPEST):
                # Two tools of one name that do not agree say nothing.
                found[slot] = kind if found.get(slot, kind) == kind else UNKNOWN
        return found


def _kinds(
    slot: str, schema: Any, root: Mapping[str, Any], depth: int
) -> Iterable[tuple[str, ArgumentKind]]:
    """Yield the arguments below a schema, and their kinds."""
    schema = _plain(schema, root)
    if not isinstance(schema, Mapping) or depth == 0:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        below = f"{slot}.{name}"
        of_elements = _elements(inner, root)
        yield below, _kind(of_elements, inner, root)
        yield from _kinds(below, of_elements, root, depth - 1)
    if "items" in schema:
        yield from _kinds(slot, schema["items"], root, depth - 1)


def _elements(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the schema of a list's elements, else the schema itself."""
    for _ in range(_DEEPEST):
        schema = _plain(schema, root)
        if not isinstance(schema, Mapping) or "items" not in schema:
            break
        schema = schema["items"]
    return schema


def _kind(elements: Any, schema: Any, root: Mapping[str, Any]) -> ArgumentKind:
    plain = _plain(schema, root)
    default = plain.get("default") if isinstance(plain, Mapping) else None
    if isinstance(schema, Mapping) and "default" in schema:
        default = schema["default"]
    if not isinstance(elements, Mapping):
        return ArgumentKind(default=canonical(default))
    kind, form = elements.get("type"), elements.get("format")
    return ArgumentKind(
        kind if isinstance(kind, str) else "",
        form if isinstance(form, str) else "",
        canonical(default),
    )


def _plain(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema without references, and without that it may be null."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        several = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = _at(root, reference)
        elif isinstance(several, Sequence):
            others = [one for one in several if one != {"type": "null"}]
            if len(others) != 1:
                return {}
            (schema,) = others
        elif isinstance(schema.get("type"), list):
            types = [one for one in schema["type"] if one != "null"]
            return {**schema, "type": types[0] if len(types) == 1 else ""}
        else:
            return schema
    return {}


def _at(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
