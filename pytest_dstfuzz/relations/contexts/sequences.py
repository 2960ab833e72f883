"""MORTAR's five perturbations of a sequence of questions, and the door for those of others.

A perturbation is a function of the number of rounds and a generator. It returns which rounds are
asked, and in which order, or ``None`` where there are too few of them for it.

Source: Guo et al., MORTAR, sections III-C and IV-H (30 % of the rounds are reduced, 20 %
duplicated).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.seeding import stream

if TYPE_CHECKING:
    import numpy as np

__all__ = ["sequences"]

#: ``(rounds, rng)`` -> rounds counted from 0, of which one may come several times.
Perturbation = Callable[[int, "np.random.Generator"], "tuple[int, ...] | None"]

ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.perturbations"
#: Share of the rounds that is left out, and that is said twice.
_REDUCED: Final = 0.3
_DUPLICATED: Final = 0.2
#: Rounds that must be there for one to be left out.
_FEWEST_TO_REDUCE: Final = 3


def shuffled(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRS: all rounds in another order than theirs, drawn uniformly."""
    return _other_order(tuple(range(rounds)), rng)


def reduced(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRR: 30 % of the rounds are left out, one at least."""
    if rounds < _FEWEST_TO_REDUCE:
        return None
    dropped = rng.choice(rounds, size=max(1, round(_REDUCED * rounds)), replace=False)
    return tuple(index for index in range(rounds) if index not in set(dropped.tolist()))


def duplicated(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRD: 20 % of the rounds, one at least, are asked once more, at drawn places."""
    order = list(range(rounds))
    for again in rng.choice(rounds, size=max(1, round(_DUPLICATED * rounds)), replace=False):
        order.insert(int(rng.integers(len(order) + 1)), int(again))
    return tuple(order)


def _then_shuffled(
    first: Perturbation, rounds: int, rng: np.random.Generator
) -> tuple[int, ...] | None:
    order = first(rounds, rng)
    return None if order is None else _other_order(order, rng)


def _other_order(order: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...] | None:
    """Return another order than the given one, drawn uniformly; ``None`` = there is none."""
    if len(set(order)) < 2:
        return None
    while True:
        found = tuple(order[place] for place in rng.permutation(len(order)))
        if found != order:
            return found


PERTURBATIONS: Final[Registry[Perturbation]] = Registry(
    "perturbation",
    ENTRY_POINT_GROUP,
    {
        "DRS": shuffled,
        "DRR": reduced,
        "DRD": duplicated,
        "DSR": partial(_then_shuffled, reduced),
        "DSD": partial(_then_shuffled, duplicated),
    },
)


def register_perturbation(name: str, perturbation: Perturbation) -> None:
    """Make a perturbation of sequences known by a name.

    Args:
        name: what the option ``perturbations`` takes, and what reports show.
        perturbation: gets the number of rounds and a generator, from which alone it draws; returns
            rounds counted from 0, or ``None``.

    Raises:
        UserError: one that ships has the name.
    """
    PERTURBATIONS.register(name, perturbation)


class QuestionOrder(NamedTuple):
    """The rounds of a dialogue as one perturbation orders them."""

    perturbation: str
    #: 0, 1, ...: which drawing of this perturbation.
    draw: int
    order: tuple[int, ...]

    @property
    def case(self) -> str:
        """What the test case is called: ``DRS-0``."""
        return f"{self.perturbation}-{self.draw}"


def sequences(
    dialogue: Dialogue, names: tuple[str, ...], draws: int, seed: int
) -> Iterator[QuestionOrder]:
    """Yield the sequences of a dialogue, all perturbations of a draw before the next draw.

    They are the dialogue's, whichever of its questions is looked at and whichever relation looks:
    a system is asked each of their beginnings once.

    Raises:
        UserError: there is no such perturbation, or it returns rounds that are not there.
    """
    rounds = len(dialogue.turns)
    for draw in range(draws):
        for name in names:
            rng = stream(seed, "sequence", dialogue.id, name, draw)
            with blamed(f"the perturbation {name!r}"):
                order = PERTURBATIONS.find(name)(rounds, rng)
            if order is None:
                continue
            if not order or not all(0 <= index < rounds for index in order):
                raise UserError(
                    f"the perturbation {name!r} returned {order!r} for {rounds} rounds: it must "
                    f"return at least one of 0 to {rounds - 1}"
                )
            yield QuestionOrder(name, draw, tuple(map(int, order)))
