"""A text during editing: its words, and their masks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_dstfuzz.perturb.edits import hunks
from pytest_dstfuzz.perturb.words import Edit, Parts, Word, is_word_character

if TYPE_CHECKING:
    from pytest_dstfuzz.noise.model import Changes, NoisyUtterance

__all__ = ["FREE", "KEPT", "LOCKED", "TYPO", "Source"]


#: The edits that a word may take. FREE: any edit for its word class. TYPO: only typing errors, for
#: cue words of five letters and more. LOCKED: no edit. KEPT: the word is never dropped or replaced,
#: but may take typing errors and may be repeated (see `locks.guard_scopes`).
FREE, TYPO, LOCKED, KEPT = 0, 1, 2, 3
#: The words that may be inserted into a gap between words. SHUT: none. OPEN: any. NEGATED: any
#: except words of degree, because the clause is negated.
SHUT, OPEN, NEGATED = 0, 1, 2


class SlipPlace(NamedTuple):
    """A typing or spelling error that a person may make at a word."""

    kind: str
    #: Offset from the start of the word. A negative offset is in the gap before the word.
    start: int
    #: The text before and after the slip.
    before: str
    after: str
    #: Positions of other words, relative to this word. The slip applies only if these are unedited.
    mates: tuple[int, ...]

    def is_in(self, word: str) -> bool:
        """Return whether the slip is inside the word and independent of its neighbours."""
        return not self.mates and 0 <= self.start <= len(word) - len(self.before)


class Slips(NamedTuple):
    """The slips of one operator at a word."""

    places: tuple[SlipPlace, ...]
    #: Whether all slips are inside the word and do not depend on its neighbours.
    inside: bool

    def and_also(self, more: Slips) -> Slips:
        """Return these slips and ``more`` slips of the same operator at the same word."""
        return Slips((*self.places, *more.places), self.inside and more.inside)


class Token(NamedTuple):
    """One word, with the text before it and its allowed edits."""

    text: str
    lower: str
    #: Blanks and punctuation before the word.
    gap: str
    role: int = FREE
    #: SHUT, OPEN or NEGATED: the words that may be inserted before this one.
    open: int = OPEN
    #: Number of typing errors that the word can still take.
    typos: int = 1
    #: Whether an edit has touched the word. Further edits to it do not use up the quota.
    touched: bool = False
    #: Number of words from here to the nearest mention of a slot value, 0 inside a mention. It is 0
    #: for all words if places are counted in reading order.
    distance: int = 0
    #: ``(transformation, operator)`` -> the slips of the noise model, which apply to the word as
    #: typed. Empty if there is no noise model.
    slips: Mapping[tuple[str, str], Slips] = MappingProxyType({})


class Draft(NamedTuple):
    """The utterance with all edits so far. Its text is ``"".join(gap + text) + tail``."""

    text: str
    tokens: tuple[Token, ...]
    #: The text after the last word.
    tail: str
    #: SHUT, OPEN or NEGATED: the words that may be inserted after the last word.
    open_end: int
    #: Number of words that edits may still touch. Edits to words that are touched already are free.
    quota: int
    #: Operators with a slip at any token of the clean utterance.
    slipping: frozenset[tuple[str, str]] = frozenset()

    def opening(self, index: int) -> int:
        """Return the state of the gap before the word ``index``.

        The last index is the final gap.
        """
        return self.tokens[index].open if index < len(self.tokens) else self.open_end

    def start(self, index: int) -> int:
        """Return the start offset of the word ``index``."""
        tokens = self.tokens
        before = [token.gap + token.text for token in tokens[:index]]
        return len("".join(before)) + len(tokens[index].gap)


class Mask(NamedTuple):
    """The locks on the words and gaps of one utterance, by position."""

    roles: tuple[int, ...]  #: FREE, TYPO, LOCKED or KEPT for each word.
    reasons: tuple[str, ...]  #: The lock on each word, ``""`` for a free word.
    #: SHUT, OPEN or NEGATED for each gap. Gap i is before word i, the last is after the last word.
    open: tuple[int, ...]
    #: Offsets ``(start, end)`` of spans in which no edit may change or insert a character.
    exact: tuple[tuple[int, int], ...] = ()


class Support(NamedTuple):
    """The slips of the noise model in one utterance that no lock forbids."""

    #: The utterance under the noise model, given that no slip touches a lock.
    noisy: NoisyUtterance
    #: For each word, the slips that its token in a draft can take.
    slips: tuple[Mapping[tuple[str, str], Slips], ...]
    #: Changes that no rule of the final check explains, but that the check must accept: the offset
    #: of a part of the text, and the changes in that part.
    explained: tuple[tuple[int, Changes], ...]


class Source(NamedTuple):
    """A clean utterance, prepared once for many variants."""

    text: str  #: The utterance as typed.
    parts: Parts  #: Its words and their offsets.
    mask: Mask  #: Its locks. In the profile ``edit-rate`` all words are free.
    draft: Draft  #: The starting point of every variant.
    different: frozenset[str]  #: The set of its words, as `validity.edit_w` compares them.
    word_limit: float  #: Largest allowed ``edit_w``.
    #: The slips that touch no lock, or ``None`` if no noise model is in use.
    support: Support | None = None

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the utterance."""
        return self.parts.words

    def touches_lock(self, edits: Sequence[Edit]) -> bool:
        """Return whether an edit mistypes a locked word that a reader would recover."""
        return any(
            (hunk.start < word.end and word.start < hunk.end)
            or (hunk.start == hunk.end and word.start < hunk.start < word.end)
            for hunk in hunks(edits)
            for word, role in zip(self.words, self.mask.roles, strict=False)
            if role == LOCKED
        )


