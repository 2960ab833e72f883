"""Lists of tools in the forms in which they are published: a name and a JSON schema each.

OpenAI's chat form (``{"type": "function", "function": {"name": ..., "parameters": ...}}``), a
function alone (``{"name": ..., "parameters": ...}``), Anthropic's (``input_schema``) and MCP's
(``inputSchema``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pytest_dstfuzz.dialogue.calls import Tool, canonical
from pytest_dstfuzz.dialogue.readers.source import HALF, SURROGATE
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json, shown_value

#: What a tool looks like, for messages.
TOOL_FORM: Final = (
    '{"type": "function", "function": {"name": "book", "description": "...", "parameters": '
    '{"type": "object", "properties": {"people": {"type": "integer"}}}}}'
)
#: Keys under which the forms have the schema of the arguments.
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")


def read_tools(given: object, place: str) -> tuple[Tool, ...]:
    """Return the tools of a list in any of the forms, or of the text of one.

    ``place`` begins the message of a `DataError`: a tool without a name, two of one name, a schema
    that is no object.
    """
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except DataError as error:
            raise DataError(f"{place} {error}; expected a list of tools") from None
    for key in ("result", "tools"):  # The answer of MCP's tools/list, with its envelope or not.
        if isinstance(given, Mapping) and key in given:
            place, given = f"{place}: {key}", given[key]
    if not isinstance(given, list):
        raise DataError(
            f"{place}: {shown_value(given)} where a list of tools is expected, [{TOOL_FORM}]"
        )
    tools: dict[str, Tool] = {}
    for number, raw in enumerate(given):
        where = f"{place}[{number}]"
        tool = _tool(raw, where)
        if tool.name in tools:
            raise DataError(f"{where}: there is a tool {tool.name!r} already; leave one out")
        tools[tool.name] = tool
    return _shared(tuple(tools.values()))


@lru_cache(maxsize=1024)
def _shared(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return equal tools as one object: each line of a file has them again."""
    return tools


def _tool(raw: object, where: str) -> Tool:
    if not isinstance(raw, Mapping):
        raise DataError(
            f"{where}: {shown_value(raw)} where a tool is expected, in the form {TOOL_FORM}"
        )
    inner = raw.get("function", raw)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise DataError(f"{where} has no 'name' that is a text; expected {TOOL_FORM}")
    name = inner["name"]
    if not name.strip():
        raise DataError(f"{where} has an empty 'name'; expected {TOOL_FORM}")
    description = inner.get("description") or ""
    if not isinstance(description, str):
        shown = shown_value(description)
        raise DataError(f"{where} ({name}): description: {shown} where a text is expected")
    schema = canonical(_schema(inner, f"{where} ({name})"))
    if SURROGATE.search(f"{name}{description}{schema}"):
        raise DataError(f"{where} holds {HALF}")
    hints = raw.get("annotations")
    reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
    return Tool(name, description, schema, reads)


def _schema(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    key = next((key for key in _SCHEMAS if tool.get(key) is not None), None)
    schema: object = {} if key is None else tool[key]
    if not isinstance(schema, dict):
        raise DataError(
            f"{where}: {key}: {shown_value(schema)} where the JSON schema of the arguments is "
            'expected, such as {"type": "object", "properties": {"people": {"type": "integer"}}}'
        )
    _check(schema, f"{where}: {key}")
    return schema


def _check(schema: Mapping[str, Any], where: str) -> None:
    """Refuse a schema whose arguments or values cannot be listed; all else is passed on."""
    properties, items = schema.get("properties") or {}, schema.get("items")
    if not isinstance(properties, dict):
        raise DataError(
            f"{where}.properties: {shown_value(properties)} where an object is expected: a schema "
            "for the name of each argument"
        )
    inner = {f"{where}.properties.{name}": one for name, one in properties.items()}
    if items is not None and not isinstance(items, list):
        inner[f"{where}.items"] = items
    for place, one in inner.items():
        if isinstance(one, dict):
            _check(one, place)
        elif not isinstance(one, bool):
            raise DataError(
                f"{place}: {shown_value(one)} where a JSON schema is expected, such as "
                '{"type": "string"}'
            )
    if not isinstance(schema.get("enum", []), list):
        shown = shown_value(schema["enum"])
        raise DataError(f"{where}.enum: {shown} where a list of values is expected")


def enum_members(tool: Tool) -> Iterator[tuple[str, object]]:
    """Yield each argument of a tool with each member of its enum; those of lists likewise.

    Arguments are called as `CallPath.argument` calls them, without places in lists:
    ``guests.kind``. An argument whose schema lists no values comes once, with ``None``.
    """
    yield from _members(tool.schema, "")


def _members(schema: object, path: str) -> Iterator[tuple[str, object]]:
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        yield from _members(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from _members(schema["items"], path)
    elif path and not properties:
        yield path, None
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    for value in listed if isinstance(listed, list) else ():
        yield path, value
