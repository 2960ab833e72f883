"""The value becomes one that another slot of the same type has already."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, DialogueSet
from pytest_dstfuzz.relations.kinds import SlotKind, alike, domain_of
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Delta, Rewrite
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.base import (
    OF_CALLS,
    Made,
    ShouldChange,
    from_sites,
    needs_values,
    tables_of,
)
from pytest_dstfuzz.relations.should_change.sites import REASONS, ValueSite
from pytest_dstfuzz.relations.should_change.value_swap import (
    SPELLED_OTHERWISE,
    admitted,
    is_in_time,
    swapped,
)
from pytest_dstfuzz.relations.values import ValueTable, joined

SAME: Final = "the turn says `same`"
NO_TWIN: Final = "no slot of the same type has another value from an earlier turn"


@register_relation
class ConfusingEntity(ShouldChange):
    """The slot takes the value that another slot has, and that one keeps it."""

    name = "confusing-entity"
    expects = "the slot takes the value of the other slot, which keeps its own"
    reasons = (*REASONS, SAME, NO_TWIN, SPELLED_OTHERWISE, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no two slots are of one type."""
        for table in tables_of(data):
            slots = tuple(table.kinds)
            if any(_is_twin(table, one, other) for one in slots for other in slots):
                return needs_values(self.name, data)
        return "no two slots of the data are of one type"

    def edited(self, scene: Scene) -> Begun:
        """Return a rewrite for each slot that the turn gives and each value to confuse it with."""
        return from_sites(self, scene, _confused)


def _confused(scene: Scene, site: ValueSite) -> Made:
    if any(word.lower == "same" for word in scene.parts.words):
        return SAME
    table = scene.once(ValueTable.of)
    reason = NO_TWIN
    rewrites: dict[str, Rewrite] = {}
    for other, value in scene.before.items():
        taken = value == DONTCARE or joined(value) == joined(site.value) or value in rewrites
        if taken or scene.now.get(other) != value or not _is_twin(table, site.slot, other):
            continue
        usual = site.kind == "time" or value in table.values[site.slot]
        if not usual or not is_in_time(scene, site.slot, value):
            continue
        edits = swapped(scene, site, value, site.kind)
        if edits is None:
            reason = SPELLED_OTHERWISE
            continue
        delta = Delta(site.slot, site.value, admitted(scene, site.slot, value, edits[0].after))
        about = f"{delta}, which {other} has"
        rewrites[value] = scene.rewrite(edits, [delta], about=about)
    return list(rewrites.values()) or reason


_PLACES: Final[frozenset[SlotKind]] = frozenset({"end", "name"})


def _is_twin(table: ValueTable, slot: str, other: str) -> bool:
    """Say whether two slots are of one type, and are not the two ends of one journey."""
    kind, kind_of_other = table.kinds.get(slot), table.kinds.get(other)
    if slot == other or kind is None or kind_of_other is None:
        return False
    places = kind in _PLACES and kind_of_other in _PLACES
    if places and domain_of(slot) == domain_of(other):
        return False
    if kind == kind_of_other == "time":
        return True
    same = places or (kind == kind_of_other and kind != "yes-no")
    return same and alike(table.values[slot], table.values[other])
