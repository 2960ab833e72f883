"""Deal or no deal: two sides divide books, hats and balls. Each side values them differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.games.game import GameScores, GoalSelection, Scenario
from pytest_dstfuzz.seeding import stream

ITEMS: Final = ("book", "hat", "ball")
#: Total value of all items for each side.
TOTAL: Final = 10
#: Minimum seed of scenarios for training; all other scenarios use lower seeds.
TRAINING_SEED: Final = 1_000_000
_LEAST, _MOST = 5, 7


def _bundles() -> tuple[tuple[str, ...], ...]:
    every = product((False, True), repeat=len(ITEMS))
    return tuple(
        tuple(item for item, taken in zip(ITEMS, one, strict=True) if taken)
        for one in every
        if any(one)
    )


class DealGame:
    """The negotiation of Lewis et al. (2017) with random scenarios. It needs no data.

    A goal is ``{"book": [count, value], "hat": ..., "ball": ...}``. The counts add up to 5 to 7.
    All items together are worth 10 to each side. A selection says how many of each item the target
    takes. The adversary gets the rest.
    """

    name: str = "deal-or-no-deal"
    most_turns: int = 10
    most_score: float = TOTAL

    def scenarios(self, count: int, seed: int) -> list[Scenario]:
        """Return scenarios.

        Every kind of item has a value for at least one side. At least one kind has a value for both
        sides.
        """
        return [self._scenario(number, stream(seed, self.name, number)) for number in range(count)]

    def selections(self, scenario: Scenario) -> list[GoalSelection]:
        """Return all numbers of items that the target may take."""
        counts = [range(scenario.target[item][0] + 1) for item in ITEMS]
        amounts = product(*counts)
        return [GoalSelection(dict(zip(ITEMS, one, strict=True))) for one in amounts]

    def scores(self, scenario: Scenario, selection: GoalSelection) -> GameScores:
        """Return the value of each side's items.

        The adversary has the items that the target leaves.
        """
        own = sum(selection[item] * scenario.target[item][1] for item in ITEMS)
        rest = sum(
            (scenario.target[item][0] - selection[item]) * scenario.adversary[item][1]
            for item in ITEMS
        )
        return GameScores(rest, own)

    def lines(self, scenario: Scenario) -> list[str]:  # noqa: ARG002 - the same in all scenarios
        """Return the possible lines of the adversary: demands, offers and closing lines."""
        every = [" and the ".join(bundle) for bundle in _bundles()]
        demands = [f"i would like the {one}" for one in every]
        offers = [f"you can have the {one} and i take the rest" for one in every]
        return [*demands, *offers, "deal", "i need all of them", "no deal then"]

    def _scenario(self, number: int, rng: np.random.Generator) -> Scenario:
        counts = self._counts(rng)
        ways = valuations(counts)
        while True:
            one, other = (ways[int(place)] for place in rng.integers(0, len(ways), 2))
            pairs = list(zip(one, other, strict=True))
            if all(a or b for a, b in pairs) and any(a and b for a, b in pairs):
                break
        return Scenario(
            f"deal-{number:05d}",
            goal_of(counts, one),
            goal_of(counts, other),
            target_first=bool(rng.integers(2)),
        )

    def _counts(self, rng: np.random.Generator) -> tuple[int, ...]:
        while True:
            counts = tuple(int(count) for count in rng.integers(1, 5, len(ITEMS)))
            if _LEAST <= sum(counts) <= _MOST:
                return counts


def valuations(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all valuations of single items that give all items together the value `TOTAL`."""
    every = product(*(range(TOTAL // count + 1) for count in counts))
    return [
        values
        for values in every
        if sum(count * value for count, value in zip(counts, values, strict=True)) == TOTAL
    ]


def goal_of(counts: Sequence[int], values: Sequence[int]) -> Mapping[str, Any]:
    """Return the goal of one side: the count and the value of each item."""
    return {item: [count, value] for item, count, value in zip(ITEMS, counts, values, strict=True)}
