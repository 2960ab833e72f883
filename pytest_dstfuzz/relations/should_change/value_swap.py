"""Another value of a slot in the place of the one that the user says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.relations.kinds import domain_of, moment_of
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import (
    OF_CALLS,
    Made,
    ShouldChange,
    from_sites,
    needs_values,
    some,
)
from pytest_dstfuzz.relations.should_change.sites import (
    REASONS,
    ValueSite,
    said_so_far,
    spoken,
)
from pytest_dstfuzz.relations.values import ValueTable, article_before, plural_of, written

SPELLED_OTHERWISE: Final = "the value is spelled in a way that others cannot take"
NO_OTHER: Final = "no other value of the slot is known that was not said yet"

#: Values tried of one slot.
_VALUES: Final = 8


def swapped(scene: Scene, site: ValueSite, value: str, operator: str) -> list[Replacement] | None:
    """Return what puts another value in the place of a mention, as the old one is written.

    The article before it becomes the one that the new value takes. ``None`` where the old one is
    spelled in a way that the new one cannot have.
    """
    # A word of a choice has the capitals of the one before: `a drama`, and not `a Drama`.
    lower = site.kind == "choice" and site.surface.islower() and "@" not in value
    new: str | None = value if lower else scene.worded(site.slot, value)
    if site.mention.spelled == "other" and not _is_same_form(scene, site):
        plural = plural_of(site.value) == site.surface.lower()
        new = plural_of(value) if plural and plural_of(site.value) != site.value else None
    text = new and written(site.kind, new, site.surface)
    if not text:
        return None
    start, end = site.mention.start, site.mention.end
    before = scene.parts.words[site.mention.first - 1] if site.mention.first else None
    if before is None or not scene.turn.user[before.end : start].isspace():
        return [Replacement(start, end, text, operator)]
    if text.lower().startswith("the "):
        if before.lower in {"a", "an"}:
            return None
        text = text[4:] if before.lower == "the" else text
    edits = [Replacement(start, end, text, operator)]
    right = article_before(text)
    if before.lower in {"a", "an"} and before.lower != right:
        right = right.capitalize() if before.text[0].isupper() else right
        edits.append(Replacement(before.start, before.end, right, "article"))
    return edits


def _is_same_form(scene: Scene, site: ValueSite) -> bool:
    """Say whether a mention is its value in a spelling of its own, but no form of it."""
    surface = site.surface.lower()
    typed = normalise_value(site.slot, surface, scene.data.normalisation)
    return typed == site.value and surface.endswith("s") == site.value.endswith("s")


def admitted(scene: Scene, slot: str, value: str, surface: str) -> Admissible:
    """Return a value and the form that its spelling in the text has, where that is another."""
    typed = normalise_value(slot, surface.lower(), scene.data.normalisation)
    return Admissible(tuple(dict.fromkeys((value, typed or value))))


def unsaid(scene: Scene, slot: str, old: str) -> Iterator[str]:
    """Yield the other values of a slot that nobody said yet, in a seeded order.

    Nobody arrives before they leave.
    """
    others = scene.once(ValueTable.of).others(slot, old)
    texts = [spoken(text) for text in dict.fromkeys(said_so_far(scene))]
    for place in scene.rng.permutation(len(others)):
        value = others[place]
        if is_in_time(scene, slot, value) and not any(text.mentions(value) for text in texts):
            yield value


def is_in_time(scene: Scene, slot: str, value: str) -> bool:
    """Say whether a time of leaving is before that of arriving, where the state has both."""
    moment = moment_of(slot)
    if not moment or scene.once(ValueTable.of).kinds.get(slot) != "time":
        return True
    for other, time in scene.now.items():
        if domain_of(other) == domain_of(slot) and {moment, moment_of(other)} == _MOMENTS:
            return value < time if moment == "leave" else time < value
    return True


_MOMENTS: Final = {"leave", "arrive"}


@register_relation
class ValueSwap(ShouldChange):
    """The slot takes the new value, and nothing else happens."""

    name = "value-swap"
    expects = "the slot takes the new value, and all others stay"
    reasons = (*REASONS, SPELLED_OTHERWISE, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no slot has two known values."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> Begun:
        """Return up to 8 rewrites for each slot that the turn gives."""
        return from_sites(self, scene, _swaps)


def _swaps(scene: Scene, site: ValueSite) -> Made:
    return some(islice(_swapped(scene, site), _VALUES)) or why_none(scene, site)


def _swapped(scene: Scene, site: ValueSite) -> Iterator[Rewrite]:
    for value in unsaid(scene, site.slot, site.value):
        edits = swapped(scene, site, value, site.kind)
        if edits is not None:
            after = admitted(scene, site.slot, value, edits[0].after)
            yield scene.rewrite(edits, [Delta(site.slot, site.value, after)])


def why_none(scene: Scene, site: ValueSite) -> str:
    """Return why no other value can be written where one is said."""
    values = unsaid(scene, site.slot, site.value)
    untaken = any(swapped(scene, site, value, site.kind) is None for value in values)
    return SPELLED_OTHERWISE if untaken else NO_OTHER
