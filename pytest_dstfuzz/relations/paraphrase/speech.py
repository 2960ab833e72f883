"""Speech: what a recogniser hears instead, or does not hear."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.phrases import respelled
from pytest_dstfuzz.relations.paraphrase.choices import (
    Paraphrase,
    Places,
    free,
    leans_on,
    without_word,
)
from pytest_dstfuzz.relations.paraphrase.phrases import replacements, shipped_pairs
from pytest_dstfuzz.relations.paraphrase.stop_words import KEPT
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Replacement, Scene

_NONE: Final = "no word that is free of locks sounds like another or is easily not heard"
_MOST: Final = 3


@register_relation
class Speech(Paraphrase):
    """The state stays when words are heard as others that sound alike, or small ones are not heard.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog
    (LAUG), ACL 2021 (speech errors).
    """

    name = "speech"
    source = (
        "resources/noise/speech.json: words that sound alike by CMUdict (BSD, two clauses); "
        "resources/relations/homophones.tsv and the small words: of this package (MIT)"
    )
    reasons = (_NONE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be heard as others, or not at all."""
        found = list(_misheard(scene))
        return self.places_of(found, _MOST)


@cache
def _model() -> NoiseModel:
    return NoiseModel.load("speech")


def _misheard(scene: Scene) -> Iterator[Replacement]:
    yield from replacements(scene, shipped_pairs("homophones.tsv"), "homophone")
    heard = _model().file.tables.words
    for index, word in free(scene):
        if leans_on(scene, index):
            continue
        for form, _ in respelled(word.text, heard["homophone"]):
            if not scene.guards.guard_of(form):
                yield Replacement(word.start, word.end, form, "homophone")
        if word.lower in heard["dropped"] and word.lower not in KEPT:
            yield without_word(scene, index, "not_heard")