class EditResult(NamedTuple):
    """The result of an operator: the new draft and the edit."""

    draft: Draft
    edit: Edit


def _made(
    draft: Draft, edit: Edit, tokens: tuple[Token, ...], quota: int, tail: str | None = None
) -> EditResult:
    """Return the draft after ``edit``, with the given tokens."""
    text = draft.text[: edit.start] + edit.after + draft.text[edit.end :]
    tail = draft.tail if tail is None else tail
    return EditResult(Draft(text, tokens, tail, draft.open_end, quota, draft.slipping), edit)


def pick(parameter: float, count: int) -> int:
    """Return ``floor(parameter * count)``, the index that a parameter selects.

    ``count`` is at least 1. The parameter 1.0 selects the last item.
    """
    return min(int(parameter * count), count - 1)


def insert_before(draft: Draft, index: int, word: str, name: tuple[str, str]) -> EditResult:
    """Insert ``word`` and a blank before the word ``index``, or at the end of the text."""
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
    """Insert a blank and ``word`` after the word ``index``."""
    tokens = draft.tokens
    at = draft.start(index) + len(tokens[index].text)
    new = _inserted(word, " ", tokens[index].distance)._replace(open=draft.opening(index + 1))
    changed = (*tokens[: index + 1], new, *tokens[index + 1 :])
    edit = Edit(*name, at, at, "", " " + word)
    return _made(draft, edit, changed, draft.quota - 1)


def replace_word(draft: Draft, index: int, word: str, name: tuple[str, str]) -> EditResult:
    """Replace the word ``index`` by ``word``. In ``strict``, the new word is closed to edits."""
    at = draft.start(index)
    old = draft.tokens[index]
    edit = Edit(*name, at, at + len(old.text), old.text, word)
    new = old._replace(text=word, lower=word.lower(), typos=0, touched=True)
    return _with_token(draft, edit, index, new)


def drop_word(draft: Draft, index: int, name: tuple[str, str]) -> EditResult:
    """Delete the word ``index`` and the blanks on one side."""
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
    """Replace the characters ``span`` (offsets in the word ``index``) by ``after``.

    If ``after`` starts with a blank or punctuation, it splits the word. The draft still treats both
    parts as a single word, which then takes no more typing errors.
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
    """Delete the blank between the words ``index - 1`` and ``index``, and merge them."""
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
    """Apply a slip that extends beyond the end of the word ``index``.

    The slip merges the word with the words after it, or changes the text after the last word.
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
    """Return the draft with the word ``index`` closed to further edits."""
    done = draft.tokens[index]._replace(typos=0, touched=True)
    return draft._replace(tokens=(*draft.tokens[:index], done, *draft.tokens[index + 1 :]))


def _inserted(word: str, gap: str, distance: int) -> Token:
    return Token(word, word.lower(), gap, FREE, OPEN, 0, touched=True, distance=distance)


def _with_token(draft: Draft, edit: Edit, index: int, token: Token) -> EditResult:
    tokens = draft.tokens
    quota = draft.quota - (not tokens[index].touched)
    return _made(draft, edit, (*tokens[:index], token, *tokens[index + 1 :]), quota)


#: Locks whose words form a block with locked neighbours: no edit inserts a word between them.
SOLID: Final = frozenset({"user", "value", "number", "negation", "dontcare", "name", "exact"})
#: Locks on words that may be names. The next word may be part of the same name.
_NAMED: Final = frozenset({"value", "name"})
#: Locks on words that mention a slot value, or may mention one.
_MENTIONS: Final = frozenset({"value", "number", "name", "dontcare"})
#: The distance to a slot value in an utterance that mentions none.
FAR: Final = 99
#: No edit inserts a word after words with these locks: `not really` and `no more` differ from `not`
#: and `no`.
_ANSWERS: Final = frozenset({"negation", "dontcare", "affirmation"})
#: Locks that allow a typing error in a word of some length. A name overrides them.
WEAK: Final = frozenset({"cue", "reference"})
#: Locks that allow a typing error in a word of any length: see `locks.guard_scopes`.
_SCOPED: Final = frozenset({"negated", "request"})
_CLOSING_QUOTES: Final = ('"', "'", "”", "’", "»")


