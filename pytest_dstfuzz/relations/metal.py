"""METAL's four perturbations of one question: the baseline for MORTAR.

The relations change words and letters of the question, in its clean context. The reply must stay
the same. As in METAL, no word is protected. Even a number may get a typo, so a violation need not
be a fault of the system. To test your own bot, use the relation ``metamorphic``, which protects
values.

Source: Hyun, Guo and Babar, METAL, ICST 2024; Guo et al., MORTAR, chose these four relations. The
edit rates are not published. Here about one word in five is changed.
"""

from __future__ import annotations

import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from pytest_dstfuzz.comparisons.embedding import meaning_shift
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.words import Word, match_case, word_list
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    MOST,
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
)

__all__ = ["MetalLeet", "MetalSynonyms", "MetalTypos", "MetalWord"]

#: Share of words to change; at least one word changes.
_CHANGED: Final = 0.2
#: Draws per requested rewrite.
_DRAWN: Final = 8
#: Maximum shift in meaning of a question.
_FARTHEST: Final = 0.45
_REVOKED: Final = "every drawn variant changes the meaning of the question too much"
#: An inserted word is one of this many most frequent words of the data.
_FREQUENT: Final = 1_000
_LEET: Final = {"a": "4", "e": "3", "i": "1", "o": "0", "s": "5", "t": "7"}
#: Minimum number of letters in a word with a typo.
_FEWEST_LETTERS: Final = 3


class Metal(Relation):
    """Expects the same reply after words of the question were changed.

    The shipped embedding measures how far a rewrite's meaning is from the question. If the distance
    exceeds a threshold, another rewrite is drawn. In the source, such a rewrite is dropped. A
    subclass defines ``name``, ``none``, `places` and `changed`.
    """

    on = ("reply",)
    edits = "own"
    english = True
    expects = "the reply stays as it is"
    #: The reason if there is no word to change.
    none = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the relation may not apply to a question, in the order of its checks."""
        return self.none, _REVOKED

    def cases(self, scene: Scene) -> tuple[str, ...]:
        """Return the only test case of a dialogue: all its questions with this perturbation."""
        del scene
        return (self.name,)

    def begin(self, scene: Scene) -> TurnStart:
        """Return random rewrites of the question, or the reason why the relation cannot apply."""
        places = self.places(scene)
        if not places:
            return Inapplicable(self.none)
        found = islice(self._drawn(scene, places), min(scene.variants, MOST))
        return list(found) or Inapplicable(_REVOKED)

    def _drawn(self, scene: Scene, places: Sequence[Word]) -> Iterator[Rewrite]:
        wanted = min(len(places), max(1, round(_CHANGED * len(scene.parts.words))))
        for _ in range(_DRAWN * min(scene.variants, MOST)):
            chosen = scene.rng.choice(len(places), size=wanted, replace=False)
            words = [places[index] for index in sorted(chosen.tolist())]
            replacements = [self.changed(scene, word) for word in words]
            pairs = zip(words, replacements, strict=True)
            about = ", ".join(f"{one.text} -> {to.after}" for one, to in pairs)
            rewrite = replace(scene.rewrite(replacements, about=about), case=self.name)
            if meaning_shift(scene.turn.user, rewrite.seen.user) <= _FARTHEST:
                yield rewrite

    @abstractmethod
    def places(self, scene: Scene) -> Sequence[Word]:
        """Return the words that the relation may change."""

    @abstractmethod
    def changed(self, scene: Scene, word: Word) -> Replacement:
        """Return the changed form of one word."""


@register_relation
class MetalSynonyms(Metal):
    """Replaces words by synonyms of any of their frequent senses."""

    name = "metal-synonyms"
    none = "no word of the question has a synonym"

    def places(self, scene: Scene) -> Sequence[Word]:
        """Return the words that have synonyms."""
        return [word for word in scene.parts.words if _synonyms(scene, word)]

    def changed(self, scene: Scene, word: Word) -> Replacement:
        """Return a random synonym of a word."""
        found = _synonyms(scene, word)
        after = found[int(scene.rng.integers(len(found)))]
        return Replacement(word.start, word.end, match_case(word.text, after), "synonym")


def _synonyms(scene: Scene, word: Word) -> list[str]:
    return [one for one in scene.lexicon.synonyms_all(word.lower) if one != word.lower]


@register_relation
class MetalWord(Metal):
    """Inserts random frequent words of the data."""

    name = "metal-word"
    none = "the question has no words"

    def places(self, scene: Scene) -> Sequence[Word]:
        """Return all words of the question."""
        return scene.parts.words

    def changed(self, scene: Scene, word: Word) -> Replacement:
        """Return a word with a random word inserted before it."""
        frequent = scene.once(_frequent_words)
        other = frequent[int(scene.rng.integers(len(frequent)))]
        return Replacement(word.start, word.end, f"{other} {word.text}", "word")


def _frequent_words(data: DialogueSet) -> tuple[str, ...]:
    counts = Counter(
        word for one in data.dialogues for turn in one.turns for word in word_list(turn.user)
    )
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:_FREQUENT])


@register_relation
class MetalTypos(Metal):
    """Deletes, doubles, swaps or mistypes letters of words."""

    name = "metal-typos"
    none = "every word of the question has fewer than three letters"

    def places(self, scene: Scene) -> Sequence[Word]:
        """Return the words with three or more letters."""
        return [word for word in scene.parts.words if len(word.text) >= _FEWEST_LETTERS]

    def changed(self, scene: Scene, word: Word) -> Replacement:
        """Return a word with one random typo."""
        text = word.text
        while text == word.text:
            place = int(scene.rng.integers(len(word.text) - 1))
            head, letter, rest = word.text[:place], word.text[place], word.text[place + 1 :]
            kind = int(scene.rng.integers(4))
            near = scene.lexicon.keyboard.get(letter.lower(), tuple(string.ascii_lowercase))
            other = near[int(scene.rng.integers(len(near)))]
            text = (
                head + rest,
                head + 2 * letter + rest,
                head + rest[0] + letter + rest[1:],
                head + other + rest,
            )[kind]
        return Replacement(word.start, word.end, text, "typo")


@register_relation
class MetalLeet(Metal):
    """Replaces the letters a, e, i, o, s and t of words by 4, 3, 1, 0, 5 and 7."""

    name = "metal-leet"
    none = "no word of the question has one of the letters a, e, i, o, s and t"

    def places(self, scene: Scene) -> Sequence[Word]:
        """Return the words that have one of these letters."""
        return [word for word in scene.parts.words if not _LEET.keys().isdisjoint(word.lower)]

    def changed(self, scene: Scene, word: Word) -> Replacement:
        """Return the leet spelling of a word."""
        del scene
        after = "".join(_LEET.get(letter.lower(), letter) for letter in word.text)
        return Replacement(word.start, word.end, after, "leet")
