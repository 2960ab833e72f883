"""What goes wrong, as far as a test from outside can tell: one of a short list of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pytest_dstfuzz.weaknesses.changed import Traits

#: Of an answer in which no slot changed: a relation of others may be about something else.
OTHER: Final = "other-change"

#: The more telling ones stand first: of several changed slots the first of these names it.
MECHANISMS: Final = (
    "value-runs-on",
    "slip-copied",
    "domain-confused",
    "any-value",
    "yes-no-confused",
    "shared-value",
    "cue-word",
    "number-changed",
    "ends-confused",
    "name-changed",
    "choice-changed",
    "value-spread",
    "stated-lost",
    "offer-wavers",
    "number-made-up",
    "made-up",
)


def mechanism_of(changes: Sequence[Traits]) -> tuple[str, int]:
    """Return the mechanism of a violation, and the number of the change that shows it."""
    found = [(MECHANISMS.index(_mechanism(one)), number) for number, one in enumerate(changes)]
    if not found:
        return OTHER, -1
    rank, number = min(found)
    return MECHANISMS[rank], number


def _mechanism(one: Traits) -> str:
    """Return what goes wrong with one slot: the kind of the slot decides what is asked next."""
    if one.runs_on:
        return "value-runs-on"
    if one.family == "any":
        return "any-value"
    if one.copied:
        return "slip-copied"
    if one.family == "yes-no":
        return "yes-no-confused" if one.cue or one.other_cue else "offer-wavers"
    return "domain-confused" if one.crossed else _FAMILIES[one.family](one)


def _number(one: Traits) -> str:
    if _is_moved(one):
        return "cue-word"
    if (one.same and one.happened != "put in") or _is_taken_over(one):
        return "shared-value"
    if one.happened == "replaced":
        return "number-changed"
    if not (one.user or one.system or one.cue or one.sibling):
        return "number-made-up"
    return "offer-wavers" if one.system and not one.here else _place(one)


def _end(one: Traits) -> str:
    if _is_moved(one):
        return "cue-word"
    if _is_taken_over(one) or (one.happened == "lost" and one.system and not one.user):
        return "shared-value"
    if one.happened == "replaced":
        return "ends-confused"
    if one.sibling:
        return _place(one)
    if not (one.user or one.system):
        return "made-up"
    return "offer-wavers" if one.system and not one.here else _place(one)


def _name(one: Traits) -> str:
    if one.happened != "replaced" and one.system:
        return "offer-wavers"
    return _loss(one) if one.happened == "lost" and one.here else "name-changed"


def _choice(one: Traits) -> str:
    just_lost = one.happened == "lost" and one.here
    if one.happened != "put in" and (one.same or (one.elsewhere and not just_lost)):
        return "shared-value"
    if one.happened == "replaced":
        return "choice-changed"
    if one.sibling:
        return "cue-word"
    if one.happened == "put in" and one.elsewhere:
        return "value-spread"
    if just_lost or (one.happened == "lost" and one.user and not one.system):
        return _loss(one)
    return "offer-wavers" if one.user or one.system else "made-up"


#: What is asked of a slot of a kind. Times, numbers and ends of a journey have siblings that take
#: their values; names are offered; the values of the other slots are few.
_FAMILIES: Final[dict[str, Callable[[Traits], str]]] = {
    "number": _number,
    "end": _end,
    "name": _name,
    "choice": _choice,
}


def _is_moved(one: Traits) -> bool:
    """Say whether a value gives way to that of a sibling whose word was damaged."""
    return one.happened == "replaced" and one.cue and one.sibling


def _is_taken_over(one: Traits) -> bool:
    """Say whether a value is lost that another domain has, and no word for it is damaged."""
    hit = one.here and (one.cue or one.domain_word)
    return one.happened == "lost" and one.elsewhere and not hit


def _place(one: Traits) -> str:
    """Return the mechanism of a time, a number or an end that was said, and is lost or put in."""
    if one.happened == "lost":
        return _loss(one)
    return "value-spread" if one.elsewhere and not one.sibling else "cue-word"


def _loss(one: Traits) -> str:
    """Return the mechanism of a value that the user said, and that is lost."""
    if one.cue or one.domain_word:
        return "cue-word"
    if one.sibling:
        return "ends-confused" if one.family == "end" else "cue-word"
    return "stated-lost"
