"""Three strategies of Niu and Bansal in the form of their paper, for its tables.

The relations `negation`, `antonym` and `random-input` make edits with a known effect on the state.
The relations of this module make the edits of the paper instead. These edits protect no word, and
their effect is not always known. Therefore a violation need not be a fault of the bot.

Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
models, CoNLL 2018.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.dialogue.dialogues import Admissible, diff_states
from pytest_dstfuzz.perturb.words import Word, match_case, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    MOST,
    OTHER_REPLY,
    Delta,
    Inapplicable,
    Relation,
    Replacement,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.should_change.base import EditedTurn, Lazily, ShouldChange
from pytest_dstfuzz.relations.should_change.relations import (
    NO_WORD,
    NOTHING_GIVEN,
    TAKEN_AWAY,
    UNSAID,
    neutral_words,
    why_gives_nothing,
)
from pytest_dstfuzz.relations.should_change.sites import split_spoken
from pytest_dstfuzz.relations.values import inflections

NO_VERB: Final = "the turn has no verb"
IS_NEGATED: Final = "the first verb is already negated"
NO_ANTONYM: Final = "no verb, adjective or adverb of the turn has an antonym in the lexicon"
FALLBACK: Final = "the clean reply is a fallback reply, which need not change"

#: Verbs that take `not` directly after them.
_AUXILIARIES: Final = word_set(
    """am is are was were be been can could may might must shall should will would do does did
    have has had"""
)
_CLITICS: Final = ("'m", "'re", "'s", "'d", "'ll", "'ve")
#: Words that stand between an auxiliary and its `not` in a question: `can you not book`.
_SUBJECTS: Final = word_set("i you he she it we they there this that these those")
_CHANGEABLE: Final = frozenset({"verb", "adj", "adv"})


class OtherReply(Relation):
    """Expects another reply after an edit of the first suitable word of the turn.

    A subclass defines ``name`` and `edited`.
    """

    on = ("reply",)
    edits = "own"
    side = "should-change"
    english = True
    expects = "the reply changes"

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn, or the reason why the relation cannot apply."""
        if is_fallback(scene.kind.text(scene.now), scene.reply.fallback):
            return Inapplicable(FALLBACK)
        found = self.edited(scene)
        if isinstance(found, str):
            return Inapplicable(found)
        return [
            replace(scene.rewrite([one], about=_told(scene, one)), expected=OTHER_REPLY)
            for one in found[:MOST]
        ]

    @abstractmethod
    def edited(self, scene: Scene) -> Sequence[Replacement] | str:
        """Return one edit for each rewrite, or the reason why no edit is possible."""


def _told(scene: Scene, one: Replacement) -> str:
    return f"{scene.turn.user[one.start : one.end]} -> {one.after}"


@register_relation
class FirstNegation(OtherReply):
    """Negates the first verb of the turn. The reply must change."""

    name = "first-negation"
    reasons = (FALLBACK, NO_VERB, IS_NEGATED)

    def edited(self, scene: Scene) -> Sequence[Replacement] | str:
        """Return the edit that negates the first verb."""
        words = scene.parts.words
        place = next((n for n, word in enumerate(words) if _is_verb(scene, word)), None)
        if place is None:
            return NO_VERB
        word, following = words[place], [one.lower for one in words[place + 1 : place + 3]]
        if word.lower.endswith("n't") or "not" in following or "n't" in following[:1]:
            return IS_NEGATED
        if _is_auxiliary(word):
            # In a question, the subject is between the auxiliary and `not`.
            asks = following[:1] and following[0] in _SUBJECTS
            end = words[place + 1].end if asks else word.end
            return [Replacement(end, end, " not", "negation")]
        negated = _negated(word.lower)
        return [Replacement(word.start, word.end, match_case(word.text, negated), "negation")]


def _is_verb(scene: Scene, word: Word) -> bool:
    return _is_auxiliary(word) or scene.lexicon.majority_pos(word.lower) == "verb"


def _is_auxiliary(word: Word) -> bool:
    lower = word.lower.replace("’", "'").removesuffix("n't")
    return lower in _AUXILIARIES or lower == "ca" or lower.endswith(_CLITICS)


def _negated(verb: str) -> str:
    """Return a negated main verb.

    >>> _negated("want"), _negated("serves"), _negated("booked"), _negated("looking")
    ('do not want', 'does not serve', 'did not book', 'not looking')
    """
    base = inflections().infinitive(verb)
    if verb.endswith("ing"):
        return f"not {verb}"
    if base is None:
        return f"do not {verb}"
    return f"does not {base}" if verb.endswith("s") else f"did not {base}"


@register_relation
class FirstAntonym(OtherReply):
    """Replaces the first verb, adjective or adverb that has an antonym. The reply must change."""

    name = "first-antonym"
    source = "WordNet 3.0 (WordNet licence), in the lexicon"
    reasons = (FALLBACK, NO_ANTONYM)

    def edited(self, scene: Scene) -> Sequence[Replacement] | str:
        """Return one edit for each antonym of the word. The seed decides their order."""
        for word in scene.parts.words:
            if scene.lexicon.majority_pos(word.lower) not in _CHANGEABLE:
                continue
            if others := scene.lexicon.antonyms(word.lower):
                order = scene.rng.permutation(len(others)).tolist()
                return [
                    Replacement(word.start, word.end, match_case(word.text, others[n]), "antonym")
                    for n in order
                ]
        return NO_ANTONYM


NO_OTHER_WORD: Final = "the turn has no words besides its values"

#: Number of rewrites per turn.
_DRAWS: Final = 4


@register_relation
class ValuesOnly(ShouldChange):
    """Replaces all words outside values by random words. Shows which slots keep their values.

    This is the strategy "random inputs with kept entities" of the paper. The relation is a
    diagnostic: if a slot keeps its value, the tracker needs no other words to fill the slot. This
    need not be a fault.
    """

    name = "values-only"
    on = ("state",)
    expects = "no slot is filled from its value alone (this is a diagnostic, not a fault)"
    source = "correct forms of the misspellings in the lexicon"
    reasons = (NO_WORD, NOTHING_GIVEN, TAKEN_AWAY, UNSAID, NO_OTHER_WORD)

    def edited(self, scene: Scene) -> EditedTurn:
        """Return 4 texts with the values of the turn at their places, among random words."""
        changes = diff_states(scene.before, scene.now)
        if reason := why_gives_nothing(scene, changes):
            return Inapplicable(reason)
        spoken = split_spoken(scene.turn.user)
        found = [spoken.mentions(change.after or "") for change in changes]
        if not all(found):
            return Inapplicable(UNSAID)
        kept = {n for one in found for spot in one for n in range(spot.first, spot.last + 1)}
        if len(kept) == len(scene.parts.words):
            return Inapplicable(NO_OTHER_WORD)
        deltas = [Delta(one.slot, one.after, Admissible((one.before,))) for one in changes]
        return Lazily(
            scene.rewrite(_around(scene, kept), deltas, about=_survivors(deltas))
            for _ in range(_DRAWS)
        )


def _survivors(deltas: Sequence[Delta]) -> str:
    return f"random words around the values of {', '.join(one.slot for one in deltas)}"


def _around(scene: Scene, kept: set[int]) -> Iterator[Replacement]:
    """Yield a random word for each word that is not part of a value."""
    words = neutral_words(scene, scene.table)
    for place, word in enumerate(scene.parts.words):
        if place not in kept:
            yield Replacement(word.start, word.end, next(words), "random words")
