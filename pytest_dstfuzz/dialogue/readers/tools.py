"""Readers for lists of tools in all published forms, and for paraphrases of tools.

A tool has a name and a JSON schema, in one of four forms. OpenAI's chat form is ``{"type":
"function", "function": {"name": ..., "parameters": ...}}``, or the function alone. Anthropic's form
has ``input_schema``, and MCP's form has ``inputSchema``.

Users write paraphrases of tools as a JSON list::

    [{"name": "plain words",
      "tools": {"book_table": {"name": "reserve", "description": "Keeps a table.",
                               "parameters": {"people": {"name": "guests"}, "day": "date"}}}}]

Missing keys leave the original unchanged. A text instead of an object is a new name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool, canonical
from pytest_dstfuzz.dialogue.dialogues import ToolParaphrase
from pytest_dstfuzz.dialogue.readers.source import HALF, SURROGATE, SourceFile, convert_checked
from pytest_dstfuzz.errors import DataError, did_you_mean
from pytest_dstfuzz.json_data import parse_json, shorten_value

#: An example of a tool, for error messages.
TOOL_FORM: Final = (
    '{"type": "function", "function": {"name": "book", "description": "...", "parameters": '
    '{"type": "object", "properties": {"people": {"type": "integer"}}}}}'
)
#: Keys for the schema of the arguments in the different forms.
_SCHEMAS: Final = (
    *("parameters", "input_schema", "inputSchema", "parametersJsonSchema"),
    "parameters_json_schema",
)


def read_tools(given: object, place: str) -> tuple[Tool, ...]:
    """Return the tools in a list of any form, given as JSON or as text.

    Raises:
        DataError: If a tool has no name, two tools share a name, or a schema is not an object. The
            message begins with ``place``.
    """
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except DataError as error:
            raise DataError(f"{place} {error}; expected a list of tools") from None
    for key in ("result", "tools"):  # A response to MCP's tools/list, with or without envelope.
        if isinstance(given, Mapping) and key in given:
            place, given = f"{place}: {key}", given[key]
    if not isinstance(given, list):
        raise DataError(
            f"{place}: {shorten_value(given)} instead of a list of tools, [{TOOL_FORM}]"
        )
    tools: dict[str, Tool] = {}
    for number, raw in enumerate(given):
        where = f"{place}[{number}]"
        tool = _tool(raw, where)
        if tool.name in tools:
            raise DataError(f"{where}: there is already a tool {tool.name!r}; remove one")
        tools[tool.name] = tool
    return _shared(tuple(tools.values()))


@lru_cache(maxsize=1024)
def _shared(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return equal tools as one object, because each line of a file repeats them."""
    return tools


def _tool(raw: object, where: str) -> Tool:
    if not isinstance(raw, Mapping):
        raise DataError(f"{where}: {shorten_value(raw)} instead of a tool, {TOOL_FORM}")
    inner = raw.get("function", raw)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise DataError(f"{where} has no 'name', which must be a text; expected {TOOL_FORM}")
    name = inner["name"]
    if not name.strip():
        raise DataError(f"{where} has an empty 'name'; expected {TOOL_FORM}")
    description = inner.get("description") or ""
    if not isinstance(description, str):
        shown = shorten_value(description)
        raise DataError(f"{where} ({name}): description: {shown} instead of a text")
    schema = canonical(_schema(inner, f"{where} ({name})"))
    if SURROGATE.search(f"{name}{description}{schema}"):
        raise DataError(f"{where} contains {HALF}")
    hints = raw.get("annotations")
    reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
    return Tool(name, description, schema, reads)


