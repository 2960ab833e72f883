"""The phrase that gives a value is left out."""

from __future__ import annotations

import re
from typing import Final

from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import OF_CALLS, Made, ShouldChange, from_sites
from pytest_dstfuzz.relations.should_change.phrases import phrase_of
from pytest_dstfuzz.relations.should_change.sites import REASONS, ValueSite
from pytest_dstfuzz.relations.values import ValueTable, article_before

NEEDED: Final = "the sentence needs the phrase that gives the value"
NOTHING_LEFT: Final = "too little is left of the turn without the phrase"
POINTED_AT: Final = "a word points at what the phrase says"

#: Words that must remain.
_LEAST: Final = 4
#: Signs of an amount, which are part of its value and no words.
_SIGN_BEFORE: Final = re.compile(r"(?:[£$€]\s?)?$")
_SIGN_BEHIND: Final = re.compile(r"(?:\s?[%‰°£$€])?")
_POINTERS: Final = frozenset({"there", "then", "that", "those", "same", "they", "them"})


@register_relation
class Removal(ShouldChange):
    """The slot is empty again, or has the value that it had before the turn."""

    name = "removal"
    expects = "the slot has its value of the turn before, or none, and all others stay"
    reasons = (*REASONS, NEEDED, NOTHING_LEFT, POINTED_AT, *OF_CALLS)

    def edited(self, scene: Scene) -> Begun:
        """Return one rewrite for each slot whose phrase can be left out."""
        return from_sites(self, scene, _removed)


def _removed(scene: Scene, site: ValueSite) -> Made:
    phrase = phrase_of(scene, site)
    if phrase is None:
        return NEEDED
    first, last = phrase
    words = scene.parts.words
    left = [*words[:first], *words[last + 1 :]]
    titles = scene.once(ValueTable.of).titles
    if len(left) < _LEAST or not any(
        scene.lexicon.majority_pos(word.lower) == "verb" or spelled(word.lower) in titles
        for word in left
    ):
        return NOTHING_LEFT
    if any(word.lower in _POINTERS for word in words[last + 1 :]):
        return POINTED_AT
    after = Admissible(tuple(dict.fromkeys((site.before, None))))
    edits = _without(scene, first, last)
    return [scene.rewrite(edits, [Delta(site.slot, site.value, after)])]


def _length(found: re.Match[str] | None) -> int:
    return len(found[0]) if found else 0


def _without(scene: Scene, first: int, last: int) -> list[Replacement]:
    """Return what takes the words ``first`` to ``last`` out, one blank with them."""
    words, user = scene.parts.words, scene.turn.user
    start, end = words[first].start, words[last].end
    start -= _length(_SIGN_BEFORE.search(user[:start]))
    end += _length(_SIGN_BEHIND.match(user[end:]))
    if last + 1 < len(words) and user[end : words[last + 1].start].isspace():
        end = words[last + 1].start
    elif first:
        start = words[first - 1].end
    edits = [Replacement(start, end, "", "phrase")]
    article = words[first - 1] if first else None
    if article and last + 1 < len(words) and article.lower in {"a", "an"}:
        right = article_before(words[last + 1].lower)
        if right != article.lower:
            right = right.capitalize() if article.text[0].isupper() else right
            edits.append(Replacement(article.start, article.end, right, "article"))
    return edits
