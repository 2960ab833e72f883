"""The tools of an assistant in other words: other names and descriptions, the same calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_dstfuzz.dialogue.calls import Tool, ToolCall


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

    @cached_property
    def _names(self) -> dict[str, str]:
        return {tool.name: old for old, tool in self.tools.items()}


def _renamed(call: ToolCall, name: str, arguments: Mapping[str, str]) -> ToolCall:
    """Return a call under another name; arguments inside of others keep theirs."""
    return ToolCall(name, {arguments.get(key, key): value for key, value in call.arguments.items()})
