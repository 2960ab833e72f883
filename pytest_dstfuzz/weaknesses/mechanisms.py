"""What goes wrong, as far as a test from outside can tell: one of a short list of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pytest_dstfuzz.weaknesses.changed import Traits

#: Of an answer in which no slot changed: a relation of others may be about something else.
OTHER: Final = "other-change"


def _hits_cue(one: Traits) -> bool:
    put_in, lost = (one.happened == what for what in ("put in", "lost"))
    if one.family == "yes-no":
        return one.cue
    if one.family == "any" or one.copied or (one.family == "name" and (one.system or not lost)):
        return False
    if put_in and (one.sibling or one.elsewhere):
        return one.sibling
    if one.same and not put_in:
        return False
    # Where its own name is damaged, a value that was said before is lost as well.
    hit = one.cue and (one.here or (lost and one.user))
    return hit or (one.domain_word and one.here and lost)


def _is_pointed_at(one: Traits) -> bool:
    """Say whether one end of a journey is lost that the user took from elsewhere."""
    known = one.elsewhere or (one.system and not one.user)
    return one.family == "end" and one.happened == "lost" and known


def _is_other_end(one: Traits) -> bool:
    if one.family != "end" or one.happened == "put in":
        return False
    stated = one.happened == "lost" and one.here and not one.sibling
    return not (one.form or stated or _is_pointed_at(one))


def _is_shared(one: Traits) -> bool:
    if one.happened == "put in" or one.family not in ("number", "end", "choice"):
        return False
    if one.same or _is_pointed_at(one):
        return True
    if one.family == "choice":
        return one.elsewhere and not (one.here and one.happened == "lost")
    return one.family == "number" and one.elsewhere and one.happened == "lost"


def _is_unheard(one: Traits) -> bool:
    return not (one.user or one.system) and one.family != "yes-no"


def _is_replaced(one: Traits) -> bool:
    # Of two values that both were offered it wavers which one was taken.
    return one.happened == "replaced" and (one.user or not one.system)


def _is_other_name(one: Traits) -> bool:
    if one.family == "name":
        return one.form or _is_replaced(one) or _is_unheard(one)
    return one.family == "end" and one.form


def _is_spread(one: Traits) -> bool:
    if one.happened != "put in" or one.family == "yes-no":
        return False
    # What was said just now is not spread: the clean answer has it nowhere.
    return one.elsewhere or (one.user and not one.here and not one.system)


def _is_stated(one: Traits) -> bool:
    if one.happened != "lost" or one.family == "yes-no":
        return False
    # A name that was offered is there to be taken or not, even where the user repeats it.
    return (one.user and not one.system) or (one.here and one.family != "name")


#: Mechanism -> what it takes. The first one that any of the changed slots meets names the
#: violation: the more telling ones stand first, and the last takes what is none of the others.
RULES: Final[dict[str, Callable[[Traits], bool]]] = {
    "value-runs-on": lambda one: one.runs_on,
    "domain-confused": lambda one: one.crossed,
    "cue-word": _hits_cue,
    "any-value": lambda one: one.family == "any",
    "slip-copied": lambda one: one.copied,
    "ends-confused": _is_other_end,
    "shared-value": _is_shared,
    "number-changed": lambda one: one.family == "number" and one.happened == "replaced",
    "name-changed": _is_other_name,
    "choice-changed": _is_replaced,
    "value-spread": _is_spread,
    "stated-lost": _is_stated,
    "offer-wavers": lambda one: not _is_unheard(one),
    "made-up": lambda _: True,
}


def mechanism_of(changes: Sequence[Traits]) -> tuple[str, int]:
    """Return the mechanism of a violation, and the number of the change that shows it."""
    for name, meets in RULES.items():
        for number, change in enumerate(changes):
            if meets(change):
                return name, number
    return OTHER, -1
