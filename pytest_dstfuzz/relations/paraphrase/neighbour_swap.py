"""Neighbour swap: two words beside each other change places."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.perturb.words import Word, listed
from pytest_dstfuzz.relations.paraphrase.choices import (
    Paraphrase,
    Places,
    begins_sentence,
    free,
    leans_on,
    plain_gap,
)
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Replacement, Scene

_NO_PAIR: Final = "no two words beside each other that are free of locks and marks"
#: At most one pair in so many words.
_WORDS_A_PAIR: Final = 4
#: What they join says something else when they stand elsewhere.
_JOINTS: Final = listed("and or but if then else because so than as while when unless")
#: Where one changes places with the other, a statement becomes a question: `you can`.
_SUBJECTS: Final = listed("i you we he she they it there this that")
_HELPERS: Final = listed(
    "will would can could shall should may might must do does did am are is was were have has had"
)
#: What is said together with the next word.
_SET: Final = listed("thank thanks of")


@register_relation
class NeighbourSwap(Paraphrase):
    """The state stays when neighbouring words change places, one pair in four words at most.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (random swap).
    """

    name = "neighbour-swap"
    reasons = (_NO_PAIR,)

    def places(self, scene: Scene) -> Places | str:
        """Return the pairs that may change places."""
        words = dict(free(scene))
        pairs = [
            Replacement(words[one].start, words[one + 1].end, self._swapped(scene, one), "swap")
            for one in words
            if one + 1 in words and self._may_swap(scene, one)
        ]
        most = max(1, len(scene.parts.words) // _WORDS_A_PAIR)
        return self.places_of(pairs, most)

    def _may_swap(self, scene: Scene, one: int) -> bool:
        first, second = scene.parts.words[one : one + 2]
        inner = scene.parts.gaps[one + 1]
        return (
            inner.isspace()
            and (begins_sentence(scene, one) or plain_gap(scene, one))
            and plain_gap(scene, one + 2)
            and first.lower != second.lower
            and (_JOINTS | _SET).isdisjoint({first.lower, second.lower})
            and not (first.lower in _SUBJECTS and second.lower in _HELPERS)
            and not (first.lower in _HELPERS and second.lower in _SUBJECTS)
            and not leans_on(scene, one + 1)
        )

    def _swapped(self, scene: Scene, one: int) -> str:
        first, second = scene.parts.words[one : one + 2]
        before, after = second.text, first.text
        if begins_sentence(scene, one) and first.text[0].isupper():
            before = before[0].upper() + before[1:]
            after = after if _stays(first) else after[0].lower() + after[1:]
        return before + scene.parts.gaps[one + 1] + after


def _stays(word: Word) -> bool:
    """Say whether a word has its capital wherever it stands."""
    return word.lower.partition("'")[0] == "i" or word.text.isupper()
