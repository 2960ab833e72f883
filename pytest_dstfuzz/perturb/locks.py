"""Which words of an utterance carry its slots, and which lock guards each of them.

`Locks` is built once for a lexicon, an ontology and the user's own locks; `Locks.mask`
finds the locked words of one utterance by position. The rules are (a) to (c) of the
profile ``strict``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.types import Ontology
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb import names
from pytest_dstfuzz.perturb.draft import FREE, LOCKED, TYPO
from pytest_dstfuzz.perturb.lexicon import Lexicon
from pytest_dstfuzz.perturb.value_index import ValuePieces, canonical
from pytest_dstfuzz.perturb.words import Word, listed, word_list

#: Yes and no in all their dresses: answers to what the system asked.
_AFFIRMATIONS: Final = (
    *("yes", "yeah", "yep", "yup", "yea", "sure", "ok", "okay", "okey", "k", "correct", "right"),
    *("absolutely", "definitely", "certainly", "indeed", "fine", "exactly", "agreed", "true"),
    *("affirmative", "false", "wrong", "incorrect", "alright", "perfect", "of course"),
    *("go ahead", "sounds good", "sounds great", "that works"),
)
#: What people write with a capital wherever it stands.
_GREETINGS: Final = listed("thanks thank please hi hello hey bye goodbye can could")
#: Marks that turn the number before them into a price, a time or a share.
_UNITS: Final = listed(
    "am pm a.m p.m gbp usd eur pound pounds dollar dollars euro euros percent pence p "
    "o'clock oclock hrs hr st nd rd th"
)
#: Locks whose words make one solid block with locked neighbours: nothing goes in between.
_SOLID: Final = frozenset({"user", "value", "number", "negation", "dontcare", "name"})
_CLITIC: Final = re.compile(r"['’](?:s|m|d|re|ve|ll|t)$|^n['’]t$")
#: Cue words of at least so many letters may take a typing error.
#: Locks on what may be a name, and so go on in the word beside it.
_NAMED: Final = frozenset({"value", "name"})
_CLOSING_QUOTES: Final = ('"', "'", "”", "’", "»")
_TYPO_LENGTH: Final = 5
#: The most frequent words of requests tell no name apart.
_EVERYDAY_RANK: Final = 200


@dataclass(frozen=True, slots=True)
class Mask:
    """What guards the words of one utterance, by position.

    Attributes:
        roles: for each word FREE, TYPO or LOCKED.
        reasons: for each word the lock that guards it, ``""`` for a free one.
        open: for each gap (before word i; the last is after the last word) whether a
            word may be inserted there.
    """

    roles: tuple[int, ...]
    reasons: tuple[str, ...]
    open: tuple[bool, ...]


class Locks:
    """The locks of the profile ``strict`` for one lexicon and one ontology."""

    def __init__(
        self,
        lexicon: Lexicon,
        ontology: Ontology | None = None,
        cue_words: Iterable[str] = (),
        user: Iterable[str] = (),
    ) -> None:
        """Build the tables.

        Args:
            lexicon: negations, cues and the like.
            ontology: values to look for in every utterance; slot names count as cues.
            cue_words: more words that say what a value is for.
            user: words, phrases or ``/regular expressions/`` that no edit may touch.

        Raises:
            UserError: a regular expression that does not compile, or an empty lock.
        """
        self._lexicon = lexicon
        self._stop_words = frozenset(lexicon.stop_words)
        self._function_words = self._stop_words.union(lexicon.fillers, _AFFIRMATIONS, _GREETINGS)
        slots = ontology.slots if ontology else ()
        self._phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._patterns = [pattern for lock in user if (pattern := self._user_lock(lock))]
        self._enter("number", lexicon.number_words)
        self._enter("value", (*lexicon.weekdays, *lexicon.value_words))
        self._enter("negation", lexicon.negations)
        self._enter("dontcare", lexicon.dontcare)
        self._enter("affirmation", _AFFIRMATIONS)
        cues = [*lexicon.cues, *cue_words, *(part for slot in slots for part in word_list(slot))]
        self._enter("cue", cues)
        self._enter("reference", lexicon.references)
        # The first list that has a word names its lock.
        self._single = {
            word: next(reason for phrase, reason in entries if len(phrase) == 1)
            for word, entries in self._phrases.items()
            if any(len(phrase) == 1 for phrase, _ in entries)
        }
        values = [v for found in ontology.values.values() for v in found] if ontology else []
        phrases = (*lexicon.stop_words, *cues, *lexicon.fillers)
        self._common = frozenset(canonical(word) for text in phrases for word in word_list(text))
        # Nor does what every dialogue says (`place`, `good`) tell a name apart.
        self._common |= {canonical(w) for v in values for w in word_list(v) if self._everyday(w)}
        self._values = ValuePieces.of(values, self._common)
        self._closed = self._stop_words.union(*(word_list(phrase) for phrase in cues))
        self._pieces = lru_cache(maxsize=8192)(lambda value: ValuePieces.of([value], self._common))

    def _everyday(self, word: str) -> bool:
        rank = self._lexicon.frequency_rank(word)
        return rank is not None and rank < _EVERYDAY_RANK and self._lexicon.is_word(word)

    def _enter(self, reason: str, phrases: Iterable[str]) -> None:
        for phrase in phrases:
            parts = word_list(phrase)
            for variant in dict.fromkeys((tuple(parts), tuple(_parted(parts)))):
                if variant:
                    self._phrases.setdefault(variant[0], []).append((variant, reason))

    def _user_lock(self, lock: str) -> re.Pattern[str] | None:
        """Return the pattern of a regular expression; enter a word or phrase."""
        if len(lock) > 2 and lock.startswith("/") and lock.endswith("/"):
            try:
                return re.compile(lock[1:-1], re.IGNORECASE)
            except re.error as error:
                raise UserError(f"lock {lock!r} is no regular expression: {error}") from None
        if not word_list(lock):
            raise UserError(f"lock {lock!r} holds no word; give a word or a /regular expression/")
        self._enter("user", [lock])
        return None

    def guard_of(self, word: str) -> str:
        """Return the lock that a word brings with it wherever it stands, ``""`` for none.

        What an edit puts into an utterance must not have one.
        """
        lower = word.lower()
        if any(character.isdigit() for character in lower):
            return "number"
        if reason := self._single.get(lower.replace("’", "'")):
            return reason
        if canonical(lower) in self._values.words:
            return "value"
        return "user" if any(p.fullmatch(word) for p in self._patterns) else ""

    def mask(
        self, text: str, words: Sequence[Word], values: Iterable[str] = (), system: str = ""
    ) -> Mask:
        """Return what guards the words of an utterance.

        Args:
            text: the utterance as typed.
            words: its words.
            values: slot values of the turn's state, besides those of the ontology.
            system: the system utterance before it.
        """
        reasons = [""] * len(words)
        glued = [False] * (len(words) + 1)
        lowers = [word.lower.replace("’", "'") for word in words]
        self._lock_user(text, words, reasons, glued)
        pieces = self._values
        for value in values:
            pieces = pieces.joined(self._pieces(value))
        for first, end in pieces.mentions(lowers):
            _lock(reasons, glued, range(first, end), "value")
        self._lock_phrases(lowers, reasons, glued)
        self._lock_numbers(words, reasons)
        self._lock_names(text, words, system, reasons)
        return self._finish(text, words, reasons, glued)

    def _lock_user(
        self, text: str, words: Sequence[Word], reasons: list[str], glued: list[bool]
    ) -> None:
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                start, end = match.span()
                inside = [i for i, w in enumerate(words) if w.start < end and start < w.end]
                _lock(reasons, glued, inside, "user")

    def _lock_phrases(self, lowers: list[str], reasons: list[str], glued: list[bool]) -> None:
        """Lock every listed word and phrase; of two locks on one word the earlier list wins."""
        for index, lower in enumerate(lowers):
            for phrase, reason in self._phrases.get(lower, ()):
                end = index + len(phrase)
                if len(phrase) == 1 or tuple(lowers[index:end]) == phrase:
                    solid = reason in _SOLID
                    _lock(reasons, glued if solid else None, range(index, end), reason)
            joined = lowers[index - 1] + lower if index else ""
            for whole, first in ((joined, index - 1), (lower.replace("-", ""), index)):
                reason = self._single.get(whole, "") if whole != lower else ""
                if reason:  # `wi fi` and `wi-fi` are `wifi`.
                    _lock(reasons, glued, range(first, index + 1), reason)
            if lower == "n't" and index:
                _lock(reasons, glued, range(index - 1, index + 1), "negation")

    def _lock_numbers(self, words: Sequence[Word], reasons: list[str]) -> None:
        for index, word in enumerate(words):
            if not word.text.isalpha() and any(map(str.isdigit, word.text)):
                reasons[index] = reasons[index] or "number"
            elif index and word.lower in _UNITS and reasons[index - 1] == "number":
                reasons[index] = "number"

    def _lock_names(
        self, text: str, words: Sequence[Word], system: str, reasons: list[str]
    ) -> None:
        found = {
            *names.quoted(text, words),
            *names.called(text, words, self._closed),
            *names.capitalised(text, words, self._function_words, self._lexicon.is_word),
            *names.named_by_system(system, words, self._stop_words),
        }
        for index, word in enumerate(words):
            unknown = word.lower.isalpha() and word.lower.isascii() and not reasons[index]
            if index in found or (unknown and not self._known(word.lower)):
                if reasons[index] in {"", "cue", "reference"}:
                    reasons[index] = "name"
            elif not reasons[index] and index and self._continues(reasons[index - 1], words, index):
                # A noun right after a name is often its last part: `don pasquale pizzeria`.
                reasons[index] = "name"

    def _known(self, lower: str) -> bool:
        return lower in self._stop_words or self._lexicon.is_word(lower) or len(lower) == 1

    def _continues(self, before: str, words: Sequence[Word], index: int) -> bool:
        if before not in {"value", "name"} or words[index].start - words[index - 1].end > 1:
            return False
        pos = self._lexicon.majority_pos
        return pos(words[index].lower) == "noun" and pos(words[index - 1].lower) in {None, "noun"}

    def _finish(
        self, text: str, words: Sequence[Word], reasons: list[str], glued: list[bool]
    ) -> Mask:
        """Turn locks into roles, and close the gaps in which nothing may be inserted."""
        roles = [self._role(reason, word) for reason, word in zip(reasons, words, strict=True)]
        pos = self._lexicon.majority_pos
        closed = glued
        for index, word in enumerate(words):
            gap = text[words[index - 1].end : word.start] if index else text[: word.start]
            # Where no blank is, an inserted word would stick to something; a dash or a
            # stroke between two words makes them one.
            if gap != " ":
                parted = gap[-1:].isspace() and not any(mark in gap for mark in "-/&'’")
                closed[index] |= not parted and (index > 0 or bool(gap))
            closed[index] |= _is_clitic(word.lower)
            if not index:
                continue
            left, right = reasons[index - 1], reasons[index]
            closed[index] |= left in _SOLID and right in _SOLID
            # `not really` and `no more` mean something else than `not` and `no`.
            closed[index] |= left in {"negation", "dontcare", "affirmation"}
            if left in _NAMED or right in _NAMED:
                both = (pos(words[index - 1].lower), pos(word.lower))
                closed[index] |= all(kind in {None, "noun"} for kind in both)
        if words and text[words[-1].end :].startswith(_CLOSING_QUOTES):
            closed[-1] = True
        return Mask(tuple(roles), tuple(reasons), tuple(not shut for shut in closed))

    def _role(self, reason: str, word: Word) -> int:
        if not reason:
            return LOCKED if _is_clitic(word.lower) else FREE
        if (
            reason in {"cue", "reference"}
            and len(word.text) >= _TYPO_LENGTH
            and (word.lower.isalpha())
        ):
            return TYPO
        return LOCKED


def _is_clitic(lower: str) -> bool:
    return ("'" in lower or "’" in lower) and bool(_CLITIC.search(lower))


def _lock(
    reasons: list[str], glued: list[bool] | None, indices: Iterable[int], reason: str
) -> None:
    previous: int | None = None
    for index in indices:
        # The first lock to guard a word names it: they come in order of weight.
        if not reasons[index] or (reason in _SOLID and reasons[index] not in _SOLID):
            reasons[index] = reason
        if glued is not None and previous == index - 1:
            glued[index] = True
        previous = index


def _parted(parts: Sequence[str]) -> list[str]:
    """Part contractions as MultiWOZ writes them: ``don't`` -> ``do n't``."""
    parted: list[str] = []
    for part in parts:
        if part.endswith("n't") and len(part) > 3:
            parted += [part[:-3], "n't"]
        elif "'" in part[1:]:
            head, _, tail = part.partition("'")
            parted += [head, "'" + tail]
        else:
            parted.append(part)
    return parted
