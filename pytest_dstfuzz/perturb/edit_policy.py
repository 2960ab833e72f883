"""What the operators may draw from, for each validity profile.

`EditPolicy` answers for one word or one place; it knows no positions. Everything that it
answers depends on the words alone and is looked up once for each different word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.perturb.draft import FREE, LOCKED, Token
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.typos import TypoTable
from pytest_dstfuzz.perturb.words import listed

#: Stop words whose addition says nothing (a slip of the pen).
_IDLE_STOP_WORDS: Final = ("the", "a", "an", "so", "just")
#: Fillers that correct what was said before, answer the system, or say that nothing changed.
_SPEAKING_FILLERS: Final = frozenset({"okay", "alright", "i mean", "you know", "still"})
#: Words whose loss leaves every slot as it was: articles, forms of `be`, auxiliaries of
#: polite requests, `I`. No pronoun that points to a value, nothing that asks or negates.
_DROPPABLE_STOP_WORDS: Final = listed(
    "a an the i am is are be been being will would could can very so just too"
)
#: Other words of that kind: politeness, greetings, emphasis.
_DROPPABLE_WORDS: Final = listed(
    """please kindly thanks hello hi hey oh um uh er erm hmm well really actually basically
    honestly simply truly hopefully anyway maybe perhaps possibly great nice wonderful awesome
    some"""
)
#: Letters of a word for each typing error that it may take.
_LETTERS_A_TYPO: Final = 4


def typo_limit(length: int) -> int:
    """Return how many typing errors a word of so many letters takes in strict."""
    return max(1, length // _LETTERS_A_TYPO)


class EditPolicy:
    """Candidates for every operator under one validity profile.

    Attributes:
        strict: whether the profile is ``strict``.
        nearest_first: whether a position parameter counts places by their distance to the
            nearest slot value; in reading order otherwise.
        fillers: words that operator ``filler`` inserts: fillers, then stop words.
        emoji: what operator ``emoji`` inserts.
        safe_insertions: what a masked language model may insert in strict.
    """

    def __init__(
        self, lexicon: Lexicon, locks: Locks | None, *, nearest_first: bool = False
    ) -> None:
        """Build for the profile ``strict`` when ``locks`` are given, else for ``edit-rate``."""
        self.strict = locks is not None
        self.nearest_first = nearest_first
        self._lexicon = lexicon
        self._guard_of: Callable[[str], str] = locks.guard_of if locks else _no_guard
        fillers = (*lexicon.fillers, *lexicon.stop_words)
        if self.strict:
            idle = (word for word in _IDLE_STOP_WORDS if word in lexicon.stop_words)
            fillers = (*lexicon.fillers, *idle)
        self.fillers = tuple(word for word in dict.fromkeys(fillers) if self.insertable(word))
        self.emoji = tuple(filter(self.insertable, lexicon.emoji))
        self.safe_insertions = frozenset(filter(self.insertable, lexicon.safe_insertions))
        self.typist = TypoTable(
            lexicon.keyboard,
            lexicon.look_alikes,
            is_word=self._is_other_word if self.strict else None,
            dangerous=(*lexicon.number_words, *lexicon.negations, *lexicon.weekdays),
        )
        self._stop_words = frozenset(lexicon.stop_words)
        self.replacements = lru_cache(maxsize=1 << 15)(self._replacements)
        self.proposals = lru_cache(maxsize=1 << 15)(self._proposals)

    def insertable(self, word: str) -> bool:
        """Say whether ``word`` may be inserted: in strict, one word without any lock."""
        if not self.strict:
            return True
        return word not in _SPEAKING_FILLERS and " " not in word and not self._guard_of(word)

    def repeatable(self, token: Token) -> bool:
        """Say whether a word may be said twice."""
        return not self.strict or (token.role == FREE and not token.touched)

    def droppable(self, lower: str, *, stop_word: bool) -> bool:
        """Say whether a free word may go: as a stop word, or as any word."""
        if not self.strict:
            return not stop_word or lower in self._stop_words
        kind = _DROPPABLE_STOP_WORDS if stop_word else _DROPPABLE_STOP_WORDS | _DROPPABLE_WORDS
        return lower in kind

    def typable(self, token: Token) -> bool:
        """Say whether a word may take one more typing error; locked ones take none at all."""
        return not self.strict or token.typos > 0

    def joinable(self, left: Token, right: Token) -> bool:
        """Say whether the blank between two words may go."""
        if not right.gap.isspace() or len(right.gap) > 1:
            return False
        if not self.strict:
            return True
        free = LOCKED not in (left.role, right.role)
        whole = right.open and not (left.touched or right.touched)
        return free and whole and self.typist.harmless(left.lower + right.lower)

    def _is_other_word(self, text: str) -> bool:
        return self._lexicon.is_word(text) or bool(self._guard_of(text))

    def _replacements(self, kind: str, lower: str) -> tuple[str, ...]:
        """Return what may stand for a word: ``misspelling``, ``synonym`` or ``neighbour``."""
        lexicon = self._lexicon
        if kind == "misspelling":
            found = lexicon.misspellings.get(lower, ())
            return tuple(new for new in found if self.typist.harmless(new))
        if not self.strict:
            if kind == "synonym":
                return tuple(word for word in lexicon.synonyms_all(lower) if word != lower)
            return tuple(word for word, _ in lexicon.neighbours(lower) if word != lower)
        if lower in self._stop_words or lexicon.majority_pos(lower) in {None, "function"}:
            return ()
        if lexicon.frequency_rank(lower) is None:
            return ()  # Rather a slip of the user's than the word: `book it foe 2 people`.
        table = lexicon.synonyms if kind == "synonym" else lexicon.neighbours_strict
        opposite = lexicon.antonyms(lower)
        return tuple(
            word
            for word in table(lower)
            if word != lower
            and word not in opposite
            and not self._guard_of(word)
            # What nobody says in a request hardly has the sense that is meant: `psyche`.
            and lexicon.frequency_rank(word) is not None
        )

    def _proposals(self, left: str, right: str) -> tuple[str, ...]:
        """Return what a masked language model puts between two words (``""`` = edge)."""
        if not self.strict:
            return self._lexicon.insertions(left, right)
        found = self._lexicon.insertions_strict(left, right)
        return tuple(word for word in found if self.insertable(word))


def _no_guard(word: str) -> str:  # noqa: ARG001 - the signature of `Locks.guard_of`
    return ""
