"""The search ``random``: uniform points of the action space."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.dialogue.types import Dialogue
from pytest_dstfuzz.perturb.action import ActionSpace
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.seeding import stream


class RandomSearch:
    """Draws every action uniformly from a stream of its own.

    Args:
        seed: seed of the campaign.
        k: number of transformations that one variant associates, 1 to 6.
    """

    name = "random"

    def __init__(self, seed: int, k: int) -> None:
        self._seed = seed
        self._k = k
        self._space = ActionSpace()

    def actions(self, dialogue: Dialogue, turn_index: int, count: int) -> Sequence[Action]:
        """Return ``count`` uniform actions, one from the stream of each variant."""
        return [
            self._space.sample(
                stream(self._seed, "search", self.name, dialogue.id, turn_index, variant), self._k
            )
            for variant in range(count)
        ]
