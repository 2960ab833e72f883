"""The protocol of trackers that ``dstfuzz harden`` can train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from pytest_dstfuzz import BeliefState, Context

#: Relations whose rewrites harden a tracker by default.
HARDENING_RELATIONS: Final = (
    *("metamorphic", "disfluency", "plug-in"),
    *("negation", "antonym", "removal", "role-swap", "confusing-entity"),
    *("value-swap", "turn-back", "repair"),
)
#: The value of ``--measured`` if no recorded dialogues measure the trained bot.
NOTHING: Final = "no"


class TrainingTurn(NamedTuple):
    """A turn to learn: a dialogue up to a message of the user, and the right state after it."""

    context: Context
    state: BeliefState


class Trainable(Protocol):
    """A tracker that can learn. It also answers, as any other tracker does."""

    def train(self, turns: Sequence[TrainingTurn], seed: int) -> None:
        """Learn from turns, which are in random order.

        The result must depend only on the turns, on ``seed`` and on all that the tracker learned
        before. Otherwise a run that was interrupted cannot continue as if it had not been.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write all that the tracker learned to an empty folder, which exists."""
        ...

    def load(self, folder: Path) -> None:
        """Return to the state that `save` wrote to a folder."""
        ...
