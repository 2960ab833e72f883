"""What a campaign tells its listeners while it runs: the terminal, the report, the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_dstfuzz.campaign.results import TurnResult

__all__ = ["Event", "TurnDone"]


@dataclass(frozen=True, slots=True)
class CampaignStarted:
    """The first turn is about to be run."""

    dialogues: int
    #: Turns of the plan: every turn of each dialogue up to the last one requested.
    turns: int
    #: Contexts that will be asked for if no variant breaks the relation, and at most, about, if all
    #: of them do: what caused a violation and its smallest version are looked for.
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class WindowStarted:
    """Some dialogues are about to be run together, so that batches are full."""

    dialogues: int
    turns: int
    #: Contexts that these dialogues will ask for, second passes apart.
    contexts: int


@dataclass(frozen=True, slots=True)
class BatchDone:
    """The tracker answered one batch."""

    #: Contexts of this batch, and those of them on which the tracker failed.
    contexts: int
    failed: int
    #: Contexts asked so far, over all campaigns that share the predictor.
    calls: int


@dataclass(frozen=True, slots=True)
class TurnDone:
    """A turn has its result; in the order of the plan within a window."""

    result: TurnResult


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """The tracker failed on one context."""

    reason: str
    #: The user utterances of that context, oldest first.
    context: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """The budget ended; sent once, whatever is asked for afterwards."""

    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class CampaignFinished:
    """Every planned turn has a result."""

    turns: int
    #: Turns that the budget left out.
    skipped: int
    calls: int


Event = (
    CampaignStarted
    | WindowStarted
    | BatchDone
    | TurnDone
    | ErrorSeen
    | BudgetReached
    | CampaignFinished
)
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Do nothing with ``event``: the listener of whoever does not listen."""
