"""One utterance under a noise model: how likely each text is that people make of it, and draws."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from os.path import commonprefix
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.sites import Kept, Site, Slip
from pytest_dstfuzz.perturb.types import Edit

#: What was read at sites that is kept of an utterance.
_MOST_READINGS: Final = 1 << 9


class _Step(NamedTuple):
    """What is known of a text once some sites were read."""

    #: Where the next site may begin -> how likely the text is up to there, over `log_scale`.
    reached: Mapping[int, float]
    log_scale: float
    #: How many characters of the text were looked at.
    looked: int


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
        # Up to its first change it is read as the clean utterance is.
        steps = self._clean_steps(rate)
        same = len(commonprefix((text, self.text)))  # noqa: RUF071 - texts, no paths
        read = bisect_right(steps, same, key=operator.attrgetter("looked")) - 1
        step = steps[read]
        for number in range(read, len(self.sites)):
            further = self._further(step, number, text, rate)
            if further is None:
                return -math.inf
            step = further
        found = step.reached.get(len(text), 0.0)
        return math.log(found) + step.log_scale if found else -math.inf

    def _further(self, step: _Step, number: int, text: str, rate: float) -> _Step | None:
        """Read one more site of a text; ``None`` where it cannot be read on."""
        site, looked, known = self.sites[number], step.looked, self._readings
        if len(known) >= _MOST_READINGS:
            known.clear()
        further: dict[int, float] = {}
        for at, probability in step.reached.items():
            end = at + site.longest
            looked = max(looked, end)
            piece = number, text[at:end], rate
            if (read := known.get(piece)) is None:
                read = known[piece] = site.readings(*piece[1:])
            for length, chance in read.items():
                further[at + length] = further.get(at + length, 0.0) + probability * chance
        if not further:
            return None
        # Kept near 1: the product over a long utterance would be too small for a float.
        top = max(further.values())
        reached = {at: probability / top for at, probability in further.items()}
        return _Step(reached, step.log_scale + math.log(top), looked)

    def _clean_steps(self, rate: float) -> Sequence[_Step]:
        """Read the clean utterance, as far as that does not depend on where it ends."""
        if rate not in self._clean:
            self._clean[rate] = self._read_clean(rate)
        return self._clean[rate]

    def _read_clean(self, rate: float) -> Sequence[_Step]:
        steps = [_Step({0: 1.0}, 0.0, 0)]
        for number in range(len(self.sites)):
            step = self._further(steps[-1], number, self.text, rate)
            if step is None or step.looked > len(self.text):
                break
            steps.append(step)
        return steps

    # Not `lru_cache`: an object whose cache calls it back is only freed by Python's search for
    # what is unreachable, and utterances by the hundred would wait for that.

    @cached_property
    def _clean(self) -> dict[float, Sequence[_Step]]:
        """Slip rate -> the clean utterance as it is read."""
        return {}

    @cached_property
    def _readings(self) -> dict[tuple[int, str, float], Mapping[int, float]]:
        """Site, text from it on and slip rate -> what is read; of most it is so in all variants."""
        return {}

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
