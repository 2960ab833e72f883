"""Plug-in: a block of sentences about something else, and a search for its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.guard import veto
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Rewrite, Shown, TurnRelation
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.values import ValueTable
from pytest_dstfuzz.seeding import stream

_SILENT: Final = "the turn says nothing"
_NO_BLOCK: Final = "no sentence of the blocks is free of locks"
#: Sentences of one block, at most.
_LONGEST: Final = 3
#: Between two sentences, with the blank after the mark.
_BOUND: Final = re.compile(r"(?<![.!?])[.!?]+[\"'”’]?\s+(?=\S)")


@register_relation
class PlugIn(Relation):
    """The state stays when the user says something about something else as well.

    One to three sentences are put before the first sentence of the turn, between two, or after the
    last one. First each of these places is tried, then again that at which the tracker became the
    least sure.

    Source: Pick-n-Plug, which picks block and place without a search.
    """

    name = "plug-in"
    expects = "{stays}"
    source = "resources/relations/blocks.txt, of this package (MIT)"
    edits = "own"
    english = True
    adaptive = True
    reasons = (_SILENT, _NO_BLOCK)

    def begin(self, scene: Scene) -> Begun:
        """Return the search for the place of a block."""
        if not scene.parts.words:
            return Inapplicable(_SILENT)
        guard_of = scene.guards.guard_of
        words = scene.once(ValueTable.of).words
        blocks = [
            one
            for one in _sentences()
            if not any(guard_of(word) or spelled(word) in words for word in word_list(one))
        ]
        return _PlaceSearch(scene, blocks) if blocks else Inapplicable(_NO_BLOCK)


class _PlaceSearch(TurnRelation):
    """Tries each place once, then the one that did most, each time with another block."""

    def __init__(self, scene: Scene, sentences: Sequence[str]) -> None:
        self._scene = scene
        self._sentences = sentences
        self._seed = int(scene.rng.integers(1 << 62))
        user = scene.turn.user
        bounds = [match.end() for match in _BOUND.finditer(user)]
        self._places = (0, *filter(self._fits, bounds), len(user))

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite:
        """Return rewrite ``number``, each time with a block that is drawn."""
        rng = stream(self._seed, number, draw)
        wanted = min(int(rng.integers(1, _LONGEST + 1)), len(self._sentences))
        chosen = rng.choice(len(self._sentences), wanted, replace=False).tolist()
        return self._plugged(self._place(number, seen), [self._sentences[one] for one in chosen])

    def _fits(self, place: int) -> bool:
        """Say whether it is the end of a sentence: not that of `St.` in a name, or `p.m.`."""
        one = self._plugged(place, self._sentences[:1])
        return not veto(self._scene, one.seen.user, one.edits)

    def _place(self, number: int, seen: Sequence[Shown]) -> int:
        """Return the next place that was not tried, or the one where the tracker wavered most."""
        if number < len(self._places):
            return self._places[number]
        wavered = dict.fromkeys(self._places, -1.0)
        for one in seen:
            place = one.rewrite.edits[0].start
            impurity = 1.0 if one.broken else one.impurity
            wavered[place] = max(wavered[place], impurity if one.answered else -1.0)
        return max(self._places, key=lambda place: wavered[place])

    def _plugged(self, place: int, sentences: Sequence[str]) -> Rewrite:
        user = self._scene.turn.user
        closed = user.rstrip()[-1:] in {".", "!", "?"}
        if place < len(user):
            texts = [f"{one} " for one in sentences]
        else:
            texts = [f" {one}" if closed else f". {one[:-1]}" for one in sentences]
        added = [Replacement(place, place, text, "block") for text in texts]
        where = "at the start" if not place else "within"
        where = "at the end" if place == len(user) else where
        told = f"{len(texts)} sentence{'s' * (len(texts) > 1)} {where}"
        return self._scene.rewrite(added, about=told, separable=True)


@cache
def _sentences() -> tuple[str, ...]:
    path = resources.files("pytest_dstfuzz") / "resources" / "relations" / "blocks.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))
