"""The operators on characters and words, and the policy that limits their edits."""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rapidfuzz.distance import OSA

from pytest_dstfuzz.errors import UserError, message_of, passes_through, redact_text
from pytest_dstfuzz.noise.model import (
    Change,
    Changes,
    ConditionalChanges,
    NoiseModel,
    Site,
    load_models,
)
from pytest_dstfuzz.noise.tables import LETTER_KINDS, MISSPELLING, SLIP_KINDS, TWO
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
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import DEGREES, Locks, without_degrees
from pytest_dstfuzz.perturb.reader import BESIDE, SlipReader
from pytest_dstfuzz.perturb.sentences import WordsBeside, neighbour_counts
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


#: Marks that a typing error inserts inside a word, and at its end. A question mark is left out,
#: because it would turn a statement into a question, and a dash at the end, which could be a minus.
SEPARATORS: Final = (" ", "-", ".", ",")
ENDINGS: Final = (",", ".", ";", "!")
_APOSTROPHE: Final = re.compile("['’]")
_PARTS: Final = re.compile(r"[ \-.,]")
#: Minimum length of a dangerous word. Too many words are near shorter words.
_SHORTEST: Final = 4
#: Maximum length of a word that takes typing errors. Longer texts are addresses or tokens, and to
#: check each of their typing errors would be slow.
_LONGEST: Final = 40
#: Letters that are words, or that stand for words in text messages (`u`, `r`, `n` ...).
_TEXTING: Final = frozenset("abcdefgikmnopruxy")
#: A word may take one typing error for each group of this many letters.
_LETTERS_A_TYPO: Final = 4


