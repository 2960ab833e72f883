"""The protocol of searches, which choose how to edit a user's utterance.

A search chooses actions. An action is a point in the space of possible edits, and produces a
variant of the utterance. A campaign goes through a dialogue in passes. In pass ``i``, every user
turn gets its variant number ``i``, in the order of the dialogue. An ``adaptive`` search gets the
results of a pass before the next pass begins. So it can learn from earlier attempts at a turn, and
the tracker still gets many turns in one batch.
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
from pytest_dstfuzz.perturb.words import Action, Edit, Variant
from pytest_dstfuzz.relations.relation import Rewrite
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

__all__ = [
    "NO_ACTION",
    "Feedback",
    "Lesson",
    "Proposal",
    "Search",
    "SearchFamily",
    "SearchTask",
    "TrainingRecord",
    "TriedVariant",
    "TurnSearch",
]


class SearchTask(NamedTuple):
    """The data on a user turn that a search gets. It has no access to the tracker's internals."""

    dialogue: Dialogue
    turn_index: int
    #: The prediction for the clean turn, or ``None`` if the tracker failed on it.
    clean: Prediction | None
    #: Makes the variants, and holds the validity profile with its locks.
    perturber: Perturber
    #: The clean utterance, prepared by ``perturber``.
    source: Source
    #: The number of variants of the turn.
    variants: int = 1

    def stream(self, search: str, seed: int, *names: int | str) -> np.random.Generator:
        """Return a random generator for this search and this turn.

        Args:
            search: the name of the search.
            seed: the seed of the campaign.
            names: further parts of the stream's name, such as the numbers of variant and draw.
        """
        return stream(seed, "search", search, self.dialogue.id, self.turn_index, *names)

    def proposal(self, action: Action) -> Proposal:
        """Apply an action to the utterance of the turn, and return the variant as a proposal."""
        return Proposal(self.perturber.apply(self.source, action), action)


#: The action of a variant whose edits were drawn one by one.
NO_ACTION: Final = Action((), 0)


class Proposal(NamedTuple):
    """A variant that a search wants to try."""

    variant: Variant
    #: The point of the action space that made it, or its last edits; else `NO_ACTION`.
    action: Action
    #: The importance weight, if the search has a density: the probability by the noise model,
    #: divided by the probability that the search proposes it.
    weight: float | None = None
    #: Set if the relation makes the edits itself, instead of a search.
    rewrite: Rewrite | None = None
    #: The number of the variants of earlier turns that form its context, if the search chooses it
    #: by turn; else see `Search.context_variant`.
    context: int | None = None


class Feedback(NamedTuple):
    """The result of an earlier variant of the same turn."""

    proposal: Proposal
    #: Whether the variant was valid, not a duplicate, and the tracker answered.
    answered: bool = False
    #: Whether it violated the relation, beyond violations carried over from earlier turns.
    broken: bool = False
    #: The number of slots that differ from the clean prediction.
    changes: int = 0
    #: The impurity of the prediction minus that of the clean one, see `impurity_difference`.
    impurity: float = 0.0
    #: The answer of the tracker, or ``None`` if it was not asked or had no answer.
    answer: Prediction | None = None


class TriedVariant(NamedTuple):
    """A variant of a finished turn that the tracker answered."""

    edits: tuple[Edit, ...]
    #: Whether its edits broke the relation, alone or together with those of earlier turns.
    broken: bool
    #: The edits of its minimal version; empty if that is not known.
    needed: tuple[Edit, ...] = ()


class Lesson(NamedTuple):
    """The results of a finished turn. A search may learn from them for other dialogues."""

    task: SearchTask
    tried: tuple[TriedVariant, ...]


