"""Masked replacement: a word gives way to what a masked language model proposes in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import Word, match_case
from pytest_dstfuzz.relations.inflections import inflections
from pytest_dstfuzz.relations.paraphrase.choices import Paraphrase, Places, free, leans_on
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Replacement, Scene

_NONE: Final = "no word that is free of locks and for which the model proposes one like it"
_MOST: Final = 2
#: Cosine from which two words are near to each other.
_NEAR: Final = 0.6
_CONTENT: Final = frozenset({"noun", "verb", "adj", "adv"})
#: Near to each other, and not the same where somebody asks for something.
_APART: Final = frozenset({("get", "give"), ("give", "get"), ("try", "check"), ("met", "answered")})


@register_relation
class MaskedReplacement(Paraphrase):
    """The state stays when a word gives way to one that fits in its place and is near to it.

    Proposals for a place are those of the lexicon's masked language model, and of those only the
    ones of the same part of speech that are neighbours of the word and none of its antonyms.
    """

    name = "masked-replacement"
    source = (
        "proposals and neighbours in the lexicon, made from MultiWOZ 2.1, training split alone; "
        "antonyms from WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NONE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may give way."""
        found = [one for index, word in free(scene) for one in _others(scene, index, word)]
        return self.places_of(found, _MOST)


def _others(scene: Scene, index: int, word: Word) -> Iterator[Replacement]:
    lexicon, words = scene.lexicon, scene.parts.words
    pos = lexicon.majority_pos(word.lower)
    if pos not in _CONTENT or leans_on(scene, index):
        return
    near = {other for other, cosine in lexicon.neighbours(word.lower) if cosine >= _NEAR}
    near -= {word.lower, *lexicon.antonyms(word.lower)}
    verb = inflections().infinitive
    # A form of the same verb is an error of grammar, which is another relation.
    near = {other for other in near if (verb(other) or other) != (verb(word.lower) or word.lower)}
    if not near:
        return
    left = words[index - 1].lower if index else ""
    right = words[index + 1].lower if index + 1 < len(words) else ""
    for other in lexicon.insertions(left, right):
        fits = other in near and lexicon.majority_pos(other) == pos
        # Near nouns are mostly two things of one kind: `phone` and `postcode`.
        if fits and (pos != "noun" or _means(scene.lexicon, word.lower, other)):
            if (word.lower, other) in _APART or scene.guards.guard_of(other):
                continue
            yield Replacement(word.start, word.end, match_case(word.text, other), "masked")


def _means(lexicon: Lexicon, word: str, other: str) -> bool:
    """Say whether two nouns are synonyms, or forms of one noun."""
    forms = inflections()
    synonyms = (*lexicon.synonyms(word), *lexicon.synonyms_all(word, "noun"))
    return other in (
        *synonyms,
        *lexicon.neighbours_strict(word),
        forms.plural(word),
        forms.singular(word),
    )
