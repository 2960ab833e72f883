"""One utterance under a noise model: how likely each text is that people make of it, and draws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.sites import Site, Slip
from pytest_dstfuzz.perturb.types import Edit


@dataclass(frozen=True)
class NoisyUtterance:
    """The sites of an utterance, which slip or do not slip whatever the others do."""

    text: str
    #: In reading order; together they are all of the text. None where it has no word.
    sites: tuple[Site, ...]

    def given(self, allowed: Callable[[Slip], bool]) -> NoisyUtterance:
        """Return the utterance given that no slip happens but those that are allowed.

        All probabilities of what is returned are on that condition; `probability_given` says
        how likely it is.

        Args:
            allowed: asked once of each slip.
        """
        return replace(self, sites=tuple(site.given(allowed) for site in self.sites))

    def probability_given(self, rate: float) -> float:
        """Return how likely the condition is that the utterance was put under; 1 without one."""
        _check_rate(rate)
        return math.prod(site.probability_given(rate) for site in self.sites)

    def probability_clean(self, rate: float) -> float:
        """Return how likely nothing slips, at a slip rate in [0, 1]."""
        _check_rate(rate)
        return math.prod(1.0 - site.probability(rate) for site in self.sites)

    def log_probability(self, text: str, rate: float) -> float:
        """Return how likely the utterance comes out as ``text``, as a natural logarithm.

        It is the sum over all ways in which slips can make that text: the order of edits, and
        which of them an operator made, do not matter.

        Args:
            text: the variant; the clean utterance is one.
            rate: expected slips per word, in [0, 1].

        Returns:
            ``-inf`` for what cannot come about.
        """
        _check_rate(rate)
        if not self.sites:
            return 0.0 if text == self.text else -math.inf
        reached = {0: 1.0}
        log_scale = 0.0
        for site in self.sites:
            further: defaultdict[int, float] = defaultdict(float)
            for at, probability in reached.items():
                for length in site.lengths:
                    if at + length > len(text):
                        break
                    chance = site.chance(text[at : at + length], rate)
                    if chance:
                        further[at + length] += probability * chance
            if not further:
                return -math.inf
            # Kept near 1: the product over a long utterance would be too small for a float.
            top = max(further.values())
            log_scale += math.log(top)
            reached = {at: probability / top for at, probability in further.items()}
        found = reached.get(len(text), 0.0)
        return math.log(found) + log_scale if found else -math.inf

    def draw(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw what a person makes of it at a slip rate; no edits where nothing slips.

        The edits are from the last to the first, so that each stands at its place of the clean
        utterance. One number of the generator is used for each site, whatever is drawn.
        """
        _check_rate(rate)
        numbers = generator.random(len(self.sites))
        slips = (
            site.pick(float(number), rate) for site, number in zip(self.sites, numbers, strict=True)
        )
        return tuple(reversed([slip.edit for slip in slips if slip is not None]))


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise UserError(f"the slip rate is {rate:g}: slips per word, a number from 0 to 1")
