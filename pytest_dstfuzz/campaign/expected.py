"""How many of 1,000 user turns fail, of a search by density; of others, what they have found.

The figure is the mean over user turns of the probability that what people type is distorted, that
no lock is touched and that the relation breaks: each turn gives Horvitz and Thompson's estimate of
it, the sum of the weights of its variants that break the relation (see `search.noise`). It is not
self-normalised: the probability that a turn is distorted at all is known. Locks are a condition:
all probabilities are those of people who touch none. What is over the edit rates, and what the
tracker gives no answer to, counts as no failure; how much that is, is reported.

The interval is by dialogue, as that of a failure rate; the effective sample size is Kish's,
``(sum of weights)^2 / sum of their squares`` over the variants that were run (Survey Sampling,
1965). Below `FEWEST` there is no figure, but the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.campaign.intervals import mean_interval
from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult
from pytest_dstfuzz.campaign.sums import ExactSum

#: Smallest effective sample size that a figure is given for.
FEWEST: Final = 30
#: What figures are given for: so many user turns.
TURNS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """How many of 1,000 user turns fail under a noise model."""

    #: ``None`` where too little was tested for a figure.
    per_1000: float | None
    #: 95 % interval over dialogues, of 1,000 turns; ``None`` with too few dialogues.
    interval: tuple[float, float] | None
    #: Of the variants that were run.
    effective_sample_size: float
    #: Slips per word.
    slip_rate: float | None
    #: The noise models, by name.
    noise: str
    #: User turns that the figure is of.
    turns: int
    #: Of 1,000: how many have a slip that touches no lock, and how many one that touches a lock.
    distorted_per_1000: float
    locked_per_1000: float
    #: Of 1,000: how many are distorted in a way that was not judged: over the edit rates, or
    #: without an answer of the tracker.
    unjudged_per_1000: float
    #: Why there is no figure; ``""`` where there is one.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FailingMass:
    """What a search without a density has found: at least so many turns fail."""

    #: Of 1,000 user turns, those that are typed as one of the violations found.
    per_1000_at_least: float
    #: Different violations of a turn in its clean context, or that its own edits cause.
    variants: int
    slip_rate: float
    noise: str
    turns: int


def turn_failures(turn: TurnResult) -> float:
    """Return the estimated probability that a turn fails; see `counted`."""
    return _weighed(turn, turn.variants, "failure")


def weight_of(turn: TurnResult, violation: VariantResult) -> float:
    """Return what of `turn_failures` a violation accounts for, with the duplicates of it."""
    same = [variant for variant in turn.variants if _text(variant) == _text(violation)]
    return _weighed(turn, same, "failure")


def counted(turn: TurnResult) -> bool:
    """Say whether a turn is one that failures are expected of.

    The tracker answered the clean turn, and the relation says something about it.
    """
    return (
        turn.noise is not None
        and turn.clean_state is not None
        and turn.outcome not in ("skipped", "inapplicable")
    )


class ExpectedTally:
    """Estimates the failures of 1,000 user turns, one turn after the other."""

    def __init__(self) -> None:
        #: (noise models, slip rate) of the turns.
        self._models: set[tuple[str, float]] = set()
        self._weights, self._squares = ExactSum(), ExactSum()
        self._failing, self._unjudged = ExactSum(), ExactSum()
        self._distorted, self._locked = ExactSum(), ExactSum()
        self._dialogues: dict[str, ExactSum] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in a turn, where it is one of a search by density that failures are expected of."""
        noise = turn.noise
        if noise is None or not noise.sampled or not counted(turn):
            return
        self._models.add((noise.models, noise.slip_rate))
        for variant in turn.variants:
            if variant.valid:
                weight = variant.weight or 0.0
                self._weights.add(weight)
                self._squares.add(weight * weight)
        failing = turn_failures(turn)
        self._failing.add(failing)
        self._dialogues.setdefault(turn.dialogue_id, ExactSum()).add(failing)
        self._distorted.add(noise.distorted)
        self._locked.add(noise.locked)
        self._unjudged.add(_weighed(turn, turn.variants, "unjudged"))

    @property
    def expected(self) -> ExpectedFailures | None:
        """The estimate; ``None`` without a turn of a search by density."""
        if not self._models:
            return None
        squares, models = self._squares.value, self._models
        size = self._weights.value**2 / squares if squares else 0.0
        distorted = self._distorted.mean
        reason = ""
        if len(models) > 1:
            reason = "tests have different noise models or slip rates"
        elif size < FEWEST:
            reason = (
                f"the effective sample size is {size:.1f}, and below {FEWEST} a figure says too "
                "little: it takes more turns, or more variants of each"
            )
        interval = None
        if not reason and distorted:
            found = [(parts.value, float(parts.count)) for parts in self._dialogues.values()]
            interval = mean_interval(found, distorted)
        name, rate = min(models)
        return ExpectedFailures(
            per_1000=None if reason else TURNS * self._failing.mean,
            interval=None if interval is None else (TURNS * interval[0], TURNS * interval[1]),
            effective_sample_size=size,
            slip_rate=rate if len(models) == 1 else None,
            noise=name if len(models) == 1 else "",
            turns=self._failing.count,
            distorted_per_1000=TURNS * distorted,
            locked_per_1000=TURNS * self._locked.mean,
            unjudged_per_1000=TURNS * self._unjudged.mean,
            reason=reason,
        )


