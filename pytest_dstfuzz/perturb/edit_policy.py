"""What the operators may draw from, for each validity profile.

`EditPolicy` answers for one word or one place; it knows no positions. Everything that it
answers depends on the words alone and is looked up once for each different word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.errors import UserError, message_of
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.typos import TypoTable, keeps_letters
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.selection import Selection, select
from pytest_dstfuzz.transformations import (
    KINDS,
    SHIPPED,
    SLIP,
    Operator,
    Typo,
    find_operator,
)

#: Stop words whose addition says nothing.
_IDLE_STOP_WORDS: Final = ("the", "a", "an", "so", "just")
#: Fillers that correct what was said before, answer the system, or say that nothing changed.
_SPEAKING_FILLERS: Final = frozenset({"okay", "alright", "i mean", "you know", "still"})


class UsedOperator(NamedTuple):
    """An operator under one policy."""

    operator: Operator  #: The operator.
    #: What it says of words, held to the validity profile; every answer is remembered.
    ask: Callable[..., Any]
    strict: bool  #: Whether the locks hold.
    by_slips: bool  #: Whether its places are the slips of a noise model.

    @property
    def names(self) -> tuple[str, str]:
        """Transformation and operator, as edits record them."""
        return self.operator.transformation, self.operator.name


class EditPolicy:
    """Candidates for every operator under one validity profile.

    Attributes:
        strict: whether the locks hold: in ``strict`` and ``natural``.
        by_slips: whether all operators make slips of a noise model alone: in ``natural``.
        lexicon: words to perturb with.
        nearest_first: whether a position parameter counts places by their distance to the
            nearest slot value; in reading order otherwise.
        operators: those in use: transformation -> its operators, in the order in which the
            operator parameter has them.
        judged: those that explain what a variant changed, by their kind: the shipped ones of
            words, whether in use or not, and the others in use.
        fillers: words that operator ``filler`` inserts: fillers, then stop words.
        emoji: what operator ``emoji`` inserts.
        safe_insertions: what a masked language model may insert in strict.
        harmless: says whether a text can be read as no other word than that it was typed for.
        kept: returns what of some typing errors a word can take.
        takes: says whether a word can take a typing error of one choice.
        guard_of: returns the lock that a word brings with it, ``""`` for none.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        locks: Locks | None,
        selection: Selection | None = None,
        *,
        nearest_first: bool = False,
        by_slips: bool = False,
    ) -> None:
        """Build for a profile with the locks that are given, or without any.

        Raises:
            UserError: an operator of ``selection`` that nobody registered.
        """
        self.strict = locks is not None
        self.by_slips = by_slips
        self.lexicon = lexicon
        self.nearest_first = nearest_first
        self.guard_of: Callable[[str], str] = locks.guard_of if locks else _no_guard
        fillers = (*lexicon.fillers, *lexicon.stop_words)
        dangerous: tuple[str, ...] = ()
        if self.strict:
            idle = (word for word in _IDLE_STOP_WORDS if word in lexicon.stop_words)
            fillers = (*lexicon.fillers, *idle)
            dangerous = (*lexicon.number_words, *lexicon.negations, *lexicon.weekdays)
        self.fillers = tuple(word for word in dict.fromkeys(fillers) if self.insertable(word))
        self.emoji = tuple(filter(self.insertable, lexicon.emoji))
        self.safe_insertions = frozenset(filter(self.insertable, lexicon.safe_insertions))
        self._typos = TypoTable(self._is_other_word if self.strict else None, dangerous)
        self.harmless = self._typos.harmless
        self.kept = self._typos.kept
        self.takes = self._typos.takes
        chosen = selection or select()
        self.operators = {
            item.name: tuple(self._used(find_operator(item.name, name)) for name in names)
            for item, names in zip(chosen.transformations, chosen.operators, strict=True)
        }
        self.judged = self._judged()

    def insertable(self, word: str) -> bool:
        """Say whether ``word`` may be inserted: in strict, one word without any lock."""
        if not self.strict:
            return True
        return word not in _SPEAKING_FILLERS and " " not in word and not self.guard_of(word)

    def replaces(self, old: str, new: str) -> bool:
        """Say whether ``new`` may stand for the lower-cased word ``old``."""
        if not self.strict:
            return new != old
        if len(old) == 1 or new == old:  # A word of one letter is not replaced whole.
            return False
        return new not in self.lexicon.antonyms(old) and not self.guard_of(new)

    def respells(self, old: str, new: str) -> bool:
        """Say whether ``new`` may be a misspelling of the lower-cased word ``old``."""
        return self.harmless(new) and (not self.strict or keeps_letters(old, new))

    def near(self, character: str) -> tuple[str, ...]:
        """Return the keys beside that of a character, in its case."""
        found = self.lexicon.keyboard.get(character.lower(), ())
        if self.strict:  # A digit in the row above would be a number.
            found = tuple(key for key in found if not key.isdigit())
        return tuple(key.upper() for key in found) if character.isupper() else found

    def _is_other_word(self, text: str) -> bool:
        return self.lexicon.is_word(text) or bool(self.guard_of(text))

    def _judged(self) -> dict[str, tuple[Callable[..., Any], ...]]:
        shipped = [find_operator(item.name, name) for item in SHIPPED for name in item.operators]
        known = [used for found in self.operators.values() for used in found]
        # What is put between words is judged by the lists that it is drawn from.
        words = [self._used(op) for op in shipped if KINDS[op.kind].takes == ("word",)]
        judging = [*words, *(used for used in known if not used.operator.shipped)]
        return {
            kind: tuple(used.ask for used in judging if used.operator.kind == kind)
            for kind in KINDS
        }

    def _used(self, operator: Operator) -> UsedOperator:
        function = operator.function
        if operator.policy:
            function = partial(function, policy=self)
        if not operator.shipped:
            function = partial(self._held, operator, function)
        slips = self.by_slips or operator.kind == SLIP
        if not operator.asks:
            answer = function()
            return UsedOperator(operator, lambda left, right: answer, self.strict, slips)  # noqa: ARG005 - the same
        if operator.kind in {"typo", "punctuate"}:
            function = partial(self._kept, function)
        return UsedOperator(operator, lru_cache(maxsize=1 << 16)(function), self.strict, slips)

    def _kept(self, function: Callable[[str], Iterable[Typo]], word: str) -> tuple[Typo, ...]:
        return self._typos.kept(word, function(word))

    def _held(self, operator: Operator, function: Callable[..., Any], *words: str) -> Any:
        """Return what an operator of others says, held to its kind and the profile."""
        try:
            said = function(*words)
            if not KINDS[operator.kind].chooses:
                return bool(said)
            if KINDS[operator.kind].level == "char":
                return tuple(_typo(typo, words[0]) for typo in _ordered(said))
            choices = tuple(map(_text, _ordered(said)))
        except Exception as error:
            raise UserError(
                f"the operator {operator.label} fails on {', '.join(map(repr, words)) or 'a call'}:"
                f" {type(error).__name__}: {message_of(error)}"
            ) from error
        return tuple(new for new in dict.fromkeys(choices) if self._fits(operator, words, new))

    def _fits(self, operator: Operator, words: tuple[str, ...], new: str) -> bool:
        """Say whether a word of an operator of others may be put where it says."""
        lower = new.lower()
        if self.strict and word_list(new) != [lower]:
            return False  # Not one word, or not a word alone.
        if operator.kind == "insert":
            return self.insertable(lower)
        if operator.kind == "respell":
            return lower != words[0] and self.respells(words[0], lower)
        return self.replaces(words[0], lower)


def _ordered(said: Any) -> Iterable[Any]:
    if isinstance(said, str | set | frozenset):
        raise TypeError(
            f"it returned a {type(said).__name__}, not a tuple or a list: choices have to stand in "
            "the same order in every process"
        )
    return tuple(said)


def _text(choice: object) -> str:
    if not isinstance(choice, str) or not choice.strip():
        raise TypeError(f"it returned {choice!r} among its choices, which is no word")
    return choice


def _typo(place: Any, word: str) -> Typo:
    typo = Typo(*place)
    if isinstance(typo.choices, str) or not 0 <= typo.start <= typo.end <= len(word):
        raise ValueError(f"it returned {typo}, which is no place in {word!r} with choices")
    old = word[typo.start : typo.end]
    return typo._replace(choices=tuple(new for new in typo.choices if new != old))


def _no_guard(word: str) -> str:  # noqa: ARG001 - the signature of `Locks.guard_of`
    return ""
