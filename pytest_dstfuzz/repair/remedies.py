"""Remedies. A remedy rewrites the user's messages before a bot gets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from pytest_dstfuzz import Context, Exchange, TurnResult
from pytest_dstfuzz.dialogue.calls import plain_marks
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.perturb.words import word_list

#: A word is known if it occurs in this many dialogues: one dialogue may repeat its own slip.
_FEWEST: Final = 2


class Correctors(NamedTuple):
    """The spelling correctors that remedies use."""

    #: Replaces an unknown word by any known one.
    spelling: SpellingCorrector
    #: Replaces it only by a word of the conversations.
    vocabulary: SpellingCorrector


class Remedy(NamedTuple):
    """A way to rewrite each message of the user."""

    name: str
    #: Whether it unifies case and marks.
    form: bool = False
    #: The corrector that it uses, if any.
    corrector: Literal["spelling", "vocabulary"] | None = None

    def applied(self, context: Context, correctors: Correctors) -> Context:
        """Return a context after the remedy, as the bot gets it."""
        if self.form:
            context = _rewritten(
                context, (plain_marks(one.user).lower() for one in context.exchanges)
            )
        if self.corrector is None:
            return context
        return corrected(context, getattr(correctors, self.corrector))


def corrected(context: Context, corrector: SpellingCorrector) -> Context:
    """Return a context whose user utterances are corrected.

    In an utterance, words that the system has said before count as correct.
    """
    said: frozenset[str] = frozenset()
    texts = []
    for system, user in context.exchanges:
        said |= frozenset(word_list(system))
        texts.append(corrector.correct(user, said))
    return _rewritten(context, texts)


def _rewritten(context: Context, texts: Iterable[str]) -> Context:
    """Return a context with these user utterances. Without changes, return the same object."""
    pairs = zip(context.exchanges, texts, strict=True)
    exchanges = tuple(Exchange(before.system, text) for before, text in pairs)
    return context if exchanges == context.exchanges else replace(context, exchanges=exchanges)


#: The remedies, in order of preference if they are equally good.
REMEDIES: Final = (
    Remedy("vocabulary", corrector="vocabulary"),
    Remedy("spelling", corrector="spelling"),
    Remedy("form", form=True),
    Remedy("form+vocabulary", form=True, corrector="vocabulary"),
)


class SaidWords:
    """The words in clean turns, with the number of dialogues that contain them."""

    def __init__(self, turns: Iterable[TurnResult]) -> None:
        self._of: dict[str, set[str]] = {}
        for turn in turns:
            words = self._of.setdefault(turn.dialogue_id, set())
            for text in (*turn.earlier_system, turn.system, turn.user):
                words.update(filter(str.isalpha, word_list(text)))
        self._dialogues = Counter(word for words in self._of.values() for word in words)

    def learned(self, besides: str | None = None) -> frozenset[str]:
        """Return the words of at least two dialogues. Leave out the dialogue ``besides``."""
        own = self._of.get(besides or "", ())
        return frozenset(
            word for word, count in self._dialogues.items() if count - (word in own) >= _FEWEST
        )
