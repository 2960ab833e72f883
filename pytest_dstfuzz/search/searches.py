"""The searches that need no training: random, near-value, greedy, dialtest and noise."""

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
    Lesson,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.transformations import of_word_level

#: Number of draws. The best one is chosen.
DRAWS: Final = 8
#: Percent of edits that flip the prediction, by distance to a value: next to it, two or three
#: words away, further.
_TYPO: Final = (6.0, 3.0, 1.5)
_WORD: Final = (5.4, 2.0, 0.5)
#: The same for edits within or at a cue word directly beside a value.
_CUE_TYPO: Final = 15.8
_CUE_PUNCTUATION: Final = 10.6
_FAR: Final = 4


class RandomSearch(Search):
    """Draws every action uniformly from the action space."""

    name = "random"

    def __init__(self, seed: int, k: int) -> None:
        self.seed = seed
        self.k = k

    def turn(self, task: SearchTask) -> TurnSearch:
        """Return an object that proposes random variants of one turn."""
        return RandomTurn(self, task)


@dataclass(frozen=True, slots=True)
class RandomTurn:
    """Proposes the variants of one turn for `RandomSearch`."""

    search: RandomSearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - not adaptive
        """Return the variant for a uniformly drawn action."""
        # The first draw uses the stream of the variant itself.
        redraw = (draw,) if draw else ()
        rng = self.task.stream(self.search.name, self.search.seed, number, *redraw)
        return self.task.proposal(self.task.perturber.space.sample(rng, self.search.k))


class NearValueSearch(RandomSearch):
    """Draws several variants and chooses the one with the edits nearest to slot values."""

    name = "near-value"
    #: This search scores the edits of its draws, so the order itself does not matter. But only
    #: this order provides the distances.
    order = "distance"

    def turn(self, task: SearchTask) -> TurnSearch:
        """Return an object that proposes variants of one turn with edits near slot values."""
        return NearValueTurn(self, task)


class NearValueTurn(RandomTurn):
    """Proposes the variants of one turn for `NearValueSearch`."""

    __slots__ = ()

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Draw several variants. Return the most promising new one."""
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
        # If several are equally promising, take the first.
        return max(drawn, key=lambda item: item[0])[1]


def heuristic_score(source: Source, variant: Variant) -> float:
    """Return how promising a variant is, as the sum of the flip rates of its edits.

    A flip rate is the percentage of answers that changed after an edit of this kind, at this
    distance from a value.
    """
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
    """The rules of a hill climb, which adds one edit at a time and keeps helpful edits."""

    name: str  #: The name of the search.
    #: The allowed edits of a step: transformation -> operators; ``None`` = all in use.
    moves: Mapping[str, tuple[str, ...]] | None
    steps: int  #: The number of attempts in one climb, before the next climb begins.
    kept: int  #: The maximum number of edits kept in one climb.
    threshold: float  #: An edit is kept if it raises the impurity by more than this.


_SYNONYMS_AND_WORDS: Final = {
    "word_replace": ("synonym",),
    "word_insert": ("filler", "mlm"),
}
GREEDY: Final = HillClimb("greedy", None, steps=8, kept=8, threshold=0.0)
DIALTEST: Final = HillClimb("dialtest", _SYNONYMS_AND_WORDS, steps=8, kept=5, threshold=0.001)


class HillClimbSearch(Search):
    """Adds one edit per step, and keeps each edit that makes the tracker less certain."""

    name = ""
    adaptive = True
    associates = False

    def __init__(self, rules: HillClimb, seed: int) -> None:
        self.name = rules.name
        self.rules = rules
        self.seed = seed

    def context_variant(self, number: int) -> int:
        """Return the number of the climb's first step, so that all its steps share a context."""
        return number - number % self.rules.steps

    def turn(self, task: SearchTask) -> HillClimbTurn:
        """Return an object that proposes the steps of climbs at one turn."""
        return HillClimbTurn(self, task)


