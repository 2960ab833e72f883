"""An optional parameter that nobody uses is taken out of a tool."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from pytest_dstfuzz.dialogue.call_values import recorded, unread_tools
from pytest_dstfuzz.dialogue.calls import AnswerPath, Tool, Transcript, calls_outcome, canonical
from pytest_dstfuzz.dialogue.outcome import Outcome
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
        used, unread = used_parameters(scene), unread_tools(scene.dialogue)
        spare = [
            (place, name)
            for place, tool in enumerate(clean.tools)
            if tool.name not in unread
            for name in optional_parameters(tool)
            if f"{tool.name}.{name}" not in used
        ]
        if not spare:
            return NONE_SPARE
        called = {place.tool for path in scene.now if (place := AnswerPath.of(path)).in_call}
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


def used_parameters(scene: Scene) -> frozenset[str]:
    """Return ``tool.parameter`` of those that the clean answer or any recorded call uses.

    Calls of later turns count: an assistant may make them as soon as it is told enough.
    """
    dialogue = scene.dialogue
    made = [turn.calls or Outcome() for turn in dialogue.turns]
    made += (calls_outcome([call]) for call in recorded(dialogue))
    found = set()
    for path in chain(scene.now, *made):
        place = AnswerPath.of(path)
        if place.in_call and not place.is_call:
            found.add(f"{place.tool}.{place[2]}")
    return frozenset(found)


def _without(clean: Transcript, at: int, name: str) -> Told:
    tool = clean.tools[at]
    schema = tool.schema
    del schema["properties"][name]
    less = tool._replace(parameters=canonical(schema))
    tools = (less if place == at else other for place, other in enumerate(clean.tools))
    return f"{tool.name} without its optional parameter {name}", with_tools(clean, tools)
