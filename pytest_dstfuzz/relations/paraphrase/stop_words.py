"""Stop-word dropout: small words are left out."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.paraphrase.choices import (
    Paraphrase,
    Places,
    free,
    leans_on,
    without_word,
)
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Scene

_NONE: Final = "no stop word that is free of locks"
_EMPTY: Final = "nothing but stop words is said"
_MOST: Final = 8
#: What they join or ask for is not there without them.
KEPT: Final = listed(
    """or nor but if than as because while until what which who whom where when why how all any
    both each few own do does did am are is"""
)


@register_relation
class StopWordDropout(Paraphrase):
    """The state stays when stop words are left out, eight at most.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (stop-word dropout).
    """

    name = "stop-word-dropout"
    source = "NLTK's English stop words (from the Snowball project, BSD), in the lexicon"
    reasons = (_EMPTY, _NONE)

    def places(self, scene: Scene) -> Places | str:
        """Return the stop words that may go."""
        stop_words = frozenset(scene.lexicon.stop_words)
        if all(word.lower in stop_words for word in scene.parts.words):
            return _EMPTY
        found = [
            without_word(scene, index, "stop_word")
            for index, word in free(scene)
            if word.lower in stop_words and word.lower not in KEPT and not leans_on(scene, index)
        ]
        return self.places_of(found, _MOST)