@dataclass(frozen=True, slots=True)
class HillClimbTurn:
    """Proposes the variants of one turn for `HillClimbSearch`."""

    search: HillClimbSearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the best variant of this climb so far, with one more edit."""
        rules, task = self.search.rules, self.task
        start = self.search.context_variant(number)
        base = self._base(seen[start:number])
        rng = task.stream(rules.name, self.search.seed, number, draw)
        action = task.perturber.space.sample(rng, 1)
        step = self._step(action, rng, base)
        if step is None:
            # No edit is left. Repeat the variant; the duplicate is not run.
            text = task.source.text
            clean = Variant(text, text, (), 0.0, 0.0, "vacuous")
            return Proposal(base.variant if base else clean, action)
        return Proposal(task.perturber.grow(task.source, step, base).variant, step)

    def _base(self, steps: Sequence[Feedback]) -> PartialVariant | None:
        """Return the variant that consists of all kept steps, or ``None`` if no step was kept."""
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
        """Return an action with one edit that is still possible on ``base``, or ``None``."""
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
        # Use the middle of the operator's range, so that rounding to the grid does not matter.
        which = round((allowed[pick(which, len(allowed))] + 0.5) / count * GRID) / GRID
        return space.encode([step._replace(repetitions=((position, which, *choice),))])


Floats = npt.NDArray[np.float64]
#: A turn gets the full number of variants if it is distorted at least as often as this number of
#: words without locks.
WORDS: Final = 12


class NoiseSearch(Search):
    """Draws utterances with typing errors from the noise model of the profile ``natural``."""

    name = "noise"
    #: It waits once a turn has no further outcome to draw.
    by_density = waits = True
    associates = False

    def __init__(self, seed: int, k: int) -> None:  # noqa: ARG002 - the model decides on the number
        self.seed = seed

    def turn(self, task: SearchTask) -> NoiseTurn:
        """Return an object that proposes variants of one turn, drawn from the noise model."""
        return NoiseTurn(self, task)


class DrawnOutcome(NamedTuple):
    """A form of the utterance that was drawn into the sample."""

    edits: tuple[Edit, ...]
    weight: float


class NoiseTurn(TurnSearch):
    """Proposes the variants of one turn for `NoiseSearch`."""

    def __init__(self, search: NoiseSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task

    @cached_property
    def sample(self) -> tuple[DrawnOutcome, ...]:
        """The drawn forms of the utterance. There may be fewer than requested."""
        task, support = self.task, self.task.source.support
        if support is None:  # The utterance is too long to be edited.
            return ()
        rng = task.stream(self.search.name, self.search.seed)
        outcomes = Outcomes(support.noisy, task.perturber.noise.rate)
        return outcomes.draw(outcomes.size(task.variants), rng)

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - no redraws
        """Return variant ``number`` of the sample, or the clean utterance if there are fewer."""
        task = self.task
        if number >= len(self.sample):
            text = task.source.text
            return Proposal(Variant(text, text, (), 0.0, 0.0, "vacuous"), NO_ACTION)
        drawn = self.sample[number]
        return Proposal(task.perturber.remake(task.source, drawn.edits), NO_ACTION, drawn.weight)


class SampleAndSearch(Search):
    """Draws half of the variants from the noise model. A search chooses the other half.

    Only the sample from the noise model is used to estimate failure rates. The search adds
    findings. Variants with even numbers belong to the sample, all others to the search. If the
    utterance has fewer forms than this, the sample is smaller. Both parts grow together, so a
    budget that ends the run cuts both.
    """

    name = order = ""
    adaptive = associates = waits = False
    lessons = 0
    by_density = True

    def __init__(self, sample: NoiseSearch, search: Search) -> None:
        self.name = f"{sample.name}+{search.name}"
        self.parts = (sample, search)
        self.order = search.order
        self.adaptive = search.adaptive
        self.associates = search.associates
        self.waits = search.waits
        self.lessons = search.lessons

    @property
    def learned(self) -> str:
        """A text that identifies the knowledge of the search."""
        return self.parts[1].learned

    def learn(self, lessons: Sequence[Lesson]) -> SampleAndSearch:
        """Return a search that has also learned from these results, including the sample's."""
        sample, search = self.parts
        return SampleAndSearch(sample, search.learn(lessons))

    def samples(self, number: int) -> bool:
        """Return whether the noise model draws the earlier turns for the variant ``number``."""
        return number % 2 == 0

    def context_variant(self, number: int) -> int:
        """Return the lowest number of a context for variant ``number``.

        The turn itself chooses the context, because the number of a search's attempt depends on the
        size of the sample.
        """
        found = self.parts[1].context_variant
        return number if all(found(one) == one for one in range(number + 1)) else 0

    def turn(self, task: SearchTask) -> SampleAndSearchTurn:
        """Return an object that proposes variants of one turn from both parts."""
        sample, search = self.parts
        drawn = sample.turn(task._replace(variants=(task.variants + 1) // 2))
        left = max(task.variants - len(drawn.sample), 1)
        return SampleAndSearchTurn(drawn, search, search.turn(task._replace(variants=left)))


class SampleAndSearchTurn(TurnSearch):
    """Proposes the variants of one turn for `SampleAndSearch`."""

    def __init__(self, drawn: NoiseTurn, search: Search, found: TurnSearch) -> None:
        self._drawn = drawn
        self._search = search
        self._found = found

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return a variant of the sample or of the search, depending on ``number``."""
        if self._samples(number):
            return self._drawn.propose(number // 2, draw, ())
        own = [earlier for earlier in range(number + 1) if not self._samples(earlier)]
        attempt = len(own) - 1
        earlier = [seen[place] for place in own[:-1]]
        context = own[self._search.context_variant(attempt)]
        return self._found.propose(attempt, draw, earlier)._replace(context=context)

    def _samples(self, number: int) -> bool:
        return number % 2 == 0 and number // 2 < len(self._drawn.sample)


class Outcomes:
    """The possible forms of an utterance with typing errors, and their probabilities.

    Args:
        noisy: the utterance, with only those slips that touch no lock (protected text).
        rate: slips per word.
    """

    def __init__(self, noisy: NoisyUtterance, rate: float) -> None:
        self._noisy = noisy
        self._rate = rate
        chances = [*noisy.chances_of_one(rate), noisy.probability_several(rate)]
        #: Probabilities of exactly one slip, in reading order, then that of several slips.
        self.chances: Floats = np.array(chances)

    def size(self, most: int) -> int:
        """Return how many variants of the utterance to try, from 1 to ``most``.

        The number is lower if users rarely mistype the utterance.
        """
        often = 1.0 - (1.0 - self._rate) ** WORDS
        share = float(self.chances.sum()) / often if often else 0.0
        return max(1, math.ceil(most * min(share, 1.0)))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[DrawnOutcome, ...]:
        """Draw a sample of at least 1 and at most ``size`` outcomes.

        An outcome is a form of the utterance with one or more slips. Outcomes are in reading order,
        but those with several slips are last. The expected sum of the weights is the probability
        that the utterance has a slip.
        """
        found = []
        for place, weight in self.draw_places(size, rng):
            if place < len(self.chances) - 1:
                edits: tuple[Edit, ...] = (self._noisy.one(place).edit,)
            else:
                edits = self._noisy.draw_several(rng, self._rate)
            found.append(DrawnOutcome(edits, weight))
        return tuple(found)

    def draw_places(self, size: int, rng: np.random.Generator) -> list[tuple[int, float]]:
        """Draw a sample. Return indices into `chances`, each with its weight."""
        sizes = inclusion(self.chances, size)
        reach = np.cumsum(sizes)
        points = rng.random() + np.arange(size)
        hits = np.searchsorted(reach, points[points < reach[-1]], side="right").tolist()
        return [(hit, float(self.chances[hit] / sizes[hit])) for hit in hits]


def inclusion(chances: Floats, size: int) -> Floats:
    """Return the expected frequency of each outcome in a sample of a given size.

    The numbers are proportional to the probabilities, but at most 1. An outcome that would exceed 1
    is in every sample, and the other outcomes share the rest. The last number is for all outcomes
    with several slips, so only this number may exceed 1.
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
