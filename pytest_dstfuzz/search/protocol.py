"""What a search is: it chooses the actions that make the variants of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_dstfuzz.dialogue.types import Dialogue
from pytest_dstfuzz.perturb.types import Action


class Search(Protocol):
    """Chooses the points of the action space to try."""

    @property
    def name(self) -> str:
        """The name that the option ``search`` takes."""
        ...

    def actions(self, dialogue: Dialogue, turn_index: int, count: int) -> Sequence[Action]:
        """Return the actions of variants ``0`` to ``count - 1`` of a turn.

        The action of a variant is a function of the search's seed, the dialogue, the
        turn index and the number of the variant, never of what was asked before, so
        that turns may be run in any order and in any process, and asking for more
        variants leaves the first ones as they were.
        """
        ...
