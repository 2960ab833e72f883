"""A text under edits: its words, and the masks over them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_dstfuzz.perturb.words import Edit, Parts, Word, is_word_character

if TYPE_CHECKING:
    from pytest_dstfuzz.noise.model import Changes, NoisyUtterance

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
    different: frozenset[str]  #: Its different words, as `validity.edit_w` compares them.
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


#: Locks whose words make one solid block with locked neighbours: nothing goes in between.
SOLID: Final = frozenset({"user", "value", "number", "negation", "dontcare", "name", "exact"})
#: Locks on what may be a name, and so go on in the word beside it.
_NAMED: Final = frozenset({"value", "name"})
#: Locks on what is, or may be, the mention of a slot value.
_MENTIONS: Final = frozenset({"value", "number", "name", "dontcare"})
#: The distance to a slot value where an utterance mentions none.
FAR: Final = 99
#: `not really` and `no more` mean something else than `not` and `no`.
_ANSWERS: Final = frozenset({"negation", "dontcare", "affirmation"})
#: Locks under which a word of some length may take a typing error; a name outweighs them.
WEAK: Final = frozenset({"cue", "reference"})
#: Locks under which a word of any length may take one: see `scopes`.
_SCOPED: Final = frozenset({"negated", "request"})
_CLOSING_QUOTES: Final = ('"', "'", "”", "’", "»")


#: Words that are listed in one lock, and the lock.
Entry = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class WordFacts:
    """One word, and all that needs no look at its neighbours."""

    lower: str  #: In lower case.
    stop_word: bool  #: Whether it is one.
    plain: str  #: In lower case, with typewriter apostrophes: the form that lists have.
    form: str  #: The form in which values are compared, ``""`` for a word that is skipped.
    mentions: bool  #: Whether it can end the mention of a value of the ontology.
    listed: bool  #: Whether any of the five that follow says something.
    own: str  #: The lock of the word alone, ``""`` for none.
    #: Second word -> listed phrases that may begin here, in the order of the lists, the word alone
    #: among them.
    phrases: Mapping[str, tuple[Entry, ...]]
    second_half: bool  #: Whether it may be the end of a listed word that was written apart.
    joined: str  #: The lock of the word without its hyphens, where it has some.
    contracted: bool  #: Whether it is the ``n't`` of the word before.
    number: bool  #: Whether a digit makes it one.
    unit: bool  #: Whether it turns a number before it into a price, a time or a share.
    unknown: bool  #: Whether it looks like a word and is none, or is a name wherever it stands.
    place: bool  #: Whether it is a word that is the name of a place as well.
    given: bool  #: Likewise of a person,
    family: bool  #: and of a family.
    rare: bool  #: Whether it is a noun that requests seldom have, one thing of a kind.
    capital: bool  #: Whether it is written like a name.
    clitic: bool  #: Whether it leans on the word before.
    noun: bool  #: Whether it is a noun most of the time.
    nounish: bool  #: Likewise, or of no known part of speech.
    verb: bool  #: Whether it is a verb most of the time,
    describes: bool  #: or an adjective.
    long: bool  #: Whether it can take a typing error where it is a cue.
    scope: str  #: What it does to the words around it, see `locks.scope_of`.


class Endings:
    """Answers whether one of some words ends like this."""

    __slots__ = ("_reversed",)

    def __init__(self, words: Iterable[str]) -> None:
        """Sort the words by their ends."""
        self._reversed = sorted(word[::-1] for word in words)

    def __contains__(self, ending: str) -> bool:
        """Say whether a word ends with ``ending``."""
        key = ending[::-1]
        at = bisect_left(self._reversed, key)
        return at < len(self._reversed) and self._reversed[at].startswith(key)


def value_distances(mask: Mask) -> list[int]:
    """Return for each word how many words it is from the nearest mention of a slot value.

    0 for the words of a mention, `FAR` for all where there is none.
    """
    distances = [0 if reason in _MENTIONS else FAR for reason in mask.reasons]
    for indices in (range(1, len(distances)), range(len(distances) - 2, -1, -1)):
        step = indices.step
        for index in indices:
            distances[index] = min(distances[index], distances[index - step] + 1, FAR)
    return distances


def lock(reasons: list[str], glued: list[bool] | None, indices: Iterable[int], reason: str) -> None:
    """Lock some words; with ``glued``, neighbours among them become one expression."""
    previous: int | None = None
    for index in indices:
        # The first lock to guard a word names it: they come in order of weight.
        if not reasons[index] or (reason in SOLID and reasons[index] not in SOLID):
            reasons[index] = reason
        if glued is not None and previous == index - 1:
            glued[index] = True
        previous = index


def lock_phrases(
    facts: Sequence[WordFacts],
    single: Mapping[str, str],
    reasons: list[str],
    glued: list[bool],
) -> None:
    """Lock every listed word and phrase; of two locks on one word the earlier list wins."""
    for index, fact in enumerate(facts):
        if not fact.listed:
            continue
        following = facts[index + 1].plain if index + 1 < len(facts) else ""
        if entries := fact.phrases.get(following):
            _lock_entries(facts, index, entries, reasons, glued)
        elif fact.own:
            lock(reasons, None, (index,), fact.own)
        if fact.second_half and index:
            reason = single.get(facts[index - 1].plain + fact.plain, "")
            if reason:  # `wi fi` is `wifi`.
                lock(reasons, glued, (index - 1, index), reason)
        if fact.joined:  # So is `wi-fi`.
            lock(reasons, None, (index,), fact.joined)
        if fact.contracted and index:
            lock(reasons, glued, (index - 1, index), "negation")


def _lock_entries(
    facts: Sequence[WordFacts],
    index: int,
    entries: Iterable[Entry],
    reasons: list[str],
    glued: list[bool],
) -> None:
    for phrase, reason in entries:
        end = index + len(phrase)
        if tuple([fact.plain for fact in facts[index:end]]) == phrase:
            lock(reasons, glued if reason in SOLID else None, range(index, end), reason)


def lock_numbers(facts: Sequence[WordFacts], reasons: list[str]) -> None:
    """Lock numbers and the units after them."""
    for index, fact in enumerate(facts):
        if fact.number:
            reasons[index] = reasons[index] or "number"
        elif fact.unit and index and reasons[index - 1] == "number":
            reasons[index] = "number"


def lock_names(
    facts: Sequence[WordFacts], gaps: Sequence[str], found: Collection[int], reasons: list[str]
) -> None:
    """Lock the words ``found`` to be names, what no list knows, and what goes on a name."""
    for index, fact in enumerate(facts):
        reason = reasons[index]
        if index in found or (fact.unknown and not reason):
            if not reason or reason in WEAK:
                reasons[index] = "name"
        elif not reason and fact.noun and index and reasons[index - 1] in _NAMED:
            # A noun right after a name is often its last part: `don pasquale pizzeria`.
            near = facts[index - 1].nounish and len(gaps[index]) <= 1
            reasons[index] = "name" if near else ""


def finish(
    facts: Sequence[WordFacts],
    gaps: Sequence[str],
    reasons: list[str],
    glued: list[bool],
    negated: Sequence[bool],
    exact: tuple[tuple[int, int], ...] = (),
) -> Mask:
    """Turn locks into roles, and close the gaps in which nothing may be inserted.

    ``negated`` says for each word whether its clause has a negation; empty = none has. ``exact``
    are the characters that stay as they are, see `Mask`.
    """
    roles: list[int] = []
    closed = glued
    left = ""
    for index, fact in enumerate(facts):
        right, gap = reasons[index], gaps[index]
        if gap != " " and (index or gap) and not _parts(gap):
            closed[index] = True
        if fact.clitic or (index and (left or right) and _belong(facts, index, left, right)):
            closed[index] = True
        if right:
            weak = TYPO if fact.long and right in WEAK else LOCKED
            roles.append(KEPT if right in _SCOPED else weak)
        else:
            roles.append(LOCKED if fact.clitic else FREE)
        left = right
    if facts and gaps[-1].startswith(_CLOSING_QUOTES):
        closed[-1] = True
    states = [SHUT if shut else OPEN for shut in closed]
    for index, inside in enumerate(negated):
        if inside:  # A word that is put there may be read as one of either side.
            states[index : index + 2] = [state and NEGATED for state in states[index : index + 2]]
    return Mask(tuple(roles), tuple(reasons), tuple(states), exact)


@lru_cache(maxsize=1024)
def _parts(gap: str) -> bool:
    """Say whether a word could stand in a gap.

    Where no blank is, it would stick to something; a dash or a stroke between two words
    makes them one.
    """
    return gap[-1:].isspace() and not any(mark in gap for mark in "-/&'’")


def _belong(facts: Sequence[WordFacts], index: int, left: str, right: str) -> bool:
    """Say whether locks hold a word and the one before it together."""
    if left in _ANSWERS or (left in SOLID and right in SOLID):
        return True
    named = left in _NAMED or right in _NAMED
    return named and facts[index].nounish and facts[index - 1].nounish