def _schema(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    key = next((key for key in _SCHEMAS if tool.get(key) is not None), None)
    schema: object = {} if key is None else tool[key]
    if not isinstance(schema, dict):
        raise DataError(
            f"{where}: {key}: {shorten_value(schema)} instead of the JSON schema of the arguments, "
            'such as {"type": "object", "properties": {"people": {"type": "integer"}}}'
        )
    _check(schema, f"{where}: {key}")
    return schema


def _check(schema: Mapping[str, Any], where: str) -> None:
    """Reject a schema if its arguments or values cannot be listed. Ignore other errors."""
    properties, items = schema.get("properties") or {}, schema.get("items")
    if not isinstance(properties, dict):
        raise DataError(
            f"{where}.properties: {shorten_value(properties)} instead of an object with a schema "
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
                f"{place}: {shorten_value(one)} instead of a JSON schema, such as "
                '{"type": "string"}'
            )
    if not isinstance(schema.get("enum", []), list):
        shown = shorten_value(schema["enum"])
        raise DataError(f"{where}.enum: {shown} instead of a list of values")


def enum_members(tool: Tool) -> Iterator[tuple[str, object]]:
    """Yield each argument of a tool with each enum member, also for items of lists.

    Arguments have the names of `AnswerPath.argument`, without indices of lists: ``guests.kind``.
    An argument without items or nested arguments is also yielded once with ``None``.
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


#: An example of a paraphrase, for error messages.
_WORDS_FORM: Final = (
    '[{"name": "...", "tools": {"book_table": {"name": "reserve", "parameters": {}}}}]'
)


class _OfParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    description: str | None = None


class _OfTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    description: str | None = None
    parameters: dict[str, _OfParameter | str] = {}


class _WordsOfTools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tools: dict[str, _OfTool | str]
    name: str = ""


def read_tool_words(file: SourceFile, tools: Iterable[Tool]) -> tuple[ToolParaphrase, ...]:
    """Return the paraphrases in a file for the tools of the data.

    Raises:
        DataError: If a tool or parameter is unknown, or two of them would have the same name. The
            message names the first wrong name.
    """
    parsed = file.json()
    if not isinstance(parsed, list):
        raise DataError(f"{file.place} is not a list of paraphrases; expected {_WORDS_FORM}")
    entries = convert_checked(list[_WordsOfTools], parsed, file.place)
    known = {tool.name: tool for tool in tools}
    return tuple(
        _paraphrase(entry, known, entry.name or f"paraphrase {place + 1}", f"{file.place}[{place}]")
        for place, entry in enumerate(entries)
    )


def _paraphrase(
    entry: _WordsOfTools, known: Mapping[str, Tool], name: str, place: str
) -> ToolParaphrase:
    tools: dict[str, Tool] = {}
    arguments: dict[str, dict[str, str]] = {}
    for old, given in entry.tools.items():
        where = f"{place}: tools"
        if old not in known:
            raise _unknown("tool", old, known, where)
        words = _OfTool(name=given) if isinstance(given, str) else given
        tools[old], arguments[old] = _reworded(known[old], words, f"{where}.{old}")
    names = [tools.get(old, tool).name for old, tool in known.items()]
    _refuse_twice("tools", names, place)
    return ToolParaphrase(name, tools, arguments)


def _reworded(tool: Tool, words: _OfTool, place: str) -> tuple[Tool, dict[str, str]]:
    """Return a paraphrased tool, and the new name of each of its arguments."""
    schema = tool.schema
    properties: dict[str, Any] = schema.get("properties") or {}
    own = {
        old: _OfParameter(name=given) if isinstance(given, str) else given
        for old, given in words.parameters.items()
    }
    for old in own:
        if old not in properties:
            raise _unknown("parameter", old, properties, f"{place}.parameters")
    names = {old: own.get(old, _OfParameter()).name or old for old in properties}
    _refuse_twice("parameters", list(names.values()), place)
    for old, given in own.items():
        if given.description is not None:
            properties[old] = {**properties[old], "description": given.description}
    if properties:
        schema["properties"] = {names[old]: inner for old, inner in properties.items()}
    if "required" in schema:
        schema["required"] = [names.get(old, old) for old in schema["required"]]
    described = tool.description if words.description is None else words.description
    return Tool(words.name or tool.name, described, canonical(schema)), names


def _unknown(kind: str, name: str, known: Iterable[str], place: str) -> DataError:
    hint = did_you_mean(name, known, inside=True)
    return DataError(f"{place}: there is no {kind} {name!r} in the data{hint}")


def _refuse_twice(kind: str, names: list[str], place: str) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{place}: two {kind} would have the name {twice!r}")
