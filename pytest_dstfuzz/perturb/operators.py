"""The operators on characters and words, and which edits the policy lets them make."""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_dstfuzz.errors import UserError, message_of
from pytest_dstfuzz.noise.model import Change, Changes, Kept, NoiseModel, Site, load_models
from pytest_dstfuzz.noise.tables import LETTER_KINDS, SLIP_KINDS
from pytest_dstfuzz.perturb.draft import (
    FREE,
    KEPT,
    LOCKED,
    NEGATED,
    SHUT,
    TYPO,
    Draft,
    EditResult,
    Mask,
    SlipPlace,
    Slips,
    Support,
    Token,
    drop_word,
    insert_after,
    insert_before,
    join_words,
    pick,
    replace_word,
    retype,
    slip_through,
    touch,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import DEGREES, Locks, without_degrees
from pytest_dstfuzz.perturb.words import (
    Parts,
    Word,
    match_case,
    one_letter_away,
    take_apart,
    word_list,
    word_set,
)
from pytest_dstfuzz.selection import Selection, select
from pytest_dstfuzz.transformations import (
    KINDS,
    SHIPPED,
    SLIP,
    Operator,
    Typo,
    find_operator,
    operator,
)

if TYPE_CHECKING:
    pass

__all__ = ["Candidates"]


#: What a typing error leaves inside a word, and at its end. No question mark: it
#: would turn a statement round. No dash at the end: it would make a number negative.
SEPARATORS: Final = (" ", "-", ".", ",")
ENDINGS: Final = (",", ".", ";", "!")
_APOSTROPHE: Final = re.compile("['’]")
_PARTS: Final = re.compile(r"[ \-.,]")
#: Words shorter than this are not dangerous: too much would be near them.
_SHORTEST: Final = 4
#: Longer ones are no words (addresses, tokens), and judging each typing error would take long.
_LONGEST: Final = 40
#: Letters that stand for words in messages (`u`, `r`, `n`, `2` ...), or are words.
_TEXTING: Final = frozenset("abcdefgikmnopruxy")
#: Letters of a word for each typing error that it may take.
_LETTERS_A_TYPO: Final = 4


def typo_limit(length: int) -> int:
    """Return how many typing errors a word of so many letters takes in strict."""
    return max(1, length // _LETTERS_A_TYPO)


def keeps_letters(old: str, new: str) -> bool:
    """Say whether the parts of one letter that a word has are still there; case does not matter.

    >>> keeps_letters("I", "j"), keeps_letters("I'm", "j'm"), keeps_letters("I'm", "Im")
    (False, False, True)
    """
    parts, others = (_APOSTROPHE.split(text.lower()) for text in (old, new))
    if len(parts) != len(others):
        return len(old) > 1
    return all(
        len(part) != 1 or part == other or (part in other and other.isalpha())
        for part, other in zip(parts, others, strict=True)
    )


def _other_case(old: str, new: str) -> bool:
    """Say whether letters are typed in another case, which leaves a word as it is."""
    return bool(new) and new.lower() == old.lower()


@lru_cache(maxsize=8)
def _near(words: frozenset[str]) -> frozenset[str]:
    """Return the longer ones of some words, and what is a typing error away from one of them.

    The words are those of a lexicon, and a run builds several tables of the same one.
    """
    long = [word for word in words if len(word) >= _SHORTEST]
    return frozenset(near for word in long for near in (word, *one_letter_away(word)))


class TypoTable:
    """Judges whether a misspelling is one, and nothing else.

    Args:
        is_word: whether a text is a word or a value of its own, which no typing error may make;
            ``None`` = anything may come out (profile ``edit-rate``).
        dangerous: lower-cased words; results within one typing error of one of them are refused
            as well.
    """

    def __init__(
        self, is_word: Callable[[str], bool] | None = None, dangerous: Iterable[str] = ()
    ) -> None:
        self._is_word = is_word
        self._dangerous = _near(frozenset(dangerous))
        self.harmless = lru_cache(maxsize=1 << 16)(self._harmless)

    def kept(self, word: str, typos: Iterable[Typo]) -> tuple[Typo, ...]:
        """Return what of some typing errors ``word`` (as typed) can take, in their order."""
        if self._is_word is None:
            return tuple(typo for typo in typos if typo.choices)
        if len(word) > _LONGEST:
            return ()
        kept = []
        for start, end, choices in typos:
            head, tail = word[:start], word[end:]
            good: tuple[str, ...]
            if start == len(word) and choices == ENDINGS:
                good = choices  # A mark after a whole word leaves it as it is.
            else:
                good = tuple(new for new in choices if self._reads_as(word, head + new + tail))
            old = word[start:end]
            good = good or tuple(new for new in choices if _other_case(old, new))
            if good:
                kept.append(Typo(start, end, good))
        return tuple(kept)

    def takes(self, word: str, typo: Typo) -> bool:
        """Say whether `kept` keeps a typing error that has one choice."""
        start, end, (after,) = typo
        if self._is_word is None:
            return True
        if len(word) > _LONGEST:
            return False
        typed = word[:start] + after + word[end:]
        return self._reads_as(word, typed) or _other_case(word[start:end], after)

    def _reads_as(self, word: str, typed: str) -> bool:
        """Say whether what was typed for a word can be read as nothing else."""
        # Few of these texts come again: to remember each would crowd out those that do.
        if not self._harmless(typed):
            return False
        parted = len(word) == 1 or "'" in word or "’" in word
        return not parted or keeps_letters(word, typed)

    def _harmless(self, text: str) -> bool:
        """Say whether ``text``, typed for another word, can be read as nothing else.

        A text with a separator inside is parted there, and each part is judged.
        """
        if self._is_word is None:
            return True
        lower = text.lower()
        if lower.isalpha():  # One piece, like nearly all of them.
            return self._unreadable(lower)
        return all(self._unreadable(piece) for piece in _PARTS.split(lower))

    def _unreadable(self, piece: str) -> bool:
        if len(piece) < 2:
            return bool(piece) and piece not in _TEXTING
        return not (self._is_word and self._is_word(piece)) and piece not in self._dangerous


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


def _no_guard(word: str) -> str:
    return ""


#: What is typed inside a word and at both its ends in the profile ``edit-rate``.
_ANY_PUNCTUATION: Final = (" ", "-", ".", ",", ";", ":", "!", "?", "'", '"', "_", "/")


@operator("char_insert", "typo", name="repeat")
def repeat_letter(word: str) -> list[Typo]:
    """Type a letter twice.

    >>> repeat_letter("ab")
    [Typo(start=1, end=1, choices=('a',)), Typo(start=2, end=2, choices=('b',))]
    """
    return [Typo(place, place, (letter,)) for place, letter in enumerate(word, 1)]


@operator("char_insert", "typo")
def keyboard_insert(word: str, policy: EditPolicy) -> list[Typo]:
    """Hit the key beside a letter as well.

    >>> keyboard_insert("ok", strict)[0]
    Typo(start=1, end=1, choices=('i', 'k', 'l', 'p'))
    """
    return [Typo(place, place, policy.near(letter)) for place, letter in enumerate(word, 1)]


@operator("char_insert", "punctuate")
def punctuation(word: str, policy: EditPolicy) -> list[Typo]:
    """Type a blank or a mark in a word, or a mark after it.

    >>> [(typo.start, "".join(typo.choices)) for typo in punctuation("hello", strict)]
    [(2, ' -.,'), (3, ' -.,'), (5, ',.;!')]
    """
    length = len(word)
    if not policy.strict:
        return [Typo(place, place, _ANY_PUNCTUATION) for place in range(length + 1)]
    inside = [Typo(place, place, SEPARATORS) for place in range(2, length - 1)]
    return [*inside, Typo(length, length, ENDINGS)]


@operator("char_replace", "typo")
def look_alike(word: str, policy: EditPolicy) -> list[Typo]:
    """Put a character that looks alike in the place of a letter.

    >>> look_alike("o", strict)
    [Typo(start=0, end=1, choices=('ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ō', 'о', 'ο'))]
    """
    known = policy.lexicon.look_alikes
    return [Typo(place, place + 1, known.get(c, ())) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def keyboard(word: str, policy: EditPolicy) -> list[Typo]:
    """Hit the key beside a letter instead; in strict no digit, which would be a number.

    >>> keyboard("P", strict), "0" in keyboard("P", edit_rate)[0].choices
    ([Typo(start=0, end=1, choices=('L', 'O'))], True)
    """
    return [Typo(place, place + 1, policy.near(c)) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def swap(word: str, policy: EditPolicy) -> list[Typo]:
    """Type two letters in the wrong order.

    >>> swap("need", strict)
    [Typo(start=0, end=2, choices=('en',)), Typo(start=2, end=4, choices=('de',))]
    """
    if policy.strict and len(word) < _SHORTEST:
        return []
    return [
        Typo(place, place + 2, (word[place + 1] + word[place],))
        for place in range(len(word) - 1)
        if word[place] != word[place + 1]
    ]


@operator("char_drop", "join")
def blank(left: str, right: str, policy: EditPolicy) -> bool:
    """Leave the blank between two words out.

    >>> blank("need", "some", strict), blank("any", "one", strict)
    (True, False)
    """
    return policy.harmless(left + right)


@operator("char_drop", "typo", name="any")
def drop_letter(word: str, policy: EditPolicy) -> list[Typo]:
    """Leave a letter out.

    >>> drop_letter("taxi", strict)[0], drop_letter("bus", strict)
    (Typo(start=0, end=1, choices=('',)), [])
    """
    if policy.strict and len(word) < _SHORTEST:
        return []
    return [Typo(place, place + 1, ("",)) for place in range(len(word))]


#: Words whose loss leaves every slot as it was: articles, forms of `be`, auxiliaries of
#: polite requests, `I`. No pronoun that points to a value, nothing that asks or negates.
_DROPPABLE_STOP_WORDS: Final = word_set(
    "a an the i am is are be been being will would could can very so just too"
)
#: Other words of that kind: politeness, greetings, emphasis.
_DROPPABLE_WORDS: Final = _DROPPABLE_STOP_WORDS | word_set(
    """please kindly thanks hello hi hey oh um uh er erm hmm well really actually basically
    honestly simply truly hopefully anyway maybe perhaps possibly great nice wonderful awesome
    some"""
)


@operator("word_insert", "repeat", name="repeat")
def repeat_word(word: str) -> bool:
    """Say a word twice.

    >>> repeat_word("need")
    True
    """
    return bool(word)


@operator("word_insert", "insert")
def filler(policy: EditPolicy) -> tuple[str, ...]:
    """Insert a filler or a stop word.

    >>> filler(strict)[:3], "not" in filler(strict), "not" in filler(edit_rate)
    (('um', 'uh', 'er'), False, True)
    """
    return policy.fillers


@operator("word_insert", "insert")
def emoji(policy: EditPolicy) -> tuple[str, ...]:
    """Insert an emoji.

    >>> emoji(strict)[:3]
    ('🙂', '😀', '😃')
    """
    return policy.emoji


@operator("word_insert", "insert")
def mlm(left: str, right: str, policy: EditPolicy) -> tuple[str, ...]:
    """Insert a word that a masked language model proposes there.

    >>> mlm("need", "a", strict), mlm("need", "a", edit_rate)[:3]
    (('just', 'please'), ('me', 'book', 'for'))
    """
    if not policy.strict:
        return policy.lexicon.insertions(left, right)
    return tuple(filter(policy.insertable, policy.lexicon.insertions_strict(left, right)))


@operator("word_replace", "respell")
def misspelling(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Misspell a word as people often do.

    >>> misspelling("restaurant", strict)
    ('restaraunt', 'restaurent', 'restraunt', 'resturant')
    """
    known = policy.lexicon.misspellings.get(word, ())
    return tuple(new for new in known if policy.respells(word, new))


@operator("word_replace", "replace")
def synonym(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Put a dictionary synonym in the place of a word.

    >>> synonym("assist", strict), synonym("not", strict)
    (('help',), ())
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.synonyms(word), policy)
    return tuple(new for new in policy.lexicon.synonyms_all(word) if new != word)


@operator("word_replace", "replace")
def neighbour(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Put a neighbour in an embedding space in the place of a word.

    >>> neighbour("monday", strict), neighbour("monday", edit_rate)[:2]
    ((), ('saturday', 'sunday'))
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.neighbours_strict(word), policy)
    return tuple(new for new, _ in policy.lexicon.neighbours(word) if new != word)


def _keeps_the_meaning(word: str, found: tuple[str, ...], policy: EditPolicy) -> tuple[str, ...]:
    """Return what of a reviewed table may stand for a word in an utterance."""
    lexicon = policy.lexicon
    if word in lexicon.stop_words or lexicon.majority_pos(word) in {None, "function"}:
        return ()
    if lexicon.frequency_rank(word) is None:
        return ()  # Rather a typing error of the user's than the word: `book it foe 2 people`.
    # What nobody says in a request hardly has the sense that is meant: `psyche`.
    said = (new for new in found if lexicon.frequency_rank(new) is not None)
    return tuple(new for new in said if policy.replaces(word, new))


@operator("word_drop", "drop")
def stop_word(word: str, policy: EditPolicy) -> bool:
    """Leave a stop word out.

    >>> stop_word("the", strict), stop_word("not", strict), stop_word("not", edit_rate)
    (True, False, True)
    """
    return word in (_DROPPABLE_STOP_WORDS if policy.strict else policy.lexicon.stop_words)


@operator("word_drop", "drop")
def any_word(word: str, policy: EditPolicy) -> bool:
    """Leave a word of any kind out.

    >>> any_word("please", strict), any_word("taxi", strict), any_word("taxi", edit_rate)
    (True, False, True)
    """
    return not policy.strict or word in _DROPPABLE_WORDS


#: A word and all typing errors, or slips, of one kind that it can take, at least one.
Typos = tuple[int, tuple[Any, ...]]


def _gaps(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps in which a word may be put."""
    if not draft.tokens or (used.strict and draft.quota < 1):
        return
    for index, token in enumerate(draft.tokens):
        if token.open:
            yield index
    if draft.open_end:
        yield len(draft.tokens)


def _insertable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps for which there is something to insert."""
    return (place for place in _gaps(draft, used) if _insertions(draft, used, place))


def _insert(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    words = _insertions(draft, used, place)
    return insert_before(draft, place, words[pick(choice, len(words))], used.names)


def _insertions(draft: Draft, used: UsedOperator, place: int) -> tuple[str, ...]:
    """Return what may be put into a gap."""
    sides = _sides(draft, place) if used.operator.asks else ("", "")
    words: tuple[str, ...] = used.ask(*sides)
    return without_degrees(words) if draft.opening(place) == NEGATED else words


def _sides(draft: Draft, place: int) -> tuple[str, str]:
    """Return the words on both sides of a gap, ``""`` at an edge; of an inserted phrase, one."""
    tokens = draft.tokens
    left = tokens[place - 1].lower.split()[-1] if place else ""
    return left, tokens[place].lower.split()[0] if place < len(tokens) else ""


def _repeatable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and draft.quota < 1:
        return
    tokens = draft.tokens
    for index, token in enumerate(tokens):
        allowed = not strict or (token.role in {FREE, KEPT} and not token.touched)
        opening = draft.opening(index + 1)
        degree = opening == NEGATED and token.lower in DEGREES
        if opening and allowed and not degree and used.ask(token.lower):
            yield index


def _repeat(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    """Say a word twice; the second time in lower case, but for ``I``."""
    token = draft.tokens[place]
    word = token.text if token.lower == "i" else token.lower
    # The first of the two stays as it is, else it would no longer be said twice.
    return insert_after(touch(draft, place), place, word, used.names)


def _replaceable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and draft.quota < 1:
        return
    # Another spelling is a typing error: cue words of some length take it.
    spelled = used.operator.kind == "respell"
    for index, token in enumerate(draft.tokens):
        allowed = (not strict or token.typos > 0) if spelled else token.role == FREE
        if allowed and not (strict and token.touched) and used.ask(token.lower):
            yield index


def _replace(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    """Replace a word, in the case of the word replaced."""
    token = draft.tokens[place]
    words = used.ask(token.lower)
    word = match_case(token.text, words[pick(choice, len(words))])
    return replace_word(draft, place, word, used.names)


def _droppable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and (draft.quota < 1 or len(draft.tokens) < 2):
        return
    for index, token in enumerate(draft.tokens):
        untouched = not (strict and token.touched)
        if token.role == FREE and untouched and used.ask(token.lower):
            yield index


def _drop(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    made = drop_word(draft, place, used.names)
    tokens = made.draft.tokens
    if not used.strict or place == len(tokens):
        return made
    # One edit a gap: nothing is put where a word went, and its neighbours do not join.
    shut = tokens[place]._replace(open=SHUT)
    changed = (*tokens[:place], shut, *tokens[place + 1 :])
    return made._replace(draft=made.draft._replace(tokens=changed))


def _typable(draft: Draft, used: UsedOperator) -> Iterator[Typos]:
    """Yield the words that can take a typing error, with all that they can take."""
    ask, strict = used.ask, used.strict
    full = strict and draft.quota < 1
    # A word that is misspelled and then parted is no longer the word that it was.
    whole = strict and used.operator.kind == "punctuate"
    for index, token in enumerate(draft.tokens):
        if strict and (token.typos < 1 or (whole if token.touched else full)):
            continue
        found = ask(token.text)
        if found:
            yield index, found


def _type(draft: Draft, used: UsedOperator, place: tuple[int, Typo], choice: float) -> EditResult:
    index, (start, end, choices) = place
    return retype(draft, index, (start, end), choices[pick(choice, len(choices))], used.names)


def _slippable(draft: Draft, used: UsedOperator) -> Iterator[Typos]:
    """Yield the words at which the noise model has slips of an operator, with those slips."""
    tokens, name = draft.tokens, used.names
    joins = used.operator.kind == "join"
    if name not in draft.slipping or draft.quota < 1 + joins:
        return
    for index, token in enumerate(tokens):
        slips = token.slips.get(name)
        if slips is None or token.touched or (joins and not token.open):
            continue
        places = slips.places
        if not slips.inside:
            at = draft.start(index)
            # Edits of words beside it may have taken away what a slip is about.
            places = tuple(
                place
                for place in places
                if all(_as_typed(tokens, index + mate) for mate in place.mates)
                and draft.text.startswith(place.before, at + place.start)
            )
        if places:
            yield index, places


def _as_typed(tokens: Sequence[Token], index: int) -> bool:
    return 0 <= index < len(tokens) and not tokens[index].touched


def _slip(
    draft: Draft, used: UsedOperator, place: tuple[int, SlipPlace], choice: float
) -> EditResult:
    index, slip = place
    length = len(draft.tokens[index].text)
    end = slip.start + len(slip.before)
    if slip.kind == "blank":
        return join_words(draft, index, used.names)
    if used.operator.transformation == "word_drop":
        return _drop(draft, used, index, choice)
    if used.operator.transformation == "word_insert" and slip.start <= length:
        if slip.start == 0:
            return insert_before(touch(draft, index), index, slip.after[:-1], used.names)
        if slip.start == length and slip.kind == "doubled":
            return insert_after(touch(draft, index), index, slip.after[1:], used.names)
    elif slip.start >= 0 and end <= length:
        return retype(draft, index, (slip.start, end), slip.after, used.names)
    return slip_through(draft, index, slip, used.names)


def _choose_typo(places: list[Typos], parameter: float) -> tuple[int, Any]:
    """Return the typing error that ``parameter`` selects of all those of all words."""
    rest = pick(parameter, sum([len(found) for _, found in places]))
    for index, found in places:
        if rest < len(found):
            return index, found[rest]
        rest -= len(found)
    raise AssertionError("pick returned no index")


def _joinable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the words whose blank before them may go."""
    tokens, strict = draft.tokens, used.strict
    if strict and draft.quota < 2:
        return
    for index in range(1, len(tokens)):
        left, right = tokens[index - 1], tokens[index]
        if not right.gap.isspace() or len(right.gap) > 1:
            continue
        free = LOCKED not in (left.role, right.role)
        whole = right.open and not (left.touched or right.touched)
        if (not strict or (free and whole)) and used.ask(left.lower, right.lower):
            yield index


def _join(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    return join_words(draft, place, used.names)


def _choose_place(places: Sequence[Any], parameter: float) -> Any:
    return places[pick(parameter, len(places))]


def _word_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far a word is from a slot value, words that say what it is for first."""
    token = draft.tokens[place]
    return token.distance, token.role != TYPO


def _gap_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far the gap before a word is from a slot value; a word beside it is 1 away."""
    sides = draft.tokens[max(place - 1, 0) : place + 1]
    return 1 + min(token.distance for token in sides), all(t.role != TYPO for t in sides)


def _typo_remoteness(draft: Draft, place: Typos) -> tuple[int, bool]:
    return _word_remoteness(draft, place[0])


def _word_of_word(draft: Draft, place: int) -> Sequence[int]:
    return (place,)


def _word_of_gap(draft: Draft, place: int) -> Sequence[int]:
    """Return the word beside a gap that is nearer to a slot value."""
    sides = range(max(place - 1, 0), min(place + 1, len(draft.tokens)))
    return (min(sides, key=lambda index: draft.tokens[index].distance),)


def _words_of_typos(draft: Draft, place: Typos) -> Sequence[int]:
    """Return the word once for each typing error in it."""
    return (place[0],) * len(place[1])


class Steps(NamedTuple):
    """How operators of one kind are carried out; not every kind looks at all arguments."""

    #: Yields where the operator may work.
    places: Callable[[Draft, UsedOperator], Iterator[Any]]
    #: Makes the edit at a place; the parameter in [0, 1] chooses what is put there.
    make: Callable[[Draft, UsedOperator, Any, float], EditResult]
    #: What places are sorted by where the nearest to a slot value comes first.
    remoteness: Callable[[Draft, Any], tuple[int, bool]] = _word_remoteness
    #: The word of each thing that the position parameter may select at a place.
    words: Callable[[Draft, Any], Sequence[int]] = _word_of_word
    #: Returns the place that a parameter in [0, 1] selects of all.
    choose: Callable[[list[Any], float], Any] = _choose_place


_TYPING: Final = Steps(_typable, _type, _typo_remoteness, _words_of_typos, _choose_typo)
_STEPS: Final[Mapping[str, Steps]] = {
    "insert": Steps(_insertable, _insert, _gap_remoteness, _word_of_gap),
    "repeat": Steps(_repeatable, _repeat),
    "replace": Steps(_replaceable, _replace),
    "respell": Steps(_replaceable, _replace),
    "drop": Steps(_droppable, _drop),
    "typo": _TYPING,
    "punctuate": _TYPING,
    "join": Steps(_joinable, _join, _gap_remoteness, _word_of_gap),
    SLIP: Steps(_slippable, _slip, _typo_remoteness, _words_of_typos, _choose_typo),
}


def _steps(used: UsedOperator) -> Steps:
    return _STEPS[SLIP if used.by_slips else used.operator.kind]


class Candidates(NamedTuple):
    """What a transformation can do to an utterance."""

    operators: tuple[str, ...]  #: Names of those which have a place.
    #: For each of them the word of every place, in the order in which the position parameter
    #: counts; of a gap the one beside it that is nearer to a slot value.
    words: tuple[tuple[int, ...], ...]


def candidates(draft: Draft, policy: EditPolicy, transformation: str) -> Candidates:
    """Return what `transform` chooses from."""
    found = []
    for used in policy.operators[transformation]:
        steps = _steps(used)
        places = list(steps.places(draft, used))
        if places:
            if policy.nearest_first:
                places.sort(key=partial(steps.remoteness, draft))
            words = tuple(word for place in places for word in steps.words(draft, place))
            found.append((used.operator.name, words))
    return Candidates(tuple(name for name, _ in found), tuple(words for _, words in found))


def transform(
    draft: Draft, policy: EditPolicy, transformation: str, parameters: tuple[float, ...]
) -> EditResult | None:
    """Make one edit, or return ``None`` where no operator has a candidate.

    Parameters: position, operator and, where there is one, choice, each in [0, 1].
    """
    found = []
    for used in policy.operators[transformation]:
        steps = _steps(used)
        candidates = steps.places(draft, used)
        # Whether there is one is all that is asked of an operator which is not chosen.
        if (first := next(candidates, None)) is not None:
            found.append((used, steps, first, candidates))
    if not found:
        return None
    position, which, *choice = parameters
    used, steps, first, rest = found[pick(which, len(found))]
    places = [first, *rest]
    if policy.nearest_first:
        # A stable sort: places equally near stay in reading order.
        places.sort(key=partial(steps.remoteness, draft))
    place = steps.choose(places, position)
    return steps.make(draft, used, place, choice[0] if choice else 0.0)


#: What keyboards of English have.
_KEYS: Final = frozenset(string.printable)
_SHORTENING: Final = frozenset({"missing", "swap"})
#: Locks of words whose letters carry the meaning: another case, a clitic or a missing apostrophe
#: leaves those as they are. `""` is that of a clitic.
_SPELLABLE: Final = frozenset({"", "reference", "cue"})
_UNGUARDED: Final = frozenset({""})
#: Kinds that say first words again, which no operator of words explains.
_PHRASES: Final = frozenset({"restart"})


class NoiseInUse:
    """A noise model under the locks of a run.

    Attributes:
        model: the model.
        rate: slips per word that probabilities are reckoned with.
    """

    def __init__(self, model: NoiseModel, rate: float | None) -> None:
        """Take a model, and the slip rate, where it is not to be the model's own."""
        self.model = model
        self.rate = model.slip_rate if rate is None else rate
        tables = model.file.tables
        drawn = "".join((*tables.keyboard, *tables.keyboard.values()))
        self.keys = _KEYS | set(drawn) | set(drawn.upper())

    @classmethod
    def of(cls, names: tuple[str, ...], rate: float | None) -> NoiseInUse:
        """Take the models of some names or paths as one; see `load_models`."""
        return cls(load_models(names), rate)

    @property
    def makes(self) -> frozenset[tuple[str, str]]:
        """The transformations and operators that the slips of the model are of."""
        return frozenset(
            SLIP_KINDS[kind.name] for kind in self.model.file.kinds if kind.name in SLIP_KINDS
        )

    @property
    def identity(self) -> str:
        """What tells the model apart from others, wherever the files of it lie."""
        return f"{self.model.name} ({self.model.fingerprint[:12]})"


class NoiseSupport:
    """Says what of a noise model the locks leave."""

    def __init__(self, noise: NoiseInUse, policy: EditPolicy) -> None:
        """Take the noise, and what the profile allows of words."""
        self._noise = noise
        self._policy = policy
        in_use = [used for some in policy.operators.values() for used in some]
        self._used = frozenset(used.names for used in in_use)
        self._explained = frozenset(used.names for used in in_use if used.operator.kind == SLIP)
        self._again = noise.model.again
        self._of_word = lru_cache(maxsize=1 << 13)(self._allowed)
        self._of_rest = lru_cache(maxsize=1 << 14)(self._allowed)

    def of(self, utterance: str, parts: Parts, mask: Mask) -> Support:
        """Return what locks and operators in use leave of what people make of an utterance."""
        more = frozenset(utterance) - self._noise.keys
        slips: list[dict[tuple[str, str], Slips]] = [{} for _ in parts.words]
        explained = []

        def kept(site: Site) -> list[Kept]:
            first = bisect_left(parts.starts, site.start)
            last = max(bisect_left(parts.starts, site.end), first + 1)
            begin = max(first - 1, 0)
            end = last if first else max(last, self._again)
            left = parts.words[begin].lower if first else ""
            found = []
            for at, part in site.parts:
                if part.of_word:
                    one = Guards("", mask.roles[first:last], mask.reasons[first:last], (), more)
                    shift, allowed = first, self._of_word(part, one)
                else:
                    roles, reasons = mask.roles[begin:end], mask.reasons[begin:end]
                    several = Guards(left, roles, reasons, mask.open[begin : end + 1], more)
                    shift, allowed = begin, self._of_rest(part, several)
                for (index, name), some in allowed.slips:
                    here = slips[shift + index]
                    here[name] = here[name].and_also(some) if name in here else some
                if allowed.explained.changes:
                    explained.append((at, allowed.explained))
                found.append(allowed.kept)
            return found

        noisy = self._noise.model.of(utterance).given(kept)
        return Support(noisy, tuple(slips), tuple(explained))

    def _allowed(self, part: Changes, guards: Guards) -> Allowed:
        """Return which changes of a part of an utterance no lock forbids."""
        # The word before it ends where the part begins.
        left = (Word(guards.left, 0, 0, guards.left),) if guards.left else ()
        words = (*left, *take_apart(part.text).words)
        ends = [word.end for word in words]
        keys = self._noise.keys | guards.more
        owners = range(len(left), len(words))
        mates = [tuple([other - at for other in owners if other != at]) for at in range(len(words))]
        kept, lost, explained = [], [], []
        found: dict[tuple[int, tuple[str, str]], list[SlipPlace]] = {}
        for change in part.changes:
            kind, start, end, after, weight = change
            before = part.text[start:end]
            at = owner(start, before, ends)
            name = SLIP_KINDS[kind]
            if name not in self._used or not keys.issuperset(after):
                allowed = False
            elif kind in LETTER_KINDS:
                typo = Typo(start - words[at].start, end - words[at].start, (after,))
                allowed = guards.roles[at] != LOCKED and self._may_type(words[at].text, kind, typo)
            else:
                allowed = _RULES[kind](
                    GuardedChange(change, before, at, words, guards, self._policy)
                )
            if not allowed:
                lost.append(weight)
                continue
            kept.append(change)
            others = (*mates[at], -1) if kind == "blank" and at == len(left) else mates[at]
            place = SlipPlace(kind, start - words[at].start, before, after, others)
            found.setdefault((at, name), []).append(place)
            if name in self._explained or kind in _PHRASES:
                explained.append(change)
        slips = {
            (at, name): Slips(tuple(places), all(place.is_in(words[at].text) for place in places))
            for (at, name), places in found.items()
        }
        return Allowed(
            Kept(Changes(part.text, tuple(kept), part.of_word), tuple(lost)),
            tuple(slips.items()),
            Changes(part.text, tuple(explained), part.of_word),
        )

    def _may_type(self, word: str, kind: str, typo: Typo) -> bool:
        """Say whether a slip of letters leaves a word to be read as nothing else."""
        if kind in _SHORTENING and len(word) < _SHORTEST:
            return False
        if kind != "swap" and any(map(str.isdigit, typo.choices[0])):
            return False  # It would be a number.
        return self._policy.takes(word, typo)


def owner(start: int, before: str, ends: Sequence[int]) -> int:
    """Return the word that a change is about, by where words end.

    Of a gap it is the word after it, at the end the last one.
    """
    search: Callable[..., int] = bisect_right if before else bisect_left
    return min(search(ends, start), len(ends) - 1)


class Guards(NamedTuple):
    """What guards the words of a part of an utterance."""

    #: The word before it, in lower case; ``""`` for none, and where it does not matter.
    left: str
    #: As in `Mask`, from that word on.
    roles: tuple[int, ...]
    reasons: tuple[str, ...]
    open: tuple[int, ...]
    #: Characters of the utterance that are not on the keyboard.
    more: frozenset[str]


class Allowed(NamedTuple):
    """What no lock forbids of the changes of a part of an utterance."""

    kept: Kept
    #: Word, counted from the first that has guards; transformation and operator; their slips.
    slips: tuple[tuple[tuple[int, tuple[str, str]], Slips], ...]
    #: Those that the second check has to know.
    explained: Changes


class GuardedChange(NamedTuple):
    """One change of a part of an utterance, with what guards the words."""

    change: Change
    #: What is changed.
    before: str
    #: The word that it is about, see `owner`.
    at: int
    #: Those of the part, and the one before it.
    words: tuple[Word, ...]
    guards: Guards
    policy: EditPolicy

    @property
    def word(self) -> Word:
        """The word that it is about."""
        return self.words[self.at]

    @property
    def role(self) -> int:
        """What may happen to that word."""
        return self.guards.roles[self.at]

    @property
    def brought(self) -> frozenset[str]:
        """The locks that what is written brings with it."""
        guard_of, text = self.policy.guard_of, self.change.after
        return frozenset(guard_of(word) for word in (text, *word_list(text)))

    def is_same(self, count: int = 1) -> bool:
        """Say whether words may be written another way, with the same letters or a clitic."""
        here = slice(self.at, self.at + count)
        pairs = zip(self.guards.roles[here], self.guards.reasons[here], strict=True)
        return all(role != LOCKED or reason in _SPELLABLE for role, reason in pairs)


def _misspells(case: GuardedChange) -> bool:
    word, new = case.word.lower, case.change.after.lower()
    return case.role != LOCKED and case.policy.respells(word, new)


def _joins(case: GuardedChange) -> bool:
    roles = case.guards.roles[case.at - 1 : case.at + 1]
    if LOCKED in roles or not case.guards.open[case.at]:
        return False
    left, right = case.words[case.at - 1 : case.at + 1]
    return case.policy.harmless(left.lower + right.lower)


def _rewrites(case: GuardedChange) -> bool:
    """Write a word as in messages, or two as one: nothing that has a lock comes of it."""
    return case.role != LOCKED and case.brought == _UNGUARDED


def _contracts(case: GuardedChange) -> bool:
    """Write two words as one; the first stays as it is but in `gonna` and its like."""
    words = word_list(case.before)
    if case.change.after.lower().startswith((f"{words[0]}'", f"{words[0]}’")):
        return case.is_same(len(words)) and case.brought <= _SPELLABLE
    roles = case.guards.roles[case.at : case.at + len(words)]
    return LOCKED not in roles and case.brought == _UNGUARDED


def _sounds(case: GuardedChange) -> bool:
    return case.role == FREE and case.brought == _UNGUARDED


def _changes_case(case: GuardedChange) -> bool:
    return case.is_same()


def _drops_apostrophe(case: GuardedChange) -> bool:
    return case.is_same() and case.brought <= _SPELLABLE


def _unstops(case: GuardedChange) -> bool:
    """Leave a final full stop out, but where it may belong to what is before it."""
    return case.guards.open[case.at + 1] != SHUT


def _repeats(case: GuardedChange) -> bool:
    """Say one word, or the first ones, twice: each of them may be."""
    guards, index = case.guards, case.at
    words = word_list(case.change.after)
    opening = guards.open[index + 1 if case.change.kind == "doubled" else index]
    if opening == SHUT or not {FREE, KEPT}.issuperset(guards.roles[index : index + len(words)]):
        return False
    return opening != NEGATED or DEGREES.isdisjoint(words)


def _drops(case: GuardedChange) -> bool:
    if case.role != FREE or len(case.words) < 2:
        return False
    return any(goes(case.word.lower) for goes in case.policy.judged["drop"])


def _inserts(case: GuardedChange) -> bool:
    at_end = case.change.start >= case.word.end
    word = case.change.after.strip().lower()
    known = word in case.policy.fillers or word in case.policy.emoji
    return known and case.guards.open[case.at + at_end] != SHUT


#: Kind of slips of words, or of what is between them -> whether no lock forbids one.
_RULES: Final[Mapping[str, Callable[[GuardedChange], bool]]] = {
    "blank": _joins,
    "misspelling": _misspells,
    "apostrophe": _drops_apostrophe,
    "lower_i": _changes_case,
    "lower_first": _changes_case,
    "full_stop": _unstops,
    "texting": _rewrites,
    "contraction": _contracts,
    "doubled": _repeats,
    "restart": _repeats,
    "dropped": _drops,
    "emoji": _inserts,
    "homophone": _sounds,
    "filler": _inserts,
}
