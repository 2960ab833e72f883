"""An utterance while it is being perturbed: words with what may be done to each.

A `Draft` is immutable; an operator returns a new one together with the `Edit` that it
made. What may be done to a word travels with the word, so that masks computed once on
the clean utterance hold for every variant without looking anything up again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import Parts, Word, is_word_character

if TYPE_CHECKING:
    from pytest_dstfuzz.noise.sites import Changes
    from pytest_dstfuzz.noise.utterance import NoisyUtterance

__all__ = ["FREE", "KEPT", "LOCKED", "TYPO", "Source"]

#: What may happen to a word. FREE: anything its class allows; TYPO: typing errors only
#: (cue words of five letters and more); LOCKED: nothing; KEPT: neither dropped nor replaced,
#: though the same word may be elsewhere (see `scopes`).
FREE, TYPO, LOCKED, KEPT = 0, 1, 2, 3
#: What may be put into a gap. SHUT: nothing; OPEN: any word; NEGATED: any but a word of degree,
#: since the clause is negated.
SHUT, OPEN, NEGATED = 0, 1, 2


class SlipPlace(NamedTuple):
    """A slip that a person may make at a word."""

    kind: str
    #: Where it begins, counted from the start of the word; below 0 in the gap before it.
    start: int
    #: What is there as typed, and after the slip.
    before: str
    after: str
    #: Words, counted from this one, that must be as typed: they slip with it.
    mates: tuple[int, ...]

    def is_in(self, word: str) -> bool:
        """Say whether it is in the word, whatever the words beside it are."""
        return not self.mates and 0 <= self.start <= len(word) - len(self.before)


class Slips(NamedTuple):
    """Slips of one operator at a word."""

    places: tuple[SlipPlace, ...]
    #: Whether all of them are in the word, whatever the words beside it are.
    inside: bool

    def and_also(self, more: Slips) -> Slips:
        """Return these and more of the same operator at the same word."""
        return Slips((*self.places, *more.places), self.inside and more.inside)


class Token(NamedTuple):
    """One word, the text between it and the word before, and what may be done to it."""

    text: str
    lower: str
    #: Blanks and punctuation before the word.
    gap: str
    role: int = FREE
    #: What may be put right before this one.
    open: int = OPEN
    #: Typing errors that the word can still take.
    typos: int = 1
    #: Whether an edit has touched it; further edits of it cost no quota.
    touched: bool = False
    #: Words from here to the nearest mention of a slot value, 0 for a word of one. All 0
    #: where places are taken in reading order.
    distance: int = 0
    #: What the noise model knows of it, as long as it is as typed: transformation and operator ->
    #: the slips; none without a model.
    slips: Mapping[tuple[str, str], Slips] = MappingProxyType({})


class Draft(NamedTuple):
    """The utterance so far: ``"".join(gap + text of the tokens) + tail`` is its text."""

    text: str
    tokens: tuple[Token, ...]
    #: What follows the last word.
    tail: str
    #: What may be put after the last word.
    open_end: int
    #: Words that may still be touched; edits of touched words are free.
    quota: int
    #: Operators that any of its tokens had slips of when it was clean.
    slipping: frozenset[tuple[str, str]] = frozenset()

    def opening(self, index: int) -> int:
        """Return what may be put before the word ``index``, at the end for their number."""
        return self.tokens[index].open if index < len(self.tokens) else self.open_end

    def start(self, index: int) -> int:
        """Return the offset at which the word ``index`` starts."""
        tokens = self.tokens
        before = [token.gap + token.text for token in tokens[:index]]
        return len("".join(before)) + len(tokens[index].gap)


class Mask(NamedTuple):
    """What guards the words of one utterance, by position."""

    roles: tuple[int, ...]  #: For each word FREE, TYPO, LOCKED or KEPT.
    reasons: tuple[str, ...]  #: For each word the lock that guards it, ``""`` for a free one.
    #: For each gap (before word i; the last is after the last word) SHUT, OPEN or NEGATED.
    open: tuple[int, ...]
    #: Offsets ``(start, end)`` in the text between which no character changes and none is put in.
    exact: tuple[tuple[int, int], ...] = ()


class Support(NamedTuple):
    """What people may make of one utterance without touching a lock."""

    #: Its probabilities are on the condition that no lock is touched.
    noisy: NoisyUtterance
    #: For each word the slips that its token of a draft can take.
    slips: tuple[Mapping[tuple[str, str], Slips], ...]
    #: Those which the second check has to know, as it could not explain what they change: where a
    #: text begins, and changes of it.
    explained: tuple[tuple[int, Changes], ...]


class Source(NamedTuple):
    """A clean utterance made ready for many variants."""

    text: str  #: The utterance as typed.
    parts: Parts  #: Its words, and where they are.
    mask: Mask  #: What guards them; all free in the profile ``edit-rate``.
    draft: Draft  #: What every variant starts from.
    different: frozenset[str]  #: Its different words, as `rates.edit_w` compares them.
    word_limit: float  #: Largest ``edit_w`` that is allowed.
    #: What people make of it without touching a lock, where a noise model is in use.
    support: Support | None = None

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the utterance."""
        return self.parts.words


