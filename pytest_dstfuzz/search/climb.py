"""Searches that add one edit after the other and keep those that make the tracker less sure.

``greedy`` is what one would write by hand. ``dialtest`` is DialTest (Liu et al., ISSTA
2021) as the thesis adapted it: synonyms and inserted words only, at most five of them, kept
while each raises the impurity by more than 0.001. Both start again from the clean utterance
when they are at the end of a climb; the steps of one climb are seen in one context, so that
they can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_dstfuzz.config import TRANSFORMATIONS
from pytest_dstfuzz.perturb.engine import Grown
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.search.protocol import Proposal, Seen, Task
from pytest_dstfuzz.seeding import stream


@dataclass(frozen=True, slots=True)
class Climb:
    """The rules of a climb.

    Attributes:
        name: of the search.
        transformations: those that a step may use.
        steps: attempts of one climb, after which the next begins.
        kept: most edits that are kept in one climb.
        threshold: an edit is kept where it raises the impurity by more than this.
    """

    name: str
    transformations: tuple[str, ...]
    steps: int
    kept: int
    threshold: float


GREEDY: Final = Climb("greedy", TRANSFORMATIONS, steps=8, kept=8, threshold=0.0)
DIALTEST: Final = Climb(
    "dialtest", ("word_replace", "word_insert"), steps=8, kept=5, threshold=0.001
)


class ClimbSearch:
    """Climbs by the rules of a `Climb`.

    Args:
        rules: of the climb.
        seed: seed of the campaign.
    """

    order = "reading"
    adaptive = True

    def __init__(self, rules: Climb, seed: int) -> None:
        self.rules = rules
        self.name = rules.name
        self.seed = seed

    def companion(self, number: int) -> int:
        """Return the number of the first step of the climb."""
        return number - number % self.rules.steps

    def turn(self, task: Task) -> ClimbTurn:
        """Begin a turn."""
        return ClimbTurn(self, task)


class ClimbTurn:
    """The attempts of a `ClimbSearch` at one turn."""

    def __init__(self, search: ClimbSearch, task: Task) -> None:
        self._search = search
        self._task = task

    def propose(self, number: int, draw: int, seen: Sequence[Seen]) -> Proposal:
        """Return the best variant of this climb so far with one more edit."""
        rules, task = self._search.rules, self._task
        start = self._search.companion(number)
        base = self._base(seen[start:number])
        names = ("search", rules.name, task.dialogue.id, task.turn_index, number, draw)
        action = self._step(stream(self._search.seed, *names), base)
        grown = task.perturber.grow(task.source, action, base)
        return Proposal(grown.variant, action)

    def _base(self, steps: Sequence[Seen]) -> Grown | None:
        """Return the variant that the climb has reached, built from the steps that were kept."""
        rules, task = self._search.rules, self._task
        base: Grown | None = None
        height, kept = 0.0, 0
        for step in steps:
            if step.answered and step.impurity > height + rules.threshold and kept < rules.kept:
                base = task.perturber.grow(task.source, step.proposal.action, base)
                height, kept = step.impurity, kept + 1
        return base

    def _step(self, rng: np.random.Generator, base: Grown | None) -> Action:
        """Draw an action of one edit that can still be made on ``base``."""
        space = self._task.perturber.space
        action = space.sample(rng, 1)
        names = self._search.rules.transformations
        if base and any(e.transformation.startswith("char") for e in base.variant.edits):
            # A word-level edit no longer has its turn; see `Perturber.grow`.
            names = tuple(name for name in names if name.startswith("char"))
        return space.single(action, names[int(rng.integers(len(names)))])
