"""One utterance under a noise model: how likely each text is that people make of it, and draws."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.sites import Kept, Site, Slip
from pytest_dstfuzz.perturb.types import Edit


@dataclass(frozen=True)
class NoisyUtterance:
    """The sites of an utterance, which slip or do not slip whatever the others do."""

    text: str
    #: In reading order; together they are all of the text. None where it has no word.
    sites: tuple[Site, ...]

    def given(self, kept: Callable[[Site], Sequence[Kept]]) -> NoisyUtterance:
        """Return the utterance given that no slip happens but those that are allowed.

        All probabilities of what is returned are on that condition; `probability_given` says
        how likely it is.

        Args:
            kept: returns what is allowed of each part of a site.
        """
        return NoisyUtterance(self.text, tuple([site.given(kept(site)) for site in self.sites]))

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
        for number, site in enumerate(self.sites):
            further: dict[int, float] = {}
            for at, probability in reached.items():
                readings = self._readings(number, text[at : at + site.longest], rate)
                for length, chance in readings.items():
                    further[at + length] = further.get(at + length, 0.0) + probability * chance
            if not further:
                return -math.inf
            # Kept near 1: the product over a long utterance would be too small for a float.
            top = max(further.values())
            log_scale += math.log(top)
            reached = {at: probability / top for at, probability in further.items()}
        found = reached.get(len(text), 0.0)
        return math.log(found) + log_scale if found else -math.inf

    @cached_property
    def _readings(self) -> Callable[[int, str, float], Mapping[int, float]]:
        """Read the text from a site on; of most sites it is the same in all variants."""
        return lru_cache(maxsize=1 << 9)(lambda number, *ahead: self.sites[number].readings(*ahead))

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

    def single(self, rate: float) -> tuple[tuple[Slip, float], ...]:
        """Return the outcomes in which one slip happens and no other, with their probabilities."""
        _check_rate(rate)
        clean = [1.0 - site.probability(rate) for site in self.sites]
        before = [1.0, *accumulate(clean, operator.mul)]
        after = [1.0, *accumulate(reversed(clean), operator.mul)][::-1]
        return tuple(
            (slip, before[index] * after[index + 1] * site.share(rate) * slip.weight)
            for index, site in enumerate(self.sites)
            for slip in site.slips
        )

    def probability_several(self, rate: float) -> float:
        """Return how likely two sites or more slip."""
        _check_rate(rate)
        return self._several(rate)[0][0]

    def draw_several(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw what a person makes of it who slips twice or more; see `draw`.

        Raises:
            ValueError: that cannot be: less than two sites can slip.
        """
        needed, odds = 2, self._several(rate)
        if not odds[0][0]:
            raise ValueError(f"{self.text!r} cannot have two slips")
        slips = []
        for index, (site, number) in enumerate(
            zip(self.sites, generator.random(len(self.sites)), strict=True)
        ):
            # Given what is still needed: the chance that this site slips is another one.
            chance = site.probability(rate)
            rest = odds[index + 1][2 - max(needed - 1, 0)] * chance
            given = rest / odds[index][2 - needed]
            if number < given:
                # What is left of the number is uniform again, and chooses the slip.
                place = min(float(number / given) * chance, math.nextafter(chance, 0.0))
                if (slip := site.pick(place, rate)) is not None:
                    slips.append(slip.edit)
                needed = max(needed - 1, 0)
        return tuple(reversed(slips))

    def _several(self, rate: float) -> list[tuple[float, float, float]]:
        """Return how likely the sites from each on have two slips, one, and any number, or more."""
        found = [(0.0, 0.0, 1.0)]
        for site in reversed(self.sites):
            chance, (two, one, any_) = site.probability(rate), found[-1]
            found.append(
                (chance * one + (1.0 - chance) * two, chance * any_ + (1.0 - chance) * one, 1.0)
            )
        return found[::-1]


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise UserError(f"the slip rate is {rate:g}: slips per word, a number from 0 to 1")
