"""Grammar errors: what learners write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.perturb.words import listed, match_case
from pytest_dstfuzz.relations.inflections import inflections
from pytest_dstfuzz.relations.paraphrase.choices import Paraphrase, Places, free, leans_on
from pytest_dstfuzz.relations.paraphrase.phrases import replacements, shipped_pairs
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Replacement, Scene

_NONE: Final = "no word that is free of locks and has a wrong form"
_MOST: Final = 3
#: Whose forms the table has.
_OWN: Final = listed("is are was were am be been being has have had does do did will would")


@register_relation
class GrammarErrors(Paraphrase):
    """The state stays when a word has the wrong form: three words at most.

    A wrong word for a right one by a table, an infinitive for an inflected verb, a singular for a
    plural.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (grammar errors); theirs takes the AESW data.
    """

    name = "grammar-errors"
    source = (
        "resources/relations/grammar.tsv, of this package (MIT); inflections.json, of this "
        "package's rules and the exception lists of WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NONE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be wrong."""
        found = [
            *replacements(scene, shipped_pairs("grammar.tsv"), "wrong_word"),
            *_inflected(scene),
        ]
        return self.places_of(found, _MOST)


def _inflected(scene: Scene) -> Iterator[Replacement]:
    forms = inflections()
    for index, word in free(scene):
        pos = scene.lexicon.majority_pos(word.lower)
        base, operator = None, ""
        if pos == "verb" and word.lower not in _OWN:
            base, operator = forms.infinitive(word.lower), "infinitive"
        elif pos == "noun":
            base, operator = forms.singular(word.lower), "singular"
        if base and not scene.guards.guard_of(base) and not leans_on(scene, index):
            yield Replacement(word.start, word.end, match_case(word.text, base), operator)
