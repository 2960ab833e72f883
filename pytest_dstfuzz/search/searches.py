"""Searches that do not learn: random, near-value, greedy, dialtest, noise."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.noise.model import NoisyUtterance
from pytest_dstfuzz.perturb.draft import TYPO, Source, pick
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.engine import GRID, PartialVariant
from pytest_dstfuzz.perturb.words import Action, Edit, Variant
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.transformations import of_word_level

#: Draws of which the best is taken.
DRAWS: Final = 8
#: Percent of flips: beside a value, two or three words away, further.
_TYPO: Final = (6.0, 3.0, 1.5)
_WORD: Final = (5.4, 2.0, 0.5)
#: In or at a word right beside a value that says what the value is for.
_CUE_TYPO: Final = 15.8
_CUE_PUNCTUATION: Final = 10.6
_FAR: Final = 4


class RandomSearch(Search):
    """Draws every action uniformly from a stream of its own."""

    name = "random"

    def __init__(self, seed: int, k: int) -> None:
        self.seed = seed
        self.k = k

    def turn(self, task: SearchTask) -> TurnSearch:
        """Begin a turn."""
        return RandomTurn(self, task)


@dataclass(frozen=True, slots=True)
class RandomTurn:
    """The attempts of `RandomSearch` at one turn."""

    search: RandomSearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - it does not learn
        """Return the variant that a uniform action makes."""
        # The stream of the first draw is that of the variant itself.
        redraw = (draw,) if draw else ()
        rng = self.task.stream(self.search.name, self.search.seed, number, *redraw)
        return self.task.proposal(self.task.perturber.space.sample(rng, self.search.k))


class NearValueSearch(RandomSearch):
    """Takes the draw whose edits are nearest to slot values."""

    name = "near-value"
    #: The order does not matter to a search that looks at what its draws did; it needs
    #: the distances, though.
    order = "distance"

    def turn(self, task: SearchTask) -> TurnSearch:
        """Begin a turn."""
        return NearValueTurn(self, task)


class NearValueTurn(RandomTurn):
    """The attempts of `NearValueSearch` at one turn."""

    __slots__ = ()

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the most promising of a few variants that is not there yet."""
        task = self.task
        rng = task.stream(self.search.name, self.search.seed, number, draw)
        known = {earlier.proposal.variant.text for earlier in seen}
        drawn = []
        for _ in range(DRAWS):
            proposal = task.proposal(task.perturber.space.sample(rng, self.search.k))
            variant = proposal.variant
            new = variant.valid and variant.text not in known
            score = heuristic_score(task.source, variant) if new else -1.0
            drawn.append((score, proposal))
        # Of equally promising ones, the first.
        return max(drawn, key=lambda item: item[0])[1]


def heuristic_score(source: Source, variant: Variant) -> float:
    """Return how promising a variant is: the sum over its edits, in percent of flips."""
    spans = source_spans(variant.edits)
    return sum(
        _edit_score(source, edit, span) for edit, span in zip(variant.edits, spans, strict=True)
    )


def _edit_score(source: Source, edit: Edit, span: tuple[int, int]) -> float:
    tokens, starts = source.draft.tokens, source.parts.starts
    if not tokens:
        return 0.0
    last = bisect_right(starts, max(span[1] - 1, span[0])) - 1
    first = max(bisect_right(starts, span[0]) - 1, 0)
    touched = tokens[first : max(last, first) + 1]
    distance = min(token.distance for token in touched)
    ring = 0 if distance <= 1 else 1 if distance < _FAR else 2
    if of_word_level(edit.transformation) and edit.operator != "misspelling":
        return _WORD[ring]
    if ring or touched[0].role != TYPO:
        return _TYPO[ring]
    return _CUE_PUNCTUATION if edit.operator == "punctuation" else _CUE_TYPO


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


Floats = npt.NDArray[np.float64]
#: A turn that is distorted as often as one of so many words, of which none is locked, or oftener,
#: gets all variants that a turn may get.
WORDS: Final = 12


