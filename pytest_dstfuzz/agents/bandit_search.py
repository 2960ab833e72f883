"""The search ``bandit``: a learned scorer of candidate edits.

It is a contextual bandit: what it sees of a turn is the context, a set of edits the arm, and a slot
that changes the reward; what an attempt does to later ones is not planned. At every turn it scores
each single edit that may be made, by how likely that changes each slot (`Scorer`), and puts as many
of the best together as a variant may have. Three ideas make the calls go further:

- a slot that changed at this turn already earns nothing more: what is looked for is *new*;
- calls go where they promise most: an attempt whose chance is below a threshold waits. The
  threshold falls from pass to pass, so that over all turns the promising attempts come first, and a
  turn at which nothing is left to find gets no more;
- features know no tracker and no domain, so that a scorer works on others than it learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.candidates import candidates_of, together
from pytest_dstfuzz.agents.features import Floats
from pytest_dstfuzz.agents.scorer import Scorer, chance_of_any, chance_of_variant
from pytest_dstfuzz.agents.scorer_file import SavedScorer, load_scorer
from pytest_dstfuzz.agents.slot_view import SlotView, Tried
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.types import Variant
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.trackers.tracker import Prediction

_NAME: Final = "bandit"
_PREFIX: Final = f"{_NAME}:"
#: What may be written for a scorer, as messages list it.
BANDITS: Final[tuple[str, ...]] = (_NAME, f"{_PREFIX}PATH")
#: The scorer that ships.
SHIPPED: Final = Path(__file__).parent / "resources" / "scorers" / "trade.safetensors"
#: Chance of a violation that an attempt of the first pass must have; in the last pass none.
_FIRST: Final = 0.1
#: How fast that falls from pass to pass: its power.
_FALL: Final = 3
#: Spread of the noise on scores from the second attempt at a turn on, so that attempts differ, and
#: by what share it grows with each attempt.
_NOISE, _GROWTH = 0.15, 0.1
#: What is known where the tracker failed on the clean turn.
_NOTHING: Final = Prediction(BeliefState())
#: Candidates that are looked at for one variant, best first.
_TRIED: Final = 60


class BanditSearch(Search):
    """Puts those edits together that a scorer thinks most likely to change a slot."""

    name = _NAME
    adaptive = waits = True
    associates = False
    order = "distance"

    def __init__(self, scorer: Scorer, seed: int) -> None:
        self.scorer = scorer
        self.seed = seed

    def turn(self, task: SearchTask) -> BanditTurn:
        """Begin a turn."""
        return BanditTurn(self, task)


class BanditTurn(TurnSearch):
    """The attempts of a `BanditSearch` at one turn."""

    def __init__(self, search: BanditSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task
        #: The attempts that were last asked for, and the chances after them: [candidates].
        self._known: tuple[Sequence[Tried], Floats] | None = None

    @cached_property
    def view(self) -> SlotView:
        """What the scorer sees of the turn."""
        return view_of(self.task, self.search.seed)

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the variant that promises most, or the clean utterance to wait."""
        task, view = self.task, self.view
        attempts = attempts_of(seen)
        floor = threshold(number, task.variants)
        single = self._chances(attempts)
        quota = task.source.draft.quota
        if not view.candidates or most_likely(single, quota) < floor:
            return waiting(task)
        scores = single
        if number or draw:
            rng = task.stream(_NAME, self.search.seed, number, draw)
            spread = _NOISE * (1.0 + _GROWTH * len(attempts))
            scores = noisy(single, spread, rng)
        chosen, variant = compose(task, view, scores)
        if variant is None or chance_of_variant(single, chosen) < floor:
            return waiting(task)
        return Proposal(variant, NO_ACTION)

    def _chances(self, attempts: Sequence[Tried]) -> Floats:
        """Return how likely each candidate changes a slot that has not broken: [candidates]."""
        # Redraws ask for the same again.
        if self._known is None or self._known[0] != attempts:
            self._known = attempts, chances_of_new(self.search.scorer, self.view, attempts)
        return self._known[1]


def chances_of_new(scorer: Scorer, view: SlotView, attempts: Sequence[Tried]) -> Floats:
    """Return how likely each candidate changes a slot that has not broken: [candidates]."""
    chances = scorer.chances(view, attempts)
    chances[broken_slots(view, attempts)] = 0.0
    return chance_of_any(chances)


def noisy(scores: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Return scores times noise, so that attempts differ: [candidates]."""
    return scores * np.exp(spread * rng.gumbel(size=len(scores)))


def threshold(number: int, variants: int) -> float:
    """Return the chance, 0 to 1, that an attempt of a pass must have; in the last one 0.

    Args:
        number: of the pass, 0 to ``variants - 1``.
        variants: passes in all.
    """
    left = 1.0 - number / (variants - 1) if variants > 1 else 0.0
    return float(_FIRST * left**_FALL)


def most_likely(single: Floats, quota: int) -> float:
    """Return a bound of the chance of a variant of so many candidates, of [candidates]."""
    return chance_of_variant(single, np.argsort(-single, kind="stable")[:quota].tolist())


def compose(task: SearchTask, view: SlotView, scores: Floats) -> tuple[list[int], Variant | None]:
    """Put candidates of high scores together: which they are, and the variant; ``None`` = none.

    As many as the quota of words allows, no two of which meet, each so that the variant is valid.
    ``scores`` is [candidates]; only their order counts.
    """
    quota, chosen, words = task.source.draft.quota, list[int](), 0
    made: Variant | None = None
    for place in np.argsort(-scores, kind="stable")[:_TRIED].tolist():
        one = view.candidates[place]
        if words + len(one.words) > quota:
            continue
        if any(one.meets(view.candidates[other]) for other in chosen):
            continue
        some = [view.candidates[other] for other in (*chosen, place)]
        variant = together(task.perturber, task.source, some)
        if variant.valid:
            chosen.append(place)
            words += len(one.words)
            made = variant
        if words >= quota:
            break
    return chosen, made


def view_of(task: SearchTask, seed: int) -> SlotView:
    """Return what a scorer sees of a turn."""
    rng = task.stream(_NAME, seed, "candidates")
    found = candidates_of(task.perturber, task.source, rng)
    system = task.dialogue.turns[task.turn_index].system
    return SlotView(task.source, found, task.clean or _NOTHING, system, task.turn_index)


def waiting(task: SearchTask) -> Proposal:
    """Return the clean utterance, for which the tracker is not asked."""
    text = task.source.text
    return Proposal(Variant(text, text, (), 0.0, 0.0, "vacuous"), NO_ACTION)


def attempts_of(seen: Sequence[Feedback]) -> list[Tried]:
    """Return the attempts that were made, in order."""
    return [
        Tried(one.proposal.variant, one.answer, one.broken)
        for one in seen
        if one.proposal.variant.valid
    ]


def broken_slots(view: SlotView, attempts: Sequence[Tried]) -> npt.NDArray[np.bool_]:
    """Return which slots changed in an attempt that broke the relation: [slots]."""
    found = np.zeros(len(view.slots), bool)
    for one in attempts:
        if one.broken and one.answer is not None:
            found |= np.array(view.changed(one.answer))
    return found


def named_scorer(name: str) -> SavedScorer:
    """Return the scorer of the search called ``bandit`` or ``bandit:PATH``."""
    if name == _NAME:
        return load_scorer(SHIPPED)
    if not (path := name.removeprefix(_PREFIX)):
        raise UserError("the search 'bandit:' names no file: write bandit:PATH, or bandit")
    return load_scorer(path)
