"""Searches that draw and do not learn: ``random``, and ``near-value``.

``random`` draws uniform points of the action space. ``near-value`` knows where trackers tend to
break: each variant is the most promising of a few uniform draws. A draw is worth the sum over
its edits of how often such an edit changed the prediction of an early TRADE (percent of
9,959 variants): most for typing errors in the words that say what a value is for, right
beside the value, and least far from any value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.perturb.draft import TYPO, Source
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.types import Edit, Variant
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask, TurnSearch
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