#: A listed word or phrase, and its lock.
Entry = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class WordFacts:
    """The properties of one word that do not depend on its neighbours."""

    lower: str  #: In lower case.
    stop_word: bool  #: Whether it is a stop word.
    plain: str  #: In lower case with ASCII apostrophes, the form in the word lists.
    form: str  #: The form in comparisons of values, ``""`` if comparisons ignore the word.
    mentions: bool  #: Whether it can end the mention of a value of the ontology.
    listed: bool  #: Whether any of the next five fields is set.
    own: str  #: The lock of the word alone, ``""`` for none.
    #: Second word -> the listed phrases that may begin with both words, and the word alone, in the
    #: order of the lists.
    phrases: Mapping[str, tuple[Entry, ...]]
    second_half: bool  #: Whether it may be the end of a listed word that was split.
    joined: str  #: The lock of the word without its hyphens, ``""`` for none.
    contracted: bool  #: Whether it is ``n't`` and belongs to the word before.
    number: bool  #: Whether it contains a digit.
    unit: bool  #: Whether it turns a number before it into a price, a time or a share.
    unknown: bool  #: Whether it is an unknown word, or a name in every context.
    place: bool  #: Whether it is an ordinary word that is also the name of a place.
    given: bool  #: Whether it is an ordinary word that is also a given name.
    family: bool  #: Whether it is an ordinary word that is also a family name.
    rare: bool  #: Whether it is a singular noun that requests rarely contain.
    capital: bool  #: Whether it starts with a capital, other than ``I``.
    clitic: bool  #: Whether it ends in a clitic, such as ``'s``.
    noun: bool  #: Whether it is a noun most of the time.
    nounish: bool  #: Whether it is a noun most of the time, or its part of speech is unknown.
    verb: bool  #: Whether it is a verb most of the time.
    describes: bool  #: Whether it is an adjective most of the time.
    long: bool  #: Whether it is long enough for a typing error, if it is a cue.
    scope: str  #: How it affects the words around it, see `locks.scope_of`.


class Endings:
    """A set of words that can be searched by word ending."""

    __slots__ = ("_reversed",)

    def __init__(self, words: Iterable[str]) -> None:
        """Sort the words by their ends."""
        self._reversed = sorted(word[::-1] for word in words)

    def __contains__(self, ending: str) -> bool:
        """Return whether any word ends with ``ending``."""
        key = ending[::-1]
        at = bisect_left(self._reversed, key)
        return at < len(self._reversed) and self._reversed[at].startswith(key)


def value_distances(mask: Mask) -> list[int]:
    """Return the distance, in words, of each word to the nearest mention of a slot value.

    The distance is 0 for the words of a mention. If there is no mention, it is `FAR` for all words.
    """
    distances = [0 if reason in _MENTIONS else FAR for reason in mask.reasons]
    for indices in (range(1, len(distances)), range(len(distances) - 2, -1, -1)):
        step = indices.step
        for index in indices:
            distances[index] = min(distances[index], distances[index - step] + 1, FAR)
    return distances


def lock(reasons: list[str], glued: list[bool] | None, indices: Iterable[int], reason: str) -> None:
    """Lock some words. If ``glued`` is given, adjacent words among them become one expression."""
    previous: int | None = None
    for index in indices:
        # The first lock on a word stays, with two exceptions: a solid lock overrides a lock that is
        # not solid, and the lock on exact text overrides all except a lock of the user.
        solid = reason in SOLID and reasons[index] not in SOLID
        if not reasons[index] or solid or (reason == "exact" and reasons[index] != "user"):
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
    """Lock every listed word and phrase."""
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
            if reason:  # For example `wi fi` for `wifi`.
                lock(reasons, glued, (index - 1, index), reason)
        if fact.joined:  # For example `wi-fi`.
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
    """Lock names (``found``), unknown words, and nouns that continue a name."""
    for index, fact in enumerate(facts):
        reason = reasons[index]
        if index in found or (fact.unknown and not reason):
            if not reason or reason in WEAK:
                reasons[index] = "name"
        elif not reason and fact.noun and index and reasons[index - 1] in _NAMED:
            # A noun after a name is often its last part: `don pasquale pizzeria`.
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
    """Convert locks to roles. Close the gaps that allow no insertion.

    ``negated`` says for each word whether its clause is negated. It is empty without a negated
    clause. ``exact`` has the spans that must not change, see `Mask`.
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
        if inside:  # A reader may attach an inserted word to either of the two clauses.
            states[index : index + 2] = [state and NEGATED for state in states[index : index + 2]]
    return Mask(tuple(roles), tuple(reasons), tuple(states), exact)


@lru_cache(maxsize=1024)
def _parts(gap: str) -> bool:
    """Return whether a word can be inserted into a gap.

    If the gap has no blank before the next word, the inserted word would stick to a neighbour. A
    hyphen, slash, ampersand or apostrophe joins the words on its two sides.
    """
    return gap[-1:].isspace() and not any(mark in gap for mark in "-/&'’")


def _belong(facts: Sequence[WordFacts], index: int, left: str, right: str) -> bool:
    """Return whether two neighbouring words must stay together, without an inserted word."""
    if left in _ANSWERS or (left in SOLID and right in SOLID):
        return True
    named = left in _NAMED or right in _NAMED
    return named and facts[index].nounish and facts[index - 1].nounish
