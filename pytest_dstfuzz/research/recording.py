"""A search that keeps the actions it takes, whichever search it is."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask, TurnSearch

#: Dialogue, turn, number of the variant, draw: what an action was taken for.
_Place = tuple[str, int, int, int]


class Recording:
    """Hands everything on to another search and keeps the actions of its proposals.

    Args:
        search: who chooses.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        # By place, so that a turn that is run again is not counted twice.
        self._taken: dict[_Place, Action] = {}

    @property
    def name(self) -> str:
        """The name of the search."""
        return self._search.name

    @property
    def order(self) -> str:
        """What its position parameters count through."""
        return self._search.order

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what earlier attempts showed."""
        return self._search.adaptive

    @property
    def actions(self) -> tuple[Action, ...]:
        """The action of every draw so far, redraws included, sorted by what it was for."""
        return tuple(action for _, action in sorted(self._taken.items(), key=lambda item: item[0]))

    def context_variant(self, number: int) -> int:
        """Return the number of the variants of earlier turns that a variant is seen with."""
        return self._search.context_variant(number)

    def turn(self, task: SearchTask) -> RecordingTurn:
        """Begin a turn."""
        place = (task.dialogue.id, task.turn_index)
        return RecordingTurn(self._search.turn(task), place, self._taken)


class RecordingTurn:
    """The attempts of a `Recording` at one turn."""

    def __init__(
        self, turn: TurnSearch, place: tuple[str, int], taken: dict[_Place, Action]
    ) -> None:
        self._turn = turn
        self._place = place
        self._taken = taken

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what the search proposes."""
        proposal = self._turn.propose(number, draw, seen)
        self._taken[(*self._place, number, draw)] = proposal.action
        return proposal
