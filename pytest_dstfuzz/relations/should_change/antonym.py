"""A word becomes its opposite where a rule says what follows: ``with`` to ``without``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.words import match_case
from pytest_dstfuzz.relations.clauses import sentence_of
from pytest_dstfuzz.relations.kinds import REFUSED
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import OF_CALLS, ShouldChange, tables_of
from pytest_dstfuzz.relations.should_change.flags import (
    FlagSite,
    asked_for,
    flags_of,
)
from pytest_dstfuzz.relations.should_change.sites import REASONS
from pytest_dstfuzz.relations.values import ValueTable

NO_RULE: Final = "no rule for any word of it"
NO_FLAG: Final = "no slot of the data is a yes/no slot"

#: Opposites that turn the slot, in WordNet 3.0 or, of `offer` and `provide`, by these rules alone.
_OPPOSITES: Final[Mapping[str, str]] = {
    "with": "without",
    "include": "exclude",
    "includes": "excludes",
    "including": "excluding",
    "have": "lack",
    "has": "lacks",
    "having": "lacking",
    "offers": "lacks",
    "offering": "lacking",
    "provides": "lacks",
    "providing": "lacking",
}
#: Before a verb: it is asked, or left open, whether there is something.
_ASKING: Final = frozenset({"if", "whether", "do", "does", "did"})
#: Before `have`: it is the place that has something.
_HOLDERS: Final = frozenset({"it", "that", "which", "should", "must", "place", "one", "places"})
#: What may stand between such a word and the name of the slot.
_BETWEEN: Final = frozenset({"a", "an", "the", "some", "any", "on", "site"})


@register_relation
class Antonym(ShouldChange):
    """What a yes/no slot stands for is not wanted any more."""

    name = "antonym"
    expects = "the yes/no slot is no, dontcare or empty, and all others stay"
    reasons = (*REASONS, NO_RULE, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no slot is a yes/no slot."""
        flags = any("yes-no" in table.kinds.values() for table in tables_of(data))
        return "" if flags else NO_FLAG

    def edited(self, scene: Scene) -> Begun:
        """Return a rewrite for each yes/no slot with a word before it that has an opposite."""
        flags = flags_of(scene)
        rewrites = [
            scene.rewrite([edit], [site.unwanted])
            for site in flags.found
            if (edit := _opposite(scene, site))
        ]
        if rewrites:
            return rewrites
        reasons = (REASONS[0], *flags.reasons, *(NO_RULE for _ in flags.found))
        return Inapplicable(max(reasons, key=self.reasons.index))


def _opposite(scene: Scene, site: FlagSite) -> Replacement | None:
    """Return the opposite of the word before the name of a slot, if there is a rule for it."""
    words, gaps = scene.parts.words, scene.parts.gaps
    place = site.first - 1
    while place > 0 and words[place].lower in _BETWEEN and not gaps[place + 1].strip("- "):
        place -= 1
    if place < 0 or words[place].lower not in _OPPOSITES or _goes_on(scene, site):
        return None
    if words[place].lower != "with" and not _is_told(scene, place):
        return None
    word = words[place]
    opposite = match_case(word.text, _OPPOSITES[word.lower])
    return Replacement(word.start, word.end, opposite, "antonym")


def _goes_on(scene: Scene, site: FlagSite) -> bool:
    """Say whether what follows would be turned, too: `parking and breakfast`."""
    words, after = scene.parts.words, site.last + 1
    if words[after : after + 1] and words[after].lower in {"and", "or"}:
        return True
    rest = range(after, sentence_of(scene.parts, site.last).stop)
    flags = (slot for slot in scene.now if slot != site.slot and scene.now[slot] in REFUSED)
    return any(
        one.first in rest for slot in flags for one in asked_for(scene, slot, scene.turn.user)
    )


def _is_told(scene: Scene, place: int) -> bool:
    """Say whether a place has something, or should: nobody asks whether it does."""
    words = [word.lower for word in scene.parts.words]
    if not _ASKING.isdisjoint(words[sentence_of(scene.parts, place).start : place]):
        return False
    before = words[place - 1] if place else ""
    return (
        words[place] != "have" or before in _HOLDERS or scene.once(ValueTable.of).is_title(before)
    )
