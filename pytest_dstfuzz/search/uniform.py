"""The search ``random``: uniform points of the action space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dstfuzz.search.protocol import Feedback, Proposal, SearchTask
from pytest_dstfuzz.seeding import stream


class RandomSearch:
    """Draws every action uniformly from a stream of its own.

    Args:
        seed: seed of the campaign.
        k: number of transformations that one variant associates, 1 to 6.
    """

    name = "random"
    order = "reading"
    adaptive = False

    def __init__(self, seed: int, k: int) -> None:
        self.seed = seed
        self.k = k

    def context_variant(self, number: int) -> int:
        """Return ``number``: every variant stands for itself."""
        return number

    def turn(self, task: SearchTask) -> RandomTurn:
        """Begin a turn."""
        return RandomTurn(self, task)


@dataclass(frozen=True, slots=True)
class RandomTurn:
    """The attempts of `RandomSearch` at one turn."""

    search: RandomSearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - it does not learn
        """Return the variant that a uniform action makes."""
        # The stream of the first draw is that of the variant itself.
        redraw = (draw,) if draw else ()
        names = ("search", self.search.name, self.task.dialogue.id, self.task.turn_index, number)
        rng = stream(self.search.seed, *names, *redraw)
        action = self.task.perturber.space.sample(rng, self.search.k)
        return Proposal(self.task.perturber.apply(self.task.source, action), action)
