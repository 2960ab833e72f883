"""The tools of an assistant in other words: other names and descriptions, the same calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, Tool, ToolCall, canonical
from pytest_dstfuzz.dialogue.messages import MessageCall, decoded
from pytest_dstfuzz.dialogue.outcome import Outcome

#: Stands after a name of the data that is called where the tools have others.
OLD_NAME: Final = " (old name)"


@dataclass(frozen=True)
class ToolParaphrase:
    """Tools in other words, by the names of the original ones.

    Tools that it does not have stay as they are, and so do arguments.
    """

    #: Short name for reports: ``v1`` to ``v5`` of SGD-X.
    name: str
    #: Name of the original tool -> the tool in other words.
    tools: Mapping[str, Tool]
    #: Name of the original tool -> name of an argument -> its other name.
    arguments: Mapping[str, Mapping[str, str]]

    def applied(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return tools in the other words, in their order."""
        return tuple(self.tools.get(tool.name, tool) for tool in tools)

    def renamed(self, call: ToolCall) -> ToolCall:
        """Return a call of an original tool as the call of the other one."""
        tool = self.tools.get(call.name)
        return _renamed(call, tool.name if tool else call.name, self.arguments.get(call.name, {}))

    def original(self, call: ToolCall) -> ToolCall:
        """Return a call of a tool in other words as the call of the original one."""
        name = self._names.get(call.name, call.name)
        back = {new: old for old, new in self.arguments.get(name, {}).items()}
        return _renamed(call, name, back if call.name in self._names else {})

    def names(self, tools: Iterable[Tool]) -> tuple[tuple[str, str], ...]:
        """Return the other names of original tools and their arguments, see `Transcript.names`.

        An argument stands under the other names on the one side, under the original ones on the
        other.
        """
        found: list[tuple[str, str]] = []
        for tool in tools:
            if tool.name in self.tools:
                new = self.tools[tool.name].name
                pairs = self.arguments.get(tool.name, {}).items()
                found.append((new, tool.name))
                found += [(f"{new}.{other}", f"{tool.name}.{own}") for own, other in pairs]
        return tuple(found)

    def message(self, recorded: str) -> str:
        """Return a recorded message, in JSON, with its calls and results under the other names."""
        message = decoded(recorded)
        calls = tuple(map(self._renamed_call, message.calls))
        more = message.more
        if message.role == "tool" and more.get("name") in self.tools:
            more = {**more, "name": self.tools[more["name"]].name}
        return replace(message, calls=calls, more=more).encoded()

    def _renamed_call(self, made: MessageCall) -> MessageCall:
        values = made.values
        call = self.renamed(ToolCall(made.name, values or {}))
        # Arguments that are no JSON object stay as they were recorded.
        arguments = made.arguments if values is None else canonical(call.arguments)
        return replace(made, name=call.name, arguments=arguments)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {tool.name: old for old, tool in self.tools.items()}


def _renamed(call: ToolCall, name: str, arguments: Mapping[str, str]) -> ToolCall:
    """Return a call under another name; arguments inside of others keep theirs."""
    return ToolCall(name, {arguments.get(key, key): value for key, value in call.arguments.items()})


def in_own_names(calls: Outcome, names: Iterable[tuple[str, str]]) -> Outcome:
    """Return calls of tools that have other names by those of the data, see `Transcript.names`.

    A name of the data that is called where the tools have another one is no longer that of a tool:
    it is told as ``book_table (old name)``, and so is an argument.

    >>> names = [("reserve", "book"), ("reserve.guests", "book.people")]
    >>> dict(in_own_names(Outcome({"reserve[0]": "call 1", "reserve[0].guests": "2"}), names))
    {'book[0]': 'call 1', 'book[0].people': '2'}
    >>> dict(in_own_names(Outcome({"reserve[0].people": "2"}), names))
    {'book[0].people (old name)': '2'}
    """
    known = dict(names)
    gone = frozenset(known.values()) - known.keys()
    return Outcome({_own_path(path, known, gone): text for path, text in calls.items()})


def _own_path(path: str, known: Mapping[str, str], gone: frozenset[str]) -> str:
    place = AnswerPath.of(path)
    if not place.in_call:
        return path
    if place.tool in gone:
        return str(AnswerPath((place.tool + OLD_NAME, *place[1:])))
    tool = known.get(place.tool, place.tool)
    if place.is_call:
        return str(AnswerPath((tool, place[1])))
    number, first, *rest = place[1:]
    own = known.get(f"{place.tool}.{first}")
    if own is not None:
        first = own.removeprefix(f"{tool}.")
    elif f"{tool}.{first}" in gone:
        first = f"{first}{OLD_NAME}"
    return str(AnswerPath((tool, number, first, *rest)))