class NoiseSearch(Search):
    """Draws what people make of a turn, by the noise model of the profile ``natural``."""

    name = "noise"
    by_density = True
    associates = False

    def __init__(self, seed: int, k: int) -> None:  # noqa: ARG002 - as many edits as people make
        self.seed = seed

    def turn(self, task: SearchTask) -> NoiseTurn:
        """Begin a turn."""
        return NoiseTurn(self, task)


class Drawn(NamedTuple):
    """An outcome that is in the sample."""

    edits: tuple[Edit, ...]
    weight: float


class NoiseTurn(TurnSearch):
    """The attempts of `NoiseSearch` at one turn."""

    def __init__(self, search: NoiseSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task

    @cached_property
    def sample(self) -> tuple[Drawn, ...]:
        """The outcomes that are tried; fewer than the turn is to have where there are no more."""
        task, support = self.task, self.task.source.support
        if support is None:  # An utterance that is too long to be edited.
            return ()
        rng = task.stream(self.search.name, self.search.seed)
        outcomes = Outcomes(support.noisy, task.perturber.noise.rate)
        return outcomes.draw(outcomes.size(task.variants), rng)

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - nothing is drawn again
        """Return the variant that an outcome of the sample is."""
        task = self.task
        if number >= len(self.sample):
            text = task.source.text
            return Proposal(Variant(text, text, (), 0.0, 0.0, "vacuous"), NO_ACTION)
        drawn = self.sample[number]
        return Proposal(task.perturber.remake(task.source, drawn.edits), NO_ACTION, drawn.weight)


class Outcomes:
    """In which ways an utterance may be distorted, and how likely each is.

    Args:
        noisy: the utterance, given that no lock is touched.
        rate: slips per word.
    """

    def __init__(self, noisy: NoisyUtterance, rate: float) -> None:
        self._noisy = noisy
        self._rate = rate
        single = noisy.single(rate)
        self._slips = [slip for slip, _ in single]
        chances = [chance for _, chance in single]
        #: Of one slip and no other, in reading order, and of more slips than one.
        self.chances: Floats = np.array([*chances, noisy.probability_several(rate)])

    def size(self, most: int) -> int:
        """Return how many of at most so many variants the utterance is to get, at least 1."""
        often = 1.0 - (1.0 - self._rate) ** WORDS
        share = float(self.chances.sum()) / often if often else 0.0
        return max(1, math.ceil(most * min(share, 1.0)))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Drawn, ...]:
        """Draw a sample of ``size`` outcomes, at least 1; fewer where there are no more.

        In reading order, those with several slips last. The sum of their weights is, on average,
        the probability that the utterance is distorted.
        """
        found = []
        for place, weight in self.draw_places(size, rng):
            if place < len(self._slips):
                edits: tuple[Edit, ...] = (self._slips[place].edit,)
            else:
                edits = self._noisy.draw_several(rng, self._rate)
            found.append(Drawn(edits, weight))
        return tuple(found)

    def draw_places(self, size: int, rng: np.random.Generator) -> list[tuple[int, float]]:
        """Draw a sample as places in `chances`, each with its weight."""
        sizes = inclusion(self.chances, size)
        reach = np.cumsum(sizes)
        points = rng.random() + np.arange(size)
        hits = np.searchsorted(reach, points[points < reach[-1]], side="right").tolist()
        return [(hit, float(self.chances[hit] / sizes[hit])) for hit in hits]


def inclusion(chances: Floats, size: int) -> Floats:
    """Return how often each outcome is expected in a sample of a size.

    In proportion to their chances, but none more than once: what would be is in every sample, and
    the others share the rest. The last one stands for many outcomes, and may be hit more often.
    """
    sure = np.zeros(len(chances), dtype=bool)
    while True:
        left, rest = size - int(sure.sum()), float(chances[~sure].sum())
        if left <= 0 or rest <= 0.0:
            return sure.astype(np.float64)
        found = np.where(sure, 1.0, left * chances / rest)
        more = ~sure & (found >= 1.0)
        more[-1] = False
        if not more.any():
            return found
        sure |= more
