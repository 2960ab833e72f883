"""What all relations share under which the state must change: they edit the turn themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Rewrite, Side
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import ValueSite, sites_of
from pytest_dstfuzz.relations.values import ValueTable

#: Rewrites of one slot, or why there are none.
Made = Sequence[Rewrite] | str


class ShouldChange(Relation):
    """A relation that edits what the user says and states what becomes of which slot.

    It writes ``name``, ``expects``, ``reasons`` and `begin`.
    """

    edits: ClassVar[Literal["search", "own"]] = "own"
    side: ClassVar[Side] = "should-change"


def from_sites(
    relation: ShouldChange, scene: Scene, make: Callable[[Scene, ValueSite], Made]
) -> Begun:
    """Return the rewrites that ``make`` writes for the sites of a turn.

    Where there are none, the turn is counted with the reason of the slot that got furthest.
    """
    sites = sites_of(scene)
    if not sites.found:
        return Inapplicable(sites.reason)
    made = [make(scene, site) for site in sites.found]
    rewrites = [rewrite for one in made if not isinstance(one, str) for rewrite in one]
    if rewrites:
        return rewrites
    return Inapplicable(max((r for r in made if isinstance(r, str)), key=relation.reasons.index))


def needs_values(relation: str, data: DialogueSet) -> str:
    """Say why no turn can satisfy a relation that puts in other values; ``""`` = some may."""
    table = ValueTable.of(data)
    if any(len(found) > 1 for found in table.values.values()):
        return ""
    return (
        f"{relation} needs other values of a slot, and the data has neither an ontology nor labels "
        "with two values of one slot"
    )