class TurnSearch(Protocol):
    """Proposes the variants of one user turn. `Search.turn` returns such an object."""

    @abstractmethod
    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return variant ``number`` of the turn.

        The result must depend only on the arguments, the task and the seed of the search. Then
        turns may run in any order and in any process.

        Args:
            number: the number of the variant, from 0.
            draw: the number of earlier proposals for this variant that were rejected as vacuous,
                duplicate or invalid.
            seen: the results of the variants ``0`` to ``number - 1`` if the search is adaptive;
                otherwise only their proposals.
        """


class Search(Protocol):
    """Chooses which edits to try, as points of the action space.

    A subclass must define ``name`` and ``turn``. All other members have defaults.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the search, for the option ``search`` and for reports."""

    @property
    def order(self) -> str:
        """The order of the words for position parameters: ``reading`` or ``distance``."""
        return "reading"

    @property
    def adaptive(self) -> bool:
        """Whether the search needs the results of its earlier variants of a turn."""
        return False

    @property
    def associates(self) -> bool:
        """Whether the option ``transformations`` limits the transformations of a variant."""
        return True

    @property
    def by_density(self) -> bool:
        """Whether proposals have weights, which are needed to estimate the failure rate of users.

        If true, rejected proposals are not replaced. The noise model draws the turns before a
        variant, so most of them are clean. Otherwise these turns are earlier variants.
        """
        return False

    def samples(self, number: int) -> bool:  # noqa: ARG002 - one search does so for all
        """Return whether the noise model draws the turns before the variant ``number``.

        See `by_density`.
        """
        return self.by_density

    @property
    def waits(self) -> bool:
        """Whether the search may skip a turn in a pass by proposing the clean utterance.

        A skipped turn has no variant in this pass. Later turns see the last valid variant of the
        skipped turn.
        """
        return False

    def context_variant(self, number: int) -> int:
        """Return the number of the earlier turns' variants in the context of variant ``number``.

        By default, the result is ``number``. It is lower for the steps of a hill climb, because all
        steps must be compared in one context.
        """
        return number

    @property
    def lessons(self) -> int:
        """The maximum number of dialogues that the search learns from.

        A campaign runs this number of dialogues of its sample first, in rounds. After each round it
        calls `learn`, and uses the returned search for all later dialogues.
        """
        return 0

    @property
    def learned(self) -> str:
        """A text that identifies the knowledge from `learn`."""
        return ""

    def learn(self, lessons: Sequence[Lesson]) -> Search:  # noqa: ARG002 - most learn nothing
        """Return a search that has also learned from these results. This object stays unchanged."""
        return self

    @abstractmethod
    def turn(self, task: SearchTask) -> TurnSearch:
        """Return an object that proposes the variants of one user turn."""


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """Describes how a search was trained: its file, its data and its settings."""

    what: str  #: The kind of the trained object, such as ``policy`` or ``scorer``.
    fingerprint: str  #: The fingerprint of its file.
    tracker: str  #: The tracker it was trained against, as its user named it.
    data: str  #: The data set and the splits of the training dialogues.
    held_out: tuple[str, ...]  #: Ids of the dialogues that were not used for training.
    validity: str  #: The validity profile.
    seed: int  #: The seed of the training.
    calls: int  #: The number of contexts that the tracker was asked for, including clean ones.
    code: str = ""  #: The fingerprint of the code that uses it; if empty, no result is cached.
    reward: str = ""  #: The name of its reward; empty if the method has no choice of rewards.


class SearchFamily(ABC):
    """Searches that share a name but have different arguments: ``NAME:ARGUMENT``.

    A family is registered under ``NAME`` instead of a factory. The argument may be the file of a
    trained search, or have any notation. Files and folders that it names count by their content.
    """

    #: The valid forms of the name for messages, such as ``agent`` and ``agent:PATH``.
    forms: tuple[str, ...]

    @abstractmethod
    def make(self, name: str, *, seed: int, k: int) -> object:
        """Return the `Search` for a name as the user wrote it.

        The ``name`` of the returned search is ``NAME`` alone, without the argument.
        """

    def find_training(self, name: str) -> TrainingRecord | None:  # noqa: ARG002 - for subclasses
        """Return how the search ``name`` was trained, or ``None`` if it was not trained."""
        return None


def impurity_difference(clean: Prediction, perturbed: Prediction) -> float:
    """Return how much less certain the tracker is about the variant than about the clean turn.

    The impurity of a slot says how uncertain the tracker is about its value. The result is the mean
    impurity over slots of the variant minus the mean impurity of the clean turn, in (-1, 1). It is
    positive if the variant is closer to a change of the prediction (``gini_dif`` of the thesis). If
    one side has no impurities, because the tracker generated nothing, its mean is 0. If both sides
    have none, the result is the share of slots with different values, in [0, 1].
    """
    if clean.impurities or perturbed.impurities:
        return _mean_impurity(perturbed) - _mean_impurity(clean)
    slots = {*clean.state, *perturbed.state}
    return len(diff_states(clean.state, perturbed.state)) / len(slots) if slots else 0.0


def _mean_impurity(prediction: Prediction) -> float:
    values = prediction.impurities
    return sum(values.values()) / len(values) if values else 0.0
