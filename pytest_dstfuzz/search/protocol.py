"""What a search is: it chooses the actions that make the variants of a turn.

A campaign goes through a dialogue in passes. In pass ``i`` every turn, in order, gets its
variant number ``i``; a search that is ``adaptive`` is then told what each of them did,
before the next pass begins. So a search learns from its earlier attempts at a turn, and
the tracker is still asked for many turns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.source import Source
from pytest_dstfuzz.perturb.types import Action, Variant
from pytest_dstfuzz.trackers.tracker import Prediction


class SearchTask(NamedTuple):
    """One turn, as a search gets it: nothing in it is from inside the tracker."""

    dialogue: Dialogue
    turn_index: int
    #: The prediction on the clean turn; ``None`` where the tracker failed on it.
    clean: Prediction | None
    #: Makes the variants; it holds the validity profile and its locks.
    perturber: Perturber
    #: The clean utterance, prepared by ``perturber``.
    source: Source


class Proposal(NamedTuple):
    """A variant that a search wants to try."""

    variant: Variant
    #: The point of the action space that made it, or its last edits.
    action: Action


class Feedback(NamedTuple):
    """What an earlier attempt at the same turn showed."""

    proposal: Proposal
    #: The tracker was asked: the variant was valid, no duplicate, and the tracker answered.
    answered: bool = False
    #: It broke the relation, by more than what earlier turns had carried into it.
    broken: bool = False
    #: Slots that differ from the clean prediction.
    changes: int = 0
    #: Impurity of the prediction minus that of the clean one, see `impurity_difference`.
    impurity: float = 0.0


class TurnSearch(Protocol):
    """The attempts of a search at one turn."""

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return variant ``number`` of the turn.

        A function of the arguments, the task and the search's seed, never of what was
        asked before, so that turns may be run in any order and in any process.

        Args:
            number: of the variant, from 0.
            draw: 0, or how many proposals for this number were refused because they were
                vacuous, a duplicate or not valid.
            seen: what the variants ``0`` to ``number - 1`` showed, where the search is
                adaptive; otherwise only what they were.
        """
        ...


class Search(Protocol):
    """Chooses the points of the action space to try."""

    @property
    def name(self) -> str:
        """The name that the option ``search`` takes."""
        ...

    @property
    def order(self) -> str:
        """What its position parameters count through: ``reading`` or ``distance``."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what earlier attempts showed."""
        ...

    def context_variant(self, number: int) -> int:
        """Return the number of the variants of earlier turns that a variant is seen with.

        ``number`` itself, or a lower one where several attempts are steps of one search
        and have to be compared in the same context.
        """
        ...

    def turn(self, task: SearchTask) -> TurnSearch:
        """Begin a turn."""
        ...