class MassTally:
    """Adds up how likely the violations found are, one turn after the other."""

    def __init__(self) -> None:
        self._models: set[tuple[str, float]] = set()
        self._chances = ExactSum()
        self._variants = 0

    def add(self, turn: TurnResult) -> None:
        """Take in a turn of a search without a density that failures are expected of."""
        noise = turn.noise
        if noise is None or noise.sampled or not counted(turn):
            return
        self._models.add((noise.models, noise.slip_rate))
        found = distinct_chances(turn.violations)
        self._chances.add(math.fsum(found))
        self._variants += len(found)

    @property
    def mass(self) -> FailingMass | None:
        """What was found; ``None`` without a noise model.

        Nor is there any where tests have different models, or slip rates.
        """
        if len(self._models) != 1:
            return None
        (name, rate) = min(self._models)
        return FailingMass(
            per_1000_at_least=TURNS * self._chances.mean,
            variants=self._variants,
            slip_rate=rate,
            noise=name,
            turns=self._chances.count,
        )


def distinct_chances(violations: Iterable[VariantResult]) -> list[float]:
    """Return how likely each text is that breaks a turn in its clean context.

    No text of a turn is run twice.
    """
    return sorted(
        math.exp(variant.log_probability)
        for variant in violations
        if variant.log_probability is not None
        and (not variant.context_edits or variant.cause == "turn")
    )


def _text(variant: VariantResult) -> tuple[str, float | None]:
    """Return what tells texts apart, even those that are not to be shown and look the same."""
    return variant.text, variant.log_probability


def _weighed(turn: TurnResult, variants: Iterable[VariantResult], outcome: str) -> float:
    """Return the weights of variants with an outcome, see `_outcome`, added up."""
    return math.fsum(one.weight or 0.0 for one in variants if _outcome(turn, one) == outcome)


def _outcome(turn: TurnResult, variant: VariantResult) -> str:
    """Say what a variant of a sample counts as: ``failure``, ``kept`` or ``unjudged``."""
    if variant.outcome == "duplicate":
        # It was not run, as another one has its text: what holds for that one holds for it.
        same = _text(variant)
        variant = next(one for one in turn.variants if one.valid and _text(one) == same)
    if variant.outcome == "vacuous":
        return "kept"
    if variant.outcome not in RUN_OUTCOMES or variant.outcome == "error":
        return "unjudged"
    broken = variant.outcome == "violation" and variant.cause != "context"
    return "failure" if broken else "kept"
