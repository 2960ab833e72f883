"""The search by which a scorer learns: some attempts by chance, the others as it thinks best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_dstfuzz.agents.bandit_search import (
    attempts_of,
    chances_of_new,
    compose,
    noisy,
    view_of,
    waiting,
)
from pytest_dstfuzz.agents.candidates import together
from pytest_dstfuzz.agents.scorer import Scorer
from pytest_dstfuzz.agents.slot_view import SlotView
from pytest_dstfuzz.perturb.types import Variant
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)

#: Spread of the noise on scores: more than in use, so that more is tried.
_NOISE: Final = 0.6


class ExploringSearch(Search):
    """Tries edits and keeps what they showed.

    Args:
        scorer: what is known so far; ``None`` = nothing, and all attempts are by chance.
        share: of the attempts that are by chance.
        seed: of every draw.
    """

    name = "exploring"
    adaptive = True
    order = "distance"

    def __init__(self, scorer: Scorer | None, share: float, seed: int) -> None:
        self.scorer = scorer
        self.share = share if scorer else 1.0
        self.seed = seed
        #: (dialogue, turn) -> the turn and its attempts.
        self.turns: dict[tuple[str, int], tuple[SlotView, Sequence[Feedback]]] = {}

    def turn(self, task: SearchTask) -> ExploringTurn:
        """Begin a turn."""
        return ExploringTurn(self, task)


class ExploringTurn(TurnSearch):
    """The attempts of an `ExploringSearch` at one turn."""

    def __init__(self, search: ExploringSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return a variant by chance, or what the scorer thinks best."""
        search, task = self.search, self.task
        place = task.dialogue.id, task.turn_index
        if place not in search.turns:
            # What the attempts showed is written into the same list after they were made.
            search.turns[place] = view_of(task, search.seed), seen
        view = search.turns[place][0]
        if not view.candidates:
            return waiting(task)
        rng = task.stream(search.name, search.seed, number, draw)
        if search.scorer is None or rng.random() < search.share:
            return Proposal(self._by_chance(view, rng), NO_ACTION)
        single = chances_of_new(search.scorer, view, attempts_of(seen))
        _, variant = compose(task, view, noisy(single, _NOISE, rng))
        return waiting(task) if variant is None else Proposal(variant, NO_ACTION)

    def _by_chance(self, view: SlotView, rng: np.random.Generator) -> Variant:
        """Return a variant of one edit up to as many as the quota of words allows."""
        task = self.task
        size = int(rng.integers(1, task.source.draft.quota + 1))
        chosen: list[int] = []
        for place in rng.permutation(len(view.candidates)).tolist():
            one = view.candidates[place]
            if not any(one.meets(view.candidates[other]) for other in chosen):
                chosen.append(place)
            if len(chosen) == size:
                break
        return together(task.perturber, task.source, [view.candidates[place] for place in chosen])
