"""The user corrects themselves at once: ``on friday, no, sunday``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Delta, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import (
    OF_CALLS,
    Made,
    ShouldChange,
    from_sites,
    needs_values,
    some,
)
from pytest_dstfuzz.relations.should_change.sites import REASONS, ValueSite
from pytest_dstfuzz.relations.should_change.value_swap import (
    NO_OTHER,
    SPELLED_OTHERWISE,
    admitted,
    swapped,
    unsaid,
    why_none,
)

TOO_LONG: Final = "a value of several words is not corrected in passing"

#: Values tried of one slot.
_VALUES: Final = 4


@register_relation
class Repair(ShouldChange):
    """The slot has the value that is said last."""

    name = "repair"
    expects = "the slot has the value that the user corrects themselves to, and all others stay"
    reasons = (*REASONS, TOO_LONG, SPELLED_OTHERWISE, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no slot has two known values."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> Begun:
        """Return up to 4 rewrites for each slot that the turn gives."""
        return from_sites(self, scene, _repaired)


def _repaired(scene: Scene, site: ValueSite) -> Made:
    if site.mention.first != site.mention.last and site.kind != "time":
        return TOO_LONG
    return some(islice(_repairs(scene, site), _VALUES)) or why_none(scene, site)


def _repairs(scene: Scene, site: ValueSite) -> Iterator[Rewrite]:
    for value in unsaid(scene, site.slot, site.value):
        edits = swapped(scene, site, value, "repair")
        if edits and (" " not in edits[0].after or site.kind == "time"):
            new = edits[0].after
            delta = Delta(site.slot, site.value, admitted(scene, site.slot, value, new))
            added = Replacement(site.mention.end, site.mention.end, f", no, {new}", "repair")
            yield scene.rewrite([added], [delta])