class EditResult(NamedTuple):
    """What an operator returns: the new draft and the edit that led to it."""

    draft: Draft
    edit: Edit


def _made(
    draft: Draft, edit: Edit, tokens: tuple[Token, ...], quota: int, tail: str | None = None
) -> EditResult:
    """Return the draft in which ``edit`` led to other tokens."""
    text = draft.text[: edit.start] + edit.after + draft.text[edit.end :]
    tail = draft.tail if tail is None else tail
    return EditResult(Draft(text, tokens, tail, draft.open_end, quota, draft.slipping), edit)


def pick(parameter: float, count: int) -> int:
    """Return ``floor(parameter * count)``: which of ``count`` > 0 things a parameter selects.

    The upper edge, 1.0, selects the last one.
    """
    return min(int(parameter * count), count - 1)


def insert_before(draft: Draft, index: int, word: str, name: tuple[str, str]) -> EditResult:
    """Put ``word`` and a blank before the word ``index`` (the number of words: at the end)."""
    tokens = draft.tokens
    if index == len(tokens):
        return insert_after(draft, index - 1, word, name)
    old = tokens[index]
    at = draft.start(index)
    new = _inserted(word, old.gap, old.distance)._replace(open=old.open)
    changed = (*tokens[:index], new, old._replace(gap=" "), *tokens[index + 1 :])
    edit = Edit(*name, at, at, "", word + " ")
    return _made(draft, edit, changed, draft.quota - 1)


def insert_after(draft: Draft, index: int, word: str, name: tuple[str, str]) -> EditResult:
    """Put a blank and ``word`` after the word ``index``."""
    tokens = draft.tokens
    at = draft.start(index) + len(tokens[index].text)
    new = _inserted(word, " ", tokens[index].distance)._replace(open=draft.opening(index + 1))
    changed = (*tokens[: index + 1], new, *tokens[index + 1 :])
    edit = Edit(*name, at, at, "", " " + word)
    return _made(draft, edit, changed, draft.quota - 1)


def replace_word(draft: Draft, index: int, word: str, name: tuple[str, str]) -> EditResult:
    """Put ``word`` in the place of the word ``index``; it takes no further edits in strict."""
    at = draft.start(index)
    old = draft.tokens[index]
    edit = Edit(*name, at, at + len(old.text), old.text, word)
    new = old._replace(text=word, lower=word.lower(), typos=0, touched=True)
    return _with_token(draft, edit, index, new)


