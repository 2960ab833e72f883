"""The list of tools in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.tools.base import (
    MOST,
    NO_TOOLS,
    Told,
    ToolRelation,
    once_each,
    with_tools,
)

ONE_TOOL: Final = "the dialogue has only one tool"


@register_relation
class ToolsOrder(ToolRelation):
    """The calls do not depend on which tool is listed first."""

    name = "tools-order"
    reasons = (NO_TOOLS, ONE_TOOL)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[Told] | str:
        """Return the list the other way round, and drawn orders."""
        if len(clean.tools) < 2:
            return ONE_TOOL
        return once_each(scene, _orders(scene, clean))


def _orders(scene: Scene, clean: Transcript) -> Iterator[Told]:
    yield "the list of tools the other way round", with_tools(clean, clean.tools[::-1])
    for _ in range(MOST):
        order = scene.rng.permutation(len(clean.tools)).tolist()
        told = ", ".join(str(place + 1) for place in order)
        yield (
            f"the tools in the order {told}",
            with_tools(clean, (clean.tools[place] for place in order)),
        )
