"""Searches that add one edit after the other and keep those that make the tracker less sure.

``greedy`` is what one would write by hand, with every operator. ``dialtest`` is DialTest (Liu
et al., ISSTA 2021) as the thesis adapted it, with its own operators and no others: synonyms and
inserted words (a filler, or what a masked language model proposes where there is one; its back
translation is left out there, too), at most five of them, kept while each raises the impurity
by more than 0.001. Both start again from the clean utterance
when they have used up the steps of a climb, or kept as many edits as it may have; the steps
of one climb are seen in one context, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_dstfuzz.perturb.action import GRID
from pytest_dstfuzz.perturb.draft import pick
from pytest_dstfuzz.perturb.engine import PartialVariant
from pytest_dstfuzz.perturb.types import Action, Variant
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask


@dataclass(frozen=True, slots=True)
class HillClimb:
    """The rules of a climb."""

    name: str  #: Of the search.
    #: What a step may do: transformation -> its operators; ``None`` = all in use.
    moves: Mapping[str, tuple[str, ...]] | None
    steps: int  #: Attempts of one climb, after which the next begins.
    kept: int  #: Most edits that are kept in one climb.
    threshold: float  #: An edit is kept where it raises the impurity by more than this.


_SYNONYMS_AND_WORDS: Final = {
    "word_replace": ("synonym",),
    "word_insert": ("filler", "mlm"),
}
GREEDY: Final = HillClimb("greedy", None, steps=8, kept=8, threshold=0.0)
DIALTEST: Final = HillClimb("dialtest", _SYNONYMS_AND_WORDS, steps=8, kept=5, threshold=0.001)


class HillClimbSearch(Search):
    """Climbs by the rules of a `HillClimb`."""

    name = ""
    adaptive = True
    associates = False

    def __init__(self, rules: HillClimb, seed: int) -> None:
        self.name = rules.name
        self.rules = rules
        self.seed = seed

    def context_variant(self, number: int) -> int:
        """Return the number of the first step of the climb."""
        return number - number % self.rules.steps

    def turn(self, task: SearchTask) -> HillClimbTurn:
        """Begin a turn."""
        return HillClimbTurn(self, task)


@dataclass(frozen=True, slots=True)
class HillClimbTurn:
    """The attempts of a `HillClimbSearch` at one turn."""

    search: HillClimbSearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the variant that this climb has reached with one more edit."""
        rules, task = self.search.rules, self.task
        start = self.search.context_variant(number)
        base = self._base(seen[start:number])
        rng = task.stream(rules.name, self.search.seed, number, draw)
        action = task.perturber.space.sample(rng, 1)
        step = self._step(action, rng, base)
        if step is None:
            # Nothing is left to do: the same once more, which is not run.
            text = task.source.text
            clean = Variant(text, text, (), 0.0, 0.0, "vacuous")
            return Proposal(base.variant if base else clean, action)
        return Proposal(task.perturber.grow(task.source, step, base).variant, step)

    def _base(self, steps: Sequence[Feedback]) -> PartialVariant | None:
        """Return the variant that the climb has reached, built from the steps that were kept."""
        rules, task = self.search.rules, self.task
        base: PartialVariant | None = None
        score, kept = 0.0, 0
        for step in steps:
            if step.answered and step.impurity > score + rules.threshold:
                base = task.perturber.grow(task.source, step.proposal.action, base)
                score, kept = step.impurity, kept + 1
                if kept == rules.kept:
                    base, score, kept = None, 0.0, 0
        return base

    def _step(
        self, action: Action, rng: np.random.Generator, base: PartialVariant | None
    ) -> Action | None:
        """Turn ``action`` into one edit that can still be made on ``base``, if there is any."""
        space, moves = self.task.perturber.space, self.search.rules.moves
        menus = self.task.perturber.menus(self.task.source, base)
        found = []
        for name in menus if moves is None else moves:
            names = menus[name].operators if name in menus else ()
            own = names if moves is None else moves[name]
            if allowed := [place for place, operator in enumerate(names) if operator in own]:
                found.append((name, allowed, len(names)))
        if not found:
            return None
        name, allowed, count = found[int(rng.integers(len(found)))]
        (step,) = space.decode(space.single(action, name))
        position, which, *choice = step.repetitions[0]
        # In the middle of what selects the operator, so that the grid does not matter.
        which = round((allowed[pick(which, len(allowed))] + 0.5) / count * GRID) / GRID
        return space.encode([step._replace(repetitions=((position, which, *choice),))])
