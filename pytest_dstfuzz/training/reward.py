"""What an attempt is worth to the agent that made it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pytest_dstfuzz.errors import unknown_name


class AttemptOutcome(NamedTuple):
    """What an attempt showed."""

    valid: bool  #: It passed the validity profile, and no earlier attempt had its text.
    broken: bool  #: It broke the relation of a turn that was whole.
    impurity: float  #: `impurity_difference` to the clean prediction; 0 where it was not run.
    edit_w: float  #: Word edit rate.
    edit_c: float  #: Character edit rate.


#: The thesis' limit of both rates, and what is taken off above it.
_GINI_LIMIT: Final = 0.25
_GINI_PENALTY: Final = -100.0
#: Price of a whole unit of edit rate, of an attempt that cannot be run, and what a unit of
#: impurity is worth (a rise of 0.03, the mean over 30 slots of one that is torn between two).
EDIT_PRICE: Final = 0.02
WASTE_PRICE: Final = 0.05
IMPURITY_WORTH: Final = 10.0
_IMPURITY_MOST: Final = 0.3


def gini(outcome: AttemptOutcome) -> float:
    """Return the thesis' reward, ``exp(gini_dif) / sqrt(edit_w^2 + edit_c^2) + beta``.

    ``beta`` is -100 where a rate is over 0.25. The formula divides by zero where nothing
    was edited; such an attempt gets 0, the least that a valid one can get.
    """
    size = math.hypot(outcome.edit_w, outcome.edit_c)
    worth = math.exp(outcome.impurity) / size if size > 0 else 0.0
    over = outcome.edit_w > _GINI_LIMIT or outcome.edit_c > _GINI_LIMIT
    return worth + (_GINI_PENALTY if over else 0.0)


def broken(outcome: AttemptOutcome) -> float:
    """Return 1 for a turn broken, less for what came near it, and a small price of edits."""
    if not outcome.valid:
        return -WASTE_PRICE
    near = max(-_IMPURITY_MOST, min(IMPURITY_WORTH * outcome.impurity, _IMPURITY_MOST))
    price = EDIT_PRICE * (outcome.edit_w + outcome.edit_c)
    return float(outcome.broken) + near - price


REWARDS: Final[Mapping[str, Callable[[AttemptOutcome], float]]] = {"broken": broken, "gini": gini}


def reward_by_name(name: str) -> Callable[[AttemptOutcome], float]:
    """Return the reward called ``name``."""
    if name not in REWARDS:
        raise unknown_name("reward", name, REWARDS)
    return REWARDS[name]
