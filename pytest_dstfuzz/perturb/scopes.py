"""What a negation reaches, what carries a request, and articles that change a quantity.

Other locks guard words that mean something of their own. These guard words that are harmless
elsewhere: `just` comes and goes in `I want a hotel`, but `not just a hotel` asks for more than
`not a hotel`, and `do not need` leaves room that `do not want` does not.

* In a clause with a negation no word of degree comes or goes, and verbs of wanting, praise and
  `some` stay as they are. A clause ends with its sentence; an answer before a comma (`no ,`) is
  a clause of its own.
* Nothing is put right after a negation, and the word there stays: `no , I need parking` may not
  become `no thanks parking`, nor `no I need parking` become `no need parking`.
* `maybe` and its like stay: without them a suggestion is a demand. So do `would`, `could`, `can`
  and `will` before their subject (`would you`), where they ask, and `would` in `would like`,
  where it wishes.
* `a few` and `few`, `a little` and `little` are different quantities.

What stays may still take a typing error, and be said twice but for words of degree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.perturb.masks import WordFacts
from pytest_dstfuzz.perturb.words import listed

#: Words of degree: in a negated clause they say how far the negation goes.
DEGREES: Final = listed(
    """just so really very too simply truly actually definitely absolutely totally completely
    quite even only merely hopefully"""
)
#: Words of which a negated clause says something else than of their synonyms, or than of nothing.
_WEIGHED: Final = listed(
    """need needs needed needing want wants wanted wanting require requires required requiring
    some good great nice excellent wonderful fantastic lovely awesome amazing pleasant terrific"""
)
_HEDGES: Final = listed("maybe perhaps possibly")
_MODALS: Final = listed("would could can will should shall might")
_SUBJECTS: Final = listed("i you we he she they it that this there one someone anyone")
_WISHES: Final = listed("like love prefer want need appreciate")
_QUANTITIES: Final = listed("few little")
_REFUSALS: Final = listed("no nope nah nay")
#: What may go after `not`.
_EMPTY: Final = listed("a an the be been being")
#: Words of an answer that a comma parts from what is asked for.
_ANSWERS: Final = _REFUSALS | listed(
    """not yes yeah yep ok okay sure thanks thank you sorry well oh um uh yet now that 's that's
    thats is it all"""
)
_CLAUSE_ENDS: Final = frozenset(",;:-–—")
_SENTENCE_ENDS: Final = frozenset("!?\n")


def scope_of(word: str, *, negates: bool) -> str:
    """Return what a word (lower-cased) does to those around it, ``""`` for nothing.

    >>> scope_of("really", negates=False), scope_of("maybe", negates=False)
    ('negated', 'request')
    """
    if negates:
        return "negation"
    if word in _HEDGES:
        return "request"
    if word in _MODALS:
        return "modal"
    if word in _QUANTITIES:
        return "quantity"
    return "negated" if word in DEGREES or word in _WEIGHED else ""


@lru_cache(maxsize=1024)
def without_degrees(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some words that may be put into a negated clause."""
    return tuple(word for word in words if word.lower() not in DEGREES)


def guard_scopes(
    facts: Sequence[WordFacts], gaps: Sequence[str], reasons: list[str], glued: list[bool]
) -> list[bool]:
    """Lock the words that are harmless elsewhere, and close gaps.

    Returns:
        For each word whether its clause has a negation; nothing where none has.
    """
    negations = []
    for index, fact in enumerate(facts):
        if fact.scope == "negation" or reasons[index] == "negation":
            negations.append(index)
        elif fact.scope == "request" or (fact.scope == "modal" and _asks(facts, gaps, index)):
            reasons[index] = reasons[index] or "request"
        elif fact.scope == "quantity":
            glued[index] = True
            if index and facts[index - 1].lower == "a":
                reasons[index - 1] = reasons[index - 1] or reasons[index]
    if not negations:
        return []
    for index in negations:
        _guard_next(facts, gaps, reasons, glued, index)
    clauses = _clauses(facts, gaps)
    negated = {clauses[index] for index in negations}
    for index, fact in enumerate(facts):
        if fact.scope == "negated" and clauses[index] in negated:
            reasons[index] = reasons[index] or "negated"
    return [clause in negated for clause in clauses]


def _asks(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    """Say whether a modal verb asks or wishes."""
    if index + 1 == len(facts) or not gaps[index + 1].isspace():
        return False
    following = facts[index + 1].plain.partition("'")[0]
    return following in _SUBJECTS or (facts[index].lower == "would" and following in _WISHES)


def _guard_next(
    facts: Sequence[WordFacts],
    gaps: Sequence[str],
    reasons: list[str],
    glued: list[bool],
    negation: int,
) -> None:
    """Keep what is right after a negation there."""
    index = negation + 1
    if index == len(facts) or _ends(gaps[index], short=False):
        return
    glued[index] = True
    fact = facts[index]
    empty = fact.lower in _EMPTY and facts[negation].lower not in _REFUSALS
    if gaps[index].isspace() and not (empty or fact.clitic):
        reasons[index] = reasons[index] or "negated"


def _clauses(facts: Sequence[WordFacts], gaps: Sequence[str]) -> list[int]:
    """Return for each word the number of its clause."""
    clauses: list[int] = []
    clause = 0
    answer = True
    for index, fact in enumerate(facts):
        if index:
            before = facts[index - 1]
            ended = _ends(gaps[index], short=before.unit or len(before.lower) == 1)
            if ended or (answer and not _CLAUSE_ENDS.isdisjoint(gaps[index])):
                clause += 1
                answer = True
        answer = answer and fact.lower in _ANSWERS
        clauses.append(clause)
    return clauses


@lru_cache(maxsize=1024)
def _ends(gap: str, *, short: bool) -> bool:
    """Say whether a sentence ends in a gap, after what may be short for something (`p.m.`)."""
    if not _SENTENCE_ENDS.isdisjoint(gap):
        return True
    # Several dots are a pause; one without a blank parts no sentences.
    return gap.count(".") == 1 and gap[-1:].isspace() and not short
