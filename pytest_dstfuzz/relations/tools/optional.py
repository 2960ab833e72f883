"""An optional parameter that nobody uses is taken out of a tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.dialogue.calls import Tool, Transcript, call_path, canonical
from pytest_dstfuzz.dialogue.readers.chat_form import arguments_of
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.tools.base import NO_TOOLS, Told, ToolRelation, once_each, with_tools

NONE_SPARE: Final = "no tool has an optional parameter that no call uses"


@register_relation
class ToolsOptional(ToolRelation):
    """The calls stay where a tool lacks a parameter that they do not use."""

    name = "tools-optional"
    reasons = (NO_TOOLS, NONE_SPARE)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[Told] | str:
        """Return the list without one parameter, those of tools that are called first."""
        used = used_parameters(scene, clean)
        spare = [
            (place, name)
            for place, tool in enumerate(clean.tools)
            for name in optional_parameters(tool)
            if f"{tool.name}.{name}" not in used
        ]
        if not spare:
            return NONE_SPARE
        called = {place.tool for path in scene.now if (place := call_path(path))}
        drawn = [spare[at] for at in scene.rng.permutation(len(spare)).tolist()]
        drawn.sort(key=lambda one: clean.tools[one[0]].name not in called)
        return once_each(scene, (_without(clean, *one) for one in drawn))


def optional_parameters(tool: Tool) -> list[str]:
    """Return the parameters that a call may leave out, by the schema."""
    schema = tool.schema
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    names = properties if isinstance(properties, dict) else {}
    return [name for name in names if name not in needed]


def used_parameters(scene: Scene, clean: Transcript) -> frozenset[str]:
    """Return ``tool.parameter`` of those that a call of the dialogue uses, recorded or not."""
    found = set()
    for path in (*scene.now, *(scene.turn.calls or ())):
        place = call_path(path)
        if place is not None and place.argument:
            first = place.argument.partition(".")[0].partition("[")[0]
            found.add(f"{place.tool}.{first}")
    for message in map(json.loads, (one for block in clean.before for one in block or ())):
        for called in message.get("tool_calls") or ():
            function = called["function"]
            arguments = arguments_of(function.get("arguments") or "")
            found.update(f"{function['name']}.{name}" for name in arguments or ())
    return frozenset(found)


def _without(clean: Transcript, at: int, name: str) -> Told:
    tool = clean.tools[at]
    schema = tool.schema
    del schema["properties"][name]
    less = tool._replace(parameters=canonical(schema))
    tools = (less if place == at else other for place, other in enumerate(clean.tools))
    return f"{tool.name} without its optional parameter {name}", with_tools(clean, tools)