def typo_limit(length: int) -> int:
    """Return the number of typing errors that a word of this length may take in ``strict``."""
    return max(1, length // _LETTERS_A_TYPO)


def keeps_letters(old: str, new: str) -> bool:
    """Return whether ``new`` keeps the single letters of ``old``, in any case.

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
    """Return whether only the case of the letters differs, so that the word is the same."""
    return bool(new) and new.lower() == old.lower()


@lru_cache(maxsize=8)
def _near(words: frozenset[str]) -> frozenset[str]:
    """Return the long words in ``words``, and all texts one typing error away from them.

    The result is cached because a run builds several tables from the same lexicon.
    """
    long = [word for word in words if len(word) >= _SHORTEST]
    return frozenset(near for word in long for near in (word, *one_letter_away(word)))


class TypoTable:
    """Decides whether a misspelling can only be read as the intended word.

    Args:
        is_word: returns whether a text is a word or a value. No typing error may produce such a
            text. ``None`` accepts every result (profile ``edit-rate``).
        dangerous: lower-cased words. No typing error may produce a text that is one typing error
            away from such a word.
    """

    def __init__(
        self, is_word: Callable[[str], bool] | None = None, dangerous: Iterable[str] = ()
    ) -> None:
        self._is_word = is_word
        self._dangerous = _near(frozenset(dangerous))
        self.harmless = lru_cache(maxsize=1 << 16)(self._harmless)

    def kept(self, word: str, typos: Iterable[Typo]) -> tuple[Typo, ...]:
        """Return the typing errors that ``word`` (as typed) can take, in the same order."""
        if self._is_word is None:
            return tuple(typo for typo in typos if typo.choices)
        if len(word) > _LONGEST:
            return ()
        kept = []
        for start, end, choices in typos:
            head, tail = word[:start], word[end:]
            good: tuple[str, ...]
            if start == len(word) and choices == ENDINGS:
                good = choices  # A mark after a whole word does not change the word.
            else:
                good = tuple(new for new in choices if self._reads_as(word, head + new + tail))
            old = word[start:end]
            good = good or tuple(new for new in choices if _other_case(old, new))
            if good:
                kept.append(Typo(start, end, good))
        return tuple(kept)

    def takes(self, word: str, typo: Typo) -> bool:
        """Return whether `kept` keeps the typing error that a choice makes."""
        start, end, (after,) = typo
        if self._is_word is None:
            return True
        if len(word) > _LONGEST:
            return False
        typed = word[:start] + after + word[end:]
        return self._reads_as(word, typed) or _other_case(word[start:end], after)

    def _reads_as(self, word: str, typed: str) -> bool:
        """Return whether a misspelling of a word can only be read as this word."""
        # Do not cache this. Most texts never recur, and would push recurring ones out of a cache.
        if not self._harmless(typed):
            return False
        parted = len(word) == 1 or "'" in word or "’" in word
        return not parted or keeps_letters(word, typed)

    def _harmless(self, text: str) -> bool:
        """Return whether ``text``, typed for another word, can only be read as that word.

        If the text contains a separator, each part is checked.
        """
        if self._is_word is None:
            return True
        lower = text.lower()
        if lower.isalpha():  # Fast path: nearly all texts have one part.
            return self._unreadable(lower)
        return all(self._unreadable(piece) for piece in _PARTS.split(lower))

    def _unreadable(self, piece: str) -> bool:
        if len(piece) < 2:
            return bool(piece) and piece not in _TEXTING
        return not (self._is_word and self._is_word(piece)) and piece not in self._dangerous


#: Stop words that add no meaning.
_IDLE_STOP_WORDS: Final = ("the", "a", "an", "so", "just")
#: Fillers that correct an earlier statement, answer the system, or state that nothing changed.
_SPEAKING_FILLERS: Final = frozenset({"okay", "alright", "i mean", "you know", "still"})


class UsedOperator(NamedTuple):
    """An operator under one policy."""

    operator: Operator  #: The operator.
    #: The function of the operator, with a cache. Its results are limited to the profile.
    ask: Callable[..., Any]
    strict: bool  #: Whether locks apply.
    by_slips: bool  #: Whether it only makes the slips of a noise model.

    @property
    def names(self) -> tuple[str, str]:
        """The names of transformation and operator, as edits record them."""
        return self.operator.transformation, self.operator.name


class EditPolicy:
    """The candidates of every operator under one validity profile.

    Attributes:
        strict: whether locks apply, as in ``strict`` and ``natural``.
        by_slips: whether all operators only make the slips of a noise model, as in ``natural``.
        lexicon: words for the edits.
        nearest_first: whether a position parameter counts places by their distance to the
            nearest slot value. Otherwise it counts in reading order.
        operators: the operators in use: transformation -> its operators, in the order in which
            the operator parameter counts them.
        judged: kind -> the operators that may explain a change in a variant. These are all shipped
            operators on words, and other operators if they are in use.
        fillers: words that the operator ``filler`` inserts: fillers, then stop words.
        emoji: emoji that the operator ``emoji`` inserts.
        safe_insertions: words that a masked language model may insert in ``strict``.
        harmless: returns whether a reader can take a text only for the intended word.
        kept: returns the typing errors that a word can take.
        takes: returns whether a word can take a typing error with one choice.
        guard_of: returns the lock that a word has in every context, ``""`` for none.
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
        """Build the policy of a profile with or without locks.

        Raises:
            UserError: If an operator in ``selection`` is not registered.
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
        """Return whether ``word`` may be inserted.

        In ``strict``, it must be one word without a lock.
        """
        if not self.strict:
            return True
        return word not in _SPEAKING_FILLERS and " " not in word and not self.guard_of(word)

    def replaces(self, old: str, new: str) -> bool:
        """Return whether ``new`` may replace the lower-cased word ``old``."""
        if not self.strict:
            return new != old
        if len(old) == 1 or new == old:  # Words of one letter are never replaced.
            return False
        return new not in self.lexicon.antonyms(old) and not self.guard_of(new)

    def respells(self, old: str, new: str) -> bool:
        """Return whether ``new`` may be a misspelling of the lower-cased word ``old``."""
        return self.harmless(new) and (not self.strict or keeps_letters(old, new))

    def near(self, character: str) -> tuple[str, ...]:
        """Return the keys around the key of a character, in the case of the character."""
        found = self.lexicon.keyboard.get(character.lower(), ())
        if self.strict:  # Leave out the row of digits: a digit would make a number.
            found = tuple(key for key in found if not key.isdigit())
        return tuple(key.upper() for key in found) if character.isupper() else found

    def _is_other_word(self, text: str) -> bool:
        return self.lexicon.is_word(text) or bool(self.guard_of(text))

    def _judged(self) -> dict[str, tuple[Callable[..., Any], ...]]:
        shipped = [find_operator(item.name, name) for item in SHIPPED for name in item.operators]
        known = [used for found in self.operators.values() for used in found]
        # Insertions come from lists, so check them against these lists.
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
        """Return the choices of another package's operator that its kind and the profile allow."""
        try:
            said = function(*words)
            if not KINDS[operator.kind].chooses:
                return bool(said)
            if KINDS[operator.kind].level == "char":
                return tuple(_typo(typo, words[0]) for typo in _ordered(said))
            choices = tuple(map(_text, _ordered(said)))
        except BaseException as error:
            if passes_through(error):
                raise
            raise UserError(
                f"the operator {operator.label} fails on "
                f"{redact_text(', '.join(map(repr, words))) or 'a call'}: {type(error).__name__}: "
                f"{redact_text(message_of(error))}"
            ) from error
        return tuple(new for new in dict.fromkeys(choices) if self._fits(operator, words, new))

    def _fits(self, operator: Operator, words: tuple[str, ...], new: str) -> bool:
        """Return whether a choice of another package's operator is allowed."""
        lower = new.lower()
        if self.strict and word_list(new) != [lower]:
            return False  # It is not a single word, or has other characters around the word.
        if operator.kind == "insert":
            return self.insertable(lower)
        if operator.kind == "respell":
            return lower != words[0] and self.respells(words[0], lower)
        return self.replaces(words[0], lower)


def _ordered(said: Any) -> Iterable[Any]:
    if isinstance(said, str | set | frozenset):
        raise TypeError(
            f"it returned a {type(said).__name__}, not a tuple or a list: choices must have the "
            "same order in every process"
        )
    return tuple(said)


def _text(choice: object) -> str:
    if not isinstance(choice, str) or not choice.strip():
        raise TypeError(f"one of the choices that it returned is no word: {choice!r}")
    return choice


def _typo(place: Any, word: str) -> Typo:
    typo = Typo(*place)
    if isinstance(typo.choices, str) or not 0 <= typo.start <= typo.end <= len(word):
        raise ValueError(f"it returned {typo}, which is not a place in {word!r} with choices")
    old = word[typo.start : typo.end]
    return typo._replace(choices=tuple(new for new in typo.choices if new != old))


def _no_guard(word: str) -> str:
    return ""


#: Characters typed inside a word and at both its ends in the profile ``edit-rate``.
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
    """Also hit a neighbouring key of a letter.

    >>> keyboard_insert("ok", strict)[0]
    Typo(start=1, end=1, choices=('i', 'k', 'l', 'p'))
    """
    return [Typo(place, place, policy.near(letter)) for place, letter in enumerate(word, 1)]


@operator("char_insert", "punctuate")
def punctuation(word: str, policy: EditPolicy) -> list[Typo]:
    """Type a blank or a mark inside a word, or a mark after it.

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
    """Replace a letter by a character that looks like it.

    >>> look_alike("o", strict)
    [Typo(start=0, end=1, choices=('ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ō', 'о', 'ο'))]
    """
    known = policy.lexicon.look_alikes
    return [Typo(place, place + 1, known.get(c, ())) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def keyboard(word: str, policy: EditPolicy) -> list[Typo]:
    """Hit a neighbouring key instead of a letter. In ``strict``, digits are never typed.

    >>> keyboard("P", strict), "0" in keyboard("P", edit_rate)[0].choices
    ([Typo(start=0, end=1, choices=('L', 'O'))], True)
    """
    return [Typo(place, place + 1, policy.near(c)) for place, c in enumerate(word)]


@operator("char_replace", "typo")
def swap(word: str, policy: EditPolicy) -> list[Typo]:
    """Swap two letters.

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
    """Omit the blank between two words.

    >>> blank("need", "some", strict), blank("any", "one", strict)
    (True, False)
    """
    return policy.harmless(left + right)


@operator("char_drop", "typo", name="any")
def drop_letter(word: str, policy: EditPolicy) -> list[Typo]:
    """Omit a letter.

    >>> drop_letter("taxi", strict)[0], drop_letter("bus", strict)
    (Typo(start=0, end=1, choices=('',)), [])
    """
    if policy.strict and len(word) < _SHORTEST:
        return []
    return [Typo(place, place + 1, ("",)) for place in range(len(word))]


#: Stop words that can be dropped without changing a slot: articles, forms of `be`, auxiliaries of
#: polite requests, `I`. There are no pronouns that refer to a value, question words or negations.
_DROPPABLE_STOP_WORDS: Final = word_set(
    "a an the i am is are be been being will would could can very so just too"
)
#: Other words that can be dropped: politeness, greetings, emphasis.
_DROPPABLE_WORDS: Final = _DROPPABLE_STOP_WORDS | word_set(
    """please kindly thanks hello hi hey oh um uh er erm hmm well really actually basically
    honestly simply truly hopefully anyway maybe perhaps possibly great nice wonderful awesome
    some"""
)


@operator("word_insert", "repeat", name="repeat")
def repeat_word(word: str) -> bool:
    """Repeat a word.

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
    """Insert a word proposed by a masked language model.

    >>> mlm("need", "a", strict), mlm("need", "a", edit_rate)[:3]
    (('just', 'please'), ('me', 'book', 'for'))
    """
    if not policy.strict:
        return policy.lexicon.insertions(left, right)
    return tuple(filter(policy.insertable, policy.lexicon.insertions_strict(left, right)))


@operator("word_replace", "respell")
def misspelling(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Replace a word by a common misspelling.

    >>> misspelling("restaurant", strict)
    ('restaraunt', 'restaurent', 'restraunt', 'resturant')
    """
    known = policy.lexicon.misspellings.get(word, ())
    return tuple(new for new in known if policy.respells(word, new))


@operator("word_replace", "replace")
def synonym(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Replace a word by a dictionary synonym.

    >>> synonym("assist", strict), synonym("not", strict)
    (('help',), ())
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.synonyms(word), policy)
    return tuple(new for new in policy.lexicon.synonyms_all(word) if new != word)


@operator("word_replace", "replace")
def neighbour(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Replace a word by a neighbour in an embedding space.

    >>> neighbour("monday", strict), neighbour("monday", edit_rate)[:2]
    ((), ('saturday', 'sunday'))
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.neighbours_strict(word), policy)
    return tuple(new for new, _ in policy.lexicon.neighbours(word) if new != word)


def _keeps_the_meaning(word: str, found: tuple[str, ...], policy: EditPolicy) -> tuple[str, ...]:
    """Return the words of a reviewed table that may replace a word in an utterance."""
    lexicon = policy.lexicon
    if word in lexicon.stop_words or lexicon.majority_pos(word) in {None, "function"}:
        return ()
    if lexicon.frequency_rank(word) is None:
        return ()  # The word is probably a typing error of the user: `book it foe 2 people`.
    # Leave out words that never occur in requests (`psyche`), since they rarely have this sense.
    said = (new for new in found if lexicon.frequency_rank(new) is not None)
    return tuple(new for new in said if policy.replaces(word, new))


@operator("word_drop", "drop")
def stop_word(word: str, policy: EditPolicy) -> bool:
    """Omit a stop word.

    >>> stop_word("the", strict), stop_word("not", strict), stop_word("not", edit_rate)
    (True, False, True)
    """
    return word in (_DROPPABLE_STOP_WORDS if policy.strict else policy.lexicon.stop_words)


@operator("word_drop", "drop")
def any_word(word: str, policy: EditPolicy) -> bool:
    """Omit any word.

    >>> any_word("please", strict), any_word("taxi", strict), any_word("taxi", edit_rate)
    (True, False, True)
    """
    return not policy.strict or word in _DROPPABLE_WORDS


#: The index of a word, and all its typing errors or slips of one kind, at least one.
Typos = tuple[int, tuple[Any, ...]]


def _gaps(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps that take an insertion."""
    if not draft.tokens or (used.strict and draft.quota < 1):
        return
    for index, token in enumerate(draft.tokens):
        if token.open:
            yield index
    if draft.open_end:
        yield len(draft.tokens)


def _insertable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps with at least one candidate for insertion."""
    return (place for place in _gaps(draft, used) if _insertions(draft, used, place))


def _insert(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    words = _insertions(draft, used, place)
    return insert_before(draft, place, words[pick(choice, len(words))], used.names)


def _insertions(draft: Draft, used: UsedOperator, place: int) -> tuple[str, ...]:
    """Return the candidates for insertion into a gap."""
    sides = _sides(draft, place) if used.operator.asks else ("", "")
    words: tuple[str, ...] = used.ask(*sides)
    return without_degrees(words) if draft.opening(place) == NEGATED else words


def _sides(draft: Draft, place: int) -> tuple[str, str]:
    """Return the words on both sides of a gap, ``""`` at an edge. Inserted phrases are split."""
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
    """Repeat a word. The repetition is in lower case, except ``I``."""
    token = draft.tokens[place]
    word = token.text if token.lower == "i" else token.lower
    # Close the first word to edits, so that both words stay equal.
    return insert_after(touch(draft, place), place, word, used.names)


def _replaceable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and draft.quota < 1:
        return
    # A misspelling counts as a typing error, which long cue words may take.
    spelled = used.operator.kind == "respell"
    for index, token in enumerate(draft.tokens):
        allowed = (not strict or token.typos > 0) if spelled else token.role == FREE
        if allowed and not (strict and token.touched) and used.ask(token.lower):
            yield index


def _replace(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    """Replace a word, and keep its case."""
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
    # Allow one edit per gap: insert no word for a dropped word, and do not join its neighbours.
    shut = tokens[place]._replace(open=SHUT)
    changed = (*tokens[:place], shut, *tokens[place + 1 :])
    return made._replace(draft=made.draft._replace(tokens=changed))


def _typable(draft: Draft, used: UsedOperator) -> Iterator[Typos]:
    """Yield each word that can take a typing error, with its possible typing errors."""
    ask, strict = used.ask, used.strict
    full = strict and draft.quota < 1
    # Do not split a misspelled word, because nobody would recognise it.
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
    """Yield the words that the noise model can mistype by this operator, with their slips."""
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
            # Edits to neighbouring words may have removed the text that a slip changes.
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
    """Return the typing error that ``parameter`` selects from all words."""
    rest = pick(parameter, sum([len(found) for _, found in places]))
    for index, found in places:
        if rest < len(found):
            return index, found[rest]
        rest -= len(found)
    raise AssertionError("pick returned no index")


def _joinable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the words that can be joined to the word before."""
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
    """Return the distance of a word to a slot value, and false for cue words, which come first."""
    token = draft.tokens[place]
    return token.distance, token.role != TYPO


def _gap_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return the distance of a gap to a slot value. The gap next to a value has distance 1."""
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
    """Return the index of the word once for each of its typing errors."""
    return (place[0],) * len(place[1])


class Steps(NamedTuple):
    """The steps of the operators of one kind. Some kinds ignore some of the arguments."""

    #: Yields the places that the operator can change.
    places: Callable[[Draft, UsedOperator], Iterator[Any]]
    #: Makes the edit at a place. The parameter in [0, 1] chooses the new text.
    make: Callable[[Draft, UsedOperator, Any, float], EditResult]
    #: Returns the sort key of a place if places nearest to a slot value come first.
    remoteness: Callable[[Draft, Any], tuple[int, bool]] = _word_remoteness
    #: Returns a word for each item at a place that the position parameter can select.
    words: Callable[[Draft, Any], Sequence[int]] = _word_of_word
    #: Returns the place that a parameter in [0, 1] selects.
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
    """The possible edits of a transformation to an utterance."""

    operators: tuple[str, ...]  #: Names of the operators with at least one place.
    #: For each operator, the word index of every place, in the order of the position parameter. If
    #: the place is a gap, this is the neighbouring word that is nearer to a slot value.
    words: tuple[tuple[int, ...], ...]


def candidates(draft: Draft, policy: EditPolicy, transformation: str) -> Candidates:
    """Return the choices that `transform` has for a draft."""
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
    """Make one edit. Return ``None`` if no operator has a candidate.

    The parameters are position, operator and, for some transformations, choice, each in [0, 1].
    """
    found = []
    for used in policy.operators[transformation]:
        steps = _steps(used)
        candidates = steps.places(draft, used)
        # For an operator that is not chosen, it is enough to know that it has a place.
        if (first := next(candidates, None)) is not None:
            found.append((used, steps, first, candidates))
    if not found:
        return None
    position, which, *choice = parameters
    used, steps, first, rest = found[pick(which, len(found))]
    places = [first, *rest]
    if policy.nearest_first:
        # The sort is stable, so equally near places stay in reading order.
        places.sort(key=partial(steps.remoteness, draft))
    place = steps.choose(places, position)
    return steps.make(draft, used, place, choice[0] if choice else 0.0)


#: Characters on English keyboards.
_KEYS: Final = frozenset(string.printable)
_SHORTENING: Final = frozenset({"missing", "swap"})
#: Words with these locks may change case, become a clitic or lose an apostrophe, because this does
#: not change their meaning. `""` is the lock of a clitic.
_SPELLABLE: Final = frozenset({"", "reference", "cue"})
_UNGUARDED: Final = frozenset({""})
#: Words with these locks may take a slip if a careful reader recovers the word.
RECOVERABLE: Final = frozenset(
    {"value", "number", "cue", "reference", "dontcare", "affirmation", "negation", "name"}
)
#: The same locks, and ``""``, which is the lock of words with a clitic (`that's`).
_READABLE: Final = RECOVERABLE | {""}
#: The lock on a name that the data does not know.
UNKNOWN_NAME: Final = "unknown name"
#: Kinds of slips inside a word.
IN_WORDS: Final = frozenset({*LETTER_KINDS, MISSPELLING, TWO})
#: Maximum number of slips between two words that a slip may confuse.
_CONFUSED: Final = 3
#: Kinds of slips that repeat the first words. No operator on words explains such a change.
_PHRASES: Final = frozenset({"restart"})


class NoiseInUse:
    """A noise model with the slip rate of the run.

    Attributes:
        model: the model.
        rate: slips per word, for computing probabilities.
    """

    def __init__(self, model: NoiseModel, rate: float | None) -> None:
        """Store a model, and the slip rate if it differs from the model's."""
        self.model = model
        self.rate = model.slip_rate if rate is None else rate
        tables = model.file.tables
        drawn = "".join((*tables.keyboard, *tables.keyboard.values()))
        self.keys = _KEYS | set(drawn) | set(drawn.upper())

    @classmethod
    def of(cls, names: tuple[str, ...], rate: float | None) -> NoiseInUse:
        """Load models by names or paths, and merge them into one. See `load_models`."""
        return cls(load_models(names), rate)

    @property
    def makes(self) -> frozenset[tuple[str, str]]:
        """The transformations and operators of the slips that the model makes."""
        return frozenset(
            SLIP_KINDS[kind.name] for kind in self.model.file.kinds if kind.name in SLIP_KINDS
        )

    @property
    def identity(self) -> str:
        """A name that identifies the model. It does not depend on the paths of its files."""
        return f"{self.model.name} ({self.model.fingerprint[:12]})"


class NoiseSupport:
    """Computes the slips of a noise model that the locks allow."""

    def __init__(
        self, noise: NoiseInUse, policy: EditPolicy, reader: SlipReader | None = None
    ) -> None:
        """Store the noise, the policy of the profile, and the reader.

        Args:
            noise: the noise model of the run.
            policy: the policy of the profile.
            reader: decides which slips in locked words are recoverable. ``None`` allows no slip.
        """
        self._noise = noise
        self._policy = policy
        self._reader = reader
        in_use = [used for some in policy.operators.values() for used in some]
        self._used = frozenset(used.names for used in in_use)
        self._explained = frozenset(used.names for used in in_use if used.operator.kind == SLIP)
        self._again = noise.model.again
        self._of_word = lru_cache(maxsize=1 << 13)(self._allowed)
        self._of_rest = lru_cache(maxsize=1 << 14)(self._allowed)

    def of(
        self, utterance: str, parts: Parts, mask: Mask, said: frozenset[str] = frozenset()
    ) -> Support:
        """Return the slips in an utterance that the locks and the operators in use allow.

        Args:
            utterance: the clean utterance.
            parts: its words.
            mask: its locks.
            said: words of the dialogue so far and of the answer, in lower case.
        """
        more = frozenset(utterance) - self._noise.keys
        reasons_of = self._reasons(parts, mask, said)
        sides_of = self._sides(parts, mask, reasons_of)
        slips: list[dict[tuple[str, str], Slips]] = [{} for _ in parts.words]
        explained = []

        def kept(site: Site) -> list[ConditionalChanges]:
            first = bisect_left(parts.starts, site.start)
            last = max(bisect_left(parts.starts, site.end), first + 1)
            begin = max(first - 1, 0)
            end = last if first else max(last, self._again)
            left = parts.words[begin].lower if first else ""
            found = []
            for at, part in site.parts:
                if part.of_word:
                    roles, reasons = mask.roles[first:last], reasons_of[first:last]
                    heard = self._heard(part.text, reasons, said)
                    one = Guards("", roles, reasons, (), more, heard, sides_of[first:last])
                    shift, allowed = first, self._of_word(part, one)
                else:
                    roles, reasons = mask.roles[begin:end], reasons_of[begin:end]
                    heard = self._heard(part.text, reasons, said)
                    inside = any(change.kind in IN_WORDS for change in part.changes)
                    sides = sides_of[begin:end] if inside else (None,) * (end - begin)
                    open_ = mask.open[begin : end + 1]
                    several = Guards(left, roles, reasons, open_, more, heard, sides)
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

    def _allowed(self, part: Changes, guards: Guards) -> AllowedChanges:
        """Return the changes of a part of an utterance that the locks allow."""
        # Put the word before the part into it as a word of length 0 at its start.
        left = (Word(guards.left, 0, 0, guards.left),) if guards.left else ()
        words = (*left, *take_apart(part.text).words)
        ends = [word.end for word in words]
        keys = self._noise.keys | guards.more
        owners = range(len(left), len(words))
        mates = [tuple([other - at for other in owners if other != at]) for at in range(len(words))]
        kept, lost, explained = [], [], []
        places = [owner(start, part.text[start:end], ends) for _, start, end, *_ in part.changes]
        recoverable = self._recoverable(part, words, places, guards)
        found: dict[tuple[int, tuple[str, str]], list[SlipPlace]] = {}
        for change, at in zip(part.changes, places, strict=True):
            kind, start, end, after, weight = change
            before = part.text[start:end]
            name = SLIP_KINDS[kind]
            recovered = False
            if name not in self._used or not keys.issuperset(after):
                allowed = False
            elif _needs_reader(kind, guards.roles[at]):
                allowed = recovered = change in recoverable
            elif kind in LETTER_KINDS:
                typo = Typo(start - words[at].start, end - words[at].start, (after,))
                allowed = self._may_type(words[at].text, kind, typo)
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
            if recovered or name in self._explained or kind in _PHRASES:
                explained.append(change)
        slips = {
            (at, name): Slips(tuple(places), all(place.is_in(words[at].text) for place in places))
            for (at, name), places in found.items()
        }
        return AllowedChanges(
            ConditionalChanges(Changes(part.text, tuple(kept), part.of_word), tuple(lost)),
            tuple(slips.items()),
            Changes(part.text, tuple(explained), part.of_word),
        )

    def _recoverable(
        self, part: Changes, words: Sequence[Word], places: Sequence[int], guards: Guards
    ) -> set[Change]:
        """Return the slips that are allowed only because a reader recovers the word.

        Args:
            part: the slips.
            words: the words of the part.
            places: the index of the word of each slip.
            guards: the locks on the words.
        """
        if self._reader is None:
            return set()
        typed: dict[int, dict[str, Change]] = {}
        for change, at in zip(part.changes, places, strict=True):
            kind, start, end, after, _ = change
            word, role = words[at], guards.roles[at]
            if not _needs_reader(kind, role) or SLIP_KINDS[kind] not in self._used:
                continue
            if role == LOCKED and guards.reasons[at] not in _READABLE:
                continue
            if word.start <= start and end <= word.end:
                before, rest = part.text[word.start : start], part.text[end : word.end]
                typed.setdefault(at, {})[before + after + rest] = change
        return {
            change
            for at, some in typed.items()
            for change, reading in zip(
                some.values(),
                self._reader.read_all(
                    words[at].lower,
                    [*some],
                    guards.said,
                    guards.sides[at],
                ),
                strict=True,
            )
            if reading.recoverable
        }

    def _reasons(self, parts: Parts, mask: Mask, said: frozenset[str]) -> tuple[str, ...]:
        """Return the lock of each word. Names that the bot does not know have their own lock."""
        reader = self._reader
        if reader is None:
            return mask.reasons
        reasons, stop_words = list(mask.reasons), self._policy.lexicon.stop_words
        for place, word in enumerate(parts.words):
            base, clitic, _ = word.lower.replace("’", "'").partition("'")
            if breaks_exact(mask.exact, [word]):
                reasons[place] = EXACT
            elif reasons[place] == "name" and clitic and base in stop_words:  # `That's`
                reasons[place] = ""
            elif reasons[place] == "name" and not (word.lower in said or reader.has(word.lower)):
                reasons[place] = UNKNOWN_NAME
        return tuple(reasons)

    def _heard(self, text: str, reasons: Sequence[str], said: frozenset[str]) -> frozenset[str]:
        """Return the words of a dialogue that a text may be mistaken for."""
        if self._reader is None or RECOVERABLE.isdisjoint(reasons):
            return frozenset()
        words = word_list(text)
        return frozenset(other for other in said if any(_alike(word, other) for word in words))

    def _sides(
        self, parts: Parts, mask: Mask, reasons: Sequence[str]
    ) -> tuple[WordsBeside | None, ...]:
        """Return the context of each short locked word that a reader may recover."""
        if self._reader is None:
            return (None,) * len(parts.words)
        counts = neighbour_counts()
        return tuple(
            sides if role == LOCKED and reason in _READABLE and len(word.text) <= BESIDE else None
            for word, role, reason, sides in zip(
                parts.words, mask.roles, reasons, counts.sides(parts), strict=True
            )
        )

    def _may_type(self, word: str, kind: str, typo: Typo) -> bool:
        """Return whether a word with a slip of letters can only be read as itself."""
        if kind in _SHORTENING and len(word) < _SHORTEST:
            return False
        if kind != "swap" and any(map(str.isdigit, typo.choices[0])):
            return False  # The slip would make a number.
        return self._policy.takes(word, typo)


def _needs_reader(kind: str, role: int) -> bool:
    """Return whether a kind of slip in a word with this role needs a reader's approval."""
    return kind in IN_WORDS and (role == LOCKED or kind == TWO)


@lru_cache(maxsize=1 << 16)
def _alike(word: str, other: str) -> bool:
    """Return whether two words are at most three slips apart, so that a slip may confuse them."""
    return OSA.distance(word, other, score_cutoff=_CONFUSED) <= _CONFUSED


def owner(start: int, before: str, ends: Sequence[int]) -> int:
    """Return the index of the word that a change affects, given the end offsets of the words.

    A change in a gap belongs to the next word. A change at the end belongs to the last word.
    """
    search: Callable[..., int] = bisect_right if before else bisect_left
    return min(search(ends, start), len(ends) - 1)


class Guards(NamedTuple):
    """The locks on the words of a part of an utterance."""

    #: The word before the part, in lower case. ``""`` if there is none or it does not matter.
    left: str
    #: The roles as in `Mask`, starting with the word before the part.
    roles: tuple[int, ...]
    reasons: tuple[str, ...]
    open: tuple[int, ...]
    #: Characters of the utterance that are not on the keyboard.
    more: frozenset[str]
    #: Words of the dialogue that resemble a locked word.
    said: frozenset[str] = frozenset()
    #: The words around each word, if a reader looks at them.
    sides: tuple[WordsBeside | None, ...] = ()


class AllowedChanges(NamedTuple):
    """The changes of a part of an utterance that the locks allow."""

    kept: ConditionalChanges
    #: ``((word, (transformation, operator)), slips)``. Words are counted as in `Guards`.
    slips: tuple[tuple[tuple[int, tuple[str, str]], Slips], ...]
    #: The changes that the final check must accept, see `Support`.
    explained: Changes


class GuardedChange(NamedTuple):
    """One change of a part of an utterance, and the locks on its words."""

    change: Change
    #: The changed text.
    before: str
    #: Index of the affected word, see `owner`.
    at: int
    #: The words of the part, after the word before it.
    words: tuple[Word, ...]
    guards: Guards
    policy: EditPolicy

    @property
    def word(self) -> Word:
        """The affected word."""
        return self.words[self.at]

    @property
    def role(self) -> int:
        """The role of the affected word, as in `Mask`."""
        return self.guards.roles[self.at]

    @property
    def brought(self) -> frozenset[str]:
        """The locks of the words that the change inserts."""
        guard_of, text = self.policy.guard_of, self.change.after
        return frozenset(guard_of(word) for word in (text, *word_list(text)))

    def is_same(self, count: int = 1, locks: Container[str] = _SPELLABLE) -> bool:
        """Return whether the locks allow changes of case, apostrophes or clitics in these words."""
        here = slice(self.at, self.at + count)
        pairs = zip(self.guards.roles[here], self.guards.reasons[here], strict=True)
        return all(role != LOCKED or reason in locks for role, reason in pairs)


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
    """Return whether a text-message spelling may replace words, if it has no lock."""
    return case.role != LOCKED and case.brought == _UNGUARDED


def _contracts(case: GuardedChange) -> bool:
    """Return whether two words may be contracted. `gonna` also changes the first word."""
    words = word_list(case.before)
    if _letters(case.change.after) == _letters(case.before):  # `do n't`: only marks are missing.
        return _drops_apostrophe(case, len(words))
    if case.change.after.lower().startswith((f"{words[0]}'", f"{words[0]}’")):
        return case.is_same(len(words)) and case.brought <= _SPELLABLE
    roles = case.guards.roles[case.at : case.at + len(words)]
    return LOCKED not in roles and case.brought == _UNGUARDED


def _sounds(case: GuardedChange) -> bool:
    return case.role == FREE and case.brought == _UNGUARDED


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _changes_case(case: GuardedChange) -> bool:
    """Return whether a word may lose its capital. Values, weekdays and known names may."""
    return case.is_same(locks=_SPELLABLE | RECOVERABLE)


def _drops_apostrophe(case: GuardedChange, count: int = 1) -> bool:
    """Return whether words may lose their apostrophe: `don't` stays a negation without it."""
    if case.brought <= _SPELLABLE:
        return case.is_same(count)
    return case.brought == {"negation"} and case.is_same(count, {"", "negation"})


def _unstops(case: GuardedChange) -> bool:
    """Return False if a final full stop may be part of the word before it."""
    return case.guards.open[case.at + 1] != SHUT


def _repeats(case: GuardedChange) -> bool:
    """Return whether all affected words may be repeated."""
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


#: Kind of slip on or between words -> a function that returns whether all locks allow a change.
_RULES: Final[Mapping[str, Callable[[GuardedChange], bool]]] = {
    "blank": _joins,
    MISSPELLING: _misspells,
    "apostrophe": _drops_apostrophe,
    "lower_i": _changes_case,
    "lower_first": _changes_case,
    "lower_name": _changes_case,
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
