"""A word becomes its opposite where a rule says what follows: ``with`` to ``without``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.words import match_case
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Delta, Inapplicable
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import ShouldChange
from pytest_dstfuzz.relations.should_change.flags import UNWANTED, FlagSite, flags_of
from pytest_dstfuzz.relations.should_change.sites import REASONS
from pytest_dstfuzz.relations.values import ValueTable

NO_RULE: Final = "no rule for any word of it"
NO_FLAG: Final = "no slot of the data is a yes/no slot"

_OPPOSITES: Final[Mapping[str, str]] = {
    "with": "without",
    "include": "exclude",
    "includes": "excludes",
    "including": "excluding",
}
#: What may stand between such a word and the name of the slot.
_BETWEEN: Final = frozenset({"a", "an", "the", "free", "some", "any", "on", "site"})


@register_relation
class Antonym(ShouldChange):
    """What a yes/no slot stands for is not wanted any more."""

    name = "antonym"
    expects = "the yes/no slot is no, dontcare or empty, and all others stay"
    reasons = (*REASONS, NO_RULE)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no slot is a yes/no slot."""
        kinds = ValueTable.of(data).kinds.values()
        return "" if "yes-no" in kinds else NO_FLAG

    def begin(self, scene: Scene) -> Begun:
        """Return a rewrite for each yes/no slot with a word before it that has an opposite."""
        flags = flags_of(scene)
        rewrites = [
            scene.rewrite([edit], [Delta(site.slot, "yes", UNWANTED)])
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
    place = site.word - 1
    while place > 0 and words[place].lower in _BETWEEN and not gaps[place + 1].strip("- "):
        place -= 1
    if place < 0 or words[place].lower not in _OPPOSITES:
        return None
    # `parking and breakfast`: what follows would be negated, too.
    if words[site.word + 1 : site.word + 2] and words[site.word + 1].lower in {"and", "or"}:
        return None
    word = words[place]
    opposite = match_case(word.text, _OPPOSITES[word.lower])
    return Replacement(word.start, word.end, opposite, "antonym")
