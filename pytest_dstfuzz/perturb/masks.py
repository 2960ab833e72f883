"""From what is known about the words of one utterance to what may be done to each.

The functions fill two lists: for each word the lock that guards it, and for each gap
whether the words on its sides are one expression. `finish` makes a `Mask` of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.perturb.draft import FREE, KEPT, LOCKED, NEGATED, OPEN, SHUT, TYPO, Mask

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
    scope: str  #: What it does to the words around it, see `scopes.scope_of`.


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