def drop_word(draft: Draft, index: int, name: tuple[str, str]) -> EditResult:
    """Take the word ``index`` out, with the blanks on one of its sides."""
    tokens = draft.tokens
    old = tokens[index]
    start = draft.start(index)
    end = start + len(old.text)
    following = tokens[index + 1].gap if index + 1 < len(tokens) else draft.tail
    if index:
        left = old.gap.rstrip()
        start -= len(old.gap) - len(left)
        rest = following
    else:
        left, rest = old.gap, following.lstrip()
        end += len(following) - len(rest)
    gap = left + rest
    before = draft.text[start:end]
    edit = Edit(*name, start, end, before, "")
    quota = draft.quota - (not old.touched)
    if index + 1 < len(tokens):
        after = tokens[index + 1]._replace(gap=gap)
        changed = (*tokens[:index], after, *tokens[index + 2 :])
        return _made(draft, edit, changed, quota)
    return _made(draft, edit, tokens[:index], quota, gap)


def retype(
    draft: Draft, index: int, span: tuple[int, int], after: str, name: tuple[str, str]
) -> EditResult:
    """Put ``after`` in the place of the characters ``span`` (offsets in the word ``index``).

    A blank or punctuation in it parts the word; the draft goes on treating it as one, and
    that counts as all the typing errors that it can take.
    """
    start, end = span
    old = draft.tokens[index]
    at = draft.start(index)
    text = old.text[:start] + after + old.text[end:]
    edit = Edit(*name, at + start, at + end, old.text[start:end], after)
    left = old.typos - 1 if not after or is_word_character(after[0]) else 0
    new = old._replace(text=text, lower=text.lower(), typos=left, touched=True)
    return _with_token(draft, edit, index, new)


def join_words(draft: Draft, index: int, name: tuple[str, str]) -> EditResult:
    """Drop the blank between the words ``index - 1`` and ``index``; they become one."""
    tokens = draft.tokens
    left, right = tokens[index - 1], tokens[index]
    at = draft.start(index)
    edit = Edit(*name, at - len(right.gap), at, right.gap, "")
    text = left.text + right.text
    joined = left._replace(text=text, lower=text.lower(), typos=0, touched=True)
    changed = (*tokens[: index - 1], joined, *tokens[index + 1 :])
    quota = draft.quota - (not left.touched) - (not right.touched)
    return _made(draft, edit, changed, quota)


def slip_through(draft: Draft, index: int, place: SlipPlace, name: tuple[str, str]) -> EditResult:
    """Make a slip that reaches over the end of the word ``index``.

    It is into the words after it, which become one with it, or in what is after the last one.
    """
    tokens = draft.tokens
    old = tokens[index]
    at = draft.start(index)
    start, end = at + place.start, at + place.start + len(place.before)
    edit = Edit(*name, start, end, place.before, place.after)
    quota = draft.quota - (not old.touched)
    if place.start >= len(old.text):
        cut = place.start - len(old.text)
        tail = draft.tail[:cut] + place.after + draft.tail[cut + len(place.before) :]
        done = old._replace(typos=0, touched=True)
        return _made(draft, edit, (*tokens[:index], done), quota, tail)
    last, reach = index, at + len(old.text)
    while reach < end:
        last += 1
        reach += len(tokens[last].gap) + len(tokens[last].text)
    text = draft.text[at:start] + place.after + draft.text[end:reach]
    joined = old._replace(text=text, lower=text.lower(), typos=0, touched=True)
    return _made(draft, edit, (*tokens[:index], joined, *tokens[last + 1 :]), quota)


def touch(draft: Draft, index: int) -> Draft:
    """Return the draft with the word ``index`` closed to further edits; it costs no quota."""
    done = draft.tokens[index]._replace(typos=0, touched=True)
    return draft._replace(tokens=(*draft.tokens[:index], done, *draft.tokens[index + 1 :]))


def _inserted(word: str, gap: str, distance: int) -> Token:
    return Token(word, word.lower(), gap, FREE, OPEN, 0, touched=True, distance=distance)


def _with_token(draft: Draft, edit: Edit, index: int, token: Token) -> EditResult:
    tokens = draft.tokens
    quota = draft.quota - (not tokens[index].touched)
    return _made(draft, edit, (*tokens[:index], token, *tokens[index + 1 :]), quota)
