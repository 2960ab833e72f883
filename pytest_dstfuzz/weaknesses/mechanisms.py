"""What goes wrong, as far as a test from outside can tell: one of a short list of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pytest_dstfuzz.weaknesses.changed import Traits

#: Of an answer in which no slot changed: a relation of others may be about something else.
OTHER: Final = "other-change"


def _is_offered_name(one: Traits) -> bool:
    return one.family == "name" and one.happened != "replaced" and one.system


def _hits_cue(one: Traits) -> bool:
    if one.family == "yes-no":
        return one.cue
    if one.here and one.cue and not _is_offered_name(one):
        return one.family != "any" and not one.copied
    return one.sibling and one.happened == "put in" and one.family in ("number", "choice")


def _is_shared(one: Traits) -> bool:
    replaced = one.happened == "replaced"
    if one.family not in ("number", "choice") or one.happened == "put in":
        return False
    if one.family == "number":
        return one.elsewhere and not replaced
    return one.elsewhere or (replaced and one.same)


def _is_unheard(one: Traits) -> bool:
    return not (one.user or one.system) and one.family != "yes-no"


def _is_replaced(one: Traits) -> bool:
    # Of two values that both were offered it wavers which one was taken.
    return one.happened == "replaced" and (one.user or not one.system)


#: Mechanism -> what it takes. The first one that any of the changed slots meets names the
#: violation: the more telling ones stand first, and the last takes what is none of the others.
RULES: Final[dict[str, Callable[[Traits], bool]]] = {
    "value-runs-on": lambda one: one.runs_on,
    "domain-lost": lambda one: (
        one.crossed or (one.domain_word and one.happened == "lost" and one.here)
    ),
    "cue-word": _hits_cue,
    "any-value": lambda one: one.family == "any",
    "slip-copied": lambda one: one.copied,
    "ends-confused": lambda one: one.family == "end" and (one.happened != "put in" or one.sibling),
    "shared-value": _is_shared,
    "number-changed": lambda one: one.family == "number" and one.happened == "replaced",
    "name-changed": lambda one: one.family == "name" and (_is_replaced(one) or _is_unheard(one)),
    "choice-changed": _is_replaced,
    "value-spread": lambda one: (
        one.happened == "put in"
        and one.family != "yes-no"
        and (one.elsewhere or (one.user and not one.system))
    ),
    "stated-lost": lambda one: (
        one.happened == "lost"
        and one.family != "yes-no"
        and not _is_offered_name(one)
        and (one.here or (one.user and not one.system))
    ),
    "made-up": _is_unheard,
    "offer-wavers": lambda _: True,
}


def mechanism_of(changes: Sequence[Traits]) -> tuple[str, int]:
    """Return the mechanism of a violation, and the number of the change that shows it."""
    for name, meets in RULES.items():
        for number, change in enumerate(changes):
            if meets(change):
                return name, number
    return OTHER, -1
