"""Tools in other words, as a user writes them: a JSON list of paraphrases.

::

    [{"name": "plain words",
      "tools": {"book_table": {"name": "reserve", "description": "Keeps a table.",
                               "parameters": {"people": {"name": "guests"}, "day": "date"}}}}]

What is left out stays as it is, and a text in the place of an object is a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool, canonical
from pytest_dstfuzz.dialogue.readers.source import SourceFile, checked
from pytest_dstfuzz.dialogue.renaming import ToolParaphrase
from pytest_dstfuzz.errors import DataError, nearest

#: A paraphrase, for messages.
_FORM: Final = '[{"name": "...", "tools": {"book_table": {"name": "reserve", "parameters": {}}}}]'


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
    """Return the paraphrases of a file for the tools of the data.

    A `DataError` names the first tool or parameter that there is not, and the nearest one, and
    names that two of them would have.
    """
    parsed = file.json()
    if not isinstance(parsed, list):
        raise DataError(f"{file.place} is no list of paraphrases: {_FORM}")
    entries = checked(list[_WordsOfTools], parsed, file.place)
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
        tools[old], arguments[old] = _tool(known[old], words, f"{where}.{old}")
    names = [tools.get(old, tool).name for old, tool in known.items()]
    _refuse_twice("tools", names, place)
    return ToolParaphrase(name, tools, arguments)


def _tool(tool: Tool, words: _OfTool, place: str) -> tuple[Tool, dict[str, str]]:
    """Return a tool in other words, and the other names of all of its arguments."""
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
    close = nearest(name, known)
    hint = f"; did you mean {close!r}?" if close else ""
    return DataError(f"{place}: there is no {kind} {name!r} in the data{hint}")


def _refuse_twice(kind: str, names: list[str], place: str) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{place}: two {kind} would be called {twice!r}")
