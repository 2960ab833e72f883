"""What a search is: it chooses the actions that make the variants of a turn.

A campaign goes through a dialogue in passes. In pass ``i`` every turn, in order, gets its
variant number ``i``; a search that is ``adaptive`` is then told what each of them did,
before the next pass begins. So a search learns from its earlier attempts at a turn, and
the tracker is still asked for many turns at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import Dialogue, diff_states
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.words import Action, Variant
from pytest_dstfuzz.relations.relation import Rewrite
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

__all__ = [
    "NO_ACTION",
    "Feedback",
    "Proposal",
    "Search",
    "SearchFamily",
    "SearchTask",
    "Trained",
    "TurnSearch",
]


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
    #: How many variants the turn is to get.
    variants: int = 1

    def stream(self, search: str, seed: int, *names: int | str) -> np.random.Generator:
        """Return random numbers that are the search's own at this turn.

        Args:
            search: its name.
            seed: of the campaign.
            names: what else they are for, such as the numbers of variant and draw.
        """
        return stream(seed, "search", search, self.dialogue.id, self.turn_index, *names)

    def proposal(self, action: Action) -> Proposal:
        """Return the variant that an action makes of the utterance, as a proposal."""
        return Proposal(self.perturber.apply(self.source, action), action)


#: Of a variant whose edits were drawn one by one.
NO_ACTION: Final = Action((), 0)


class Proposal(NamedTuple):
    """A variant that a search wants to try."""

    variant: Variant
    #: The point of the action space that made it, or its last edits; `NO_ACTION` where none did.
    action: Action
    #: Of a search with a density: of all that people may make of the turn, how much it stands for;
    #: probability by the noise model / probability that the search proposes it.
    weight: float | None = None
    #: Of a relation that makes the edits itself, in the place of a search.
    rewrite: Rewrite | None = None


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
    #: What the tracker answered; ``None`` where it was not asked, or had no answer.
    answer: Prediction | None = None


class TurnSearch(Protocol):
    """The attempts of a search at one turn."""

    @abstractmethod
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


class Search(Protocol):
    """Chooses the points of the action space to try.

    A class that inherits from it writes ``name`` and ``turn``, and the rest where it is to be
    otherwise.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the option ``search`` takes, and that reports show."""

    @property
    def order(self) -> str:
        """What its position parameters count through: ``reading`` or ``distance``."""
        return "reading"

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what earlier attempts showed."""
        return False

    @property
    def associates(self) -> bool:
        """Whether the option ``transformations`` says how many it associates in a variant."""
        return True

    @property
    def by_density(self) -> bool:
        """Whether its proposals have weights, by which failures of users are estimated.

        Then none is drawn again, and the earlier turns of a context are as the noise model makes
        them, most of them clean, and not variants.
        """
        return False

    @property
    def waits(self) -> bool:
        """Whether it may leave a turn alone for a pass, by proposing the clean utterance.

        That is not drawn again, and later turns of the dialogue are seen with the last variant of
        the turn that is valid.
        """
        return False

    def context_variant(self, number: int) -> int:
        """Return the number of the variants of earlier turns that a variant is seen with.

        ``number`` itself, or a lower one where several attempts are steps of one search
        and have to be compared in the same context.
        """
        return number

    @abstractmethod
    def turn(self, task: SearchTask) -> TurnSearch:
        """Begin a turn."""


@dataclass(frozen=True, slots=True)
class Trained:
    """How a search came to be."""

    what: str  #: What was trained, such as ``policy`` or ``scorer``.
    fingerprint: str  #: Of its file.
    tracker: str  #: The tracker it was trained against, as its user named it.
    data: str  #: Data set and splits of the training dialogues.
    held_out: tuple[str, ...]  #: Ids of the dialogues of the data that it never saw.
    validity: str  #: Validity profile.
    seed: int  #: Of the training.
    calls: int  #: Contexts that the tracker was asked for, clean ones included.
    code: str = ""  #: Fingerprint of the code that uses it; without one no result is kept.


class SearchFamily(ABC):
    """Searches that one name and an argument stand for: ``NAME`` and ``NAME:ARGUMENT``.

    It is registered under ``NAME``, in the place of a factory. An argument may be the file of a
    search that was trained.
    """

    #: What may be written, as messages list it, such as ``agent`` and ``agent:PATH``.
    forms: tuple[str, ...]

    @abstractmethod
    def make(self, name: str, *, seed: int, k: int) -> object:
        """Return the `Search` of a name as the user wrote it; its own name is ``NAME`` alone."""

    def trained(self, name: str) -> Trained | None:  # noqa: ARG002 - for those that were trained
        """Return how a search came to be; ``None`` if it was not trained."""
        return None


def impurity_difference(clean: Prediction, perturbed: Prediction) -> float:
    """Return how much less sure the tracker is of the variant than of the clean turn.

    The mean impurity over slots of the one minus that of the other, in (-1, 1); positive
    where the variant is closer to a change of mind (``gini_dif`` of the thesis). A tracker
    that generated nothing has no impurity on that side: 0, so that the scale stays. Where
    neither side has any, the share of slots in which the states disagree, in [0, 1].
    """
    if clean.impurities or perturbed.impurities:
        return _mean_impurity(perturbed) - _mean_impurity(clean)
    slots = {*clean.state, *perturbed.state}
    return len(diff_states(clean.state, perturbed.state)) / len(slots) if slots else 0.0


def _mean_impurity(prediction: Prediction) -> float:
    values = prediction.impurities
    return sum(values.values()) / len(values) if values else 0.0
