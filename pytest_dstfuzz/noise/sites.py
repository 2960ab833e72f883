"""Sites and slips: where something can go wrong in an utterance, and what."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.tables import KINDS
from pytest_dstfuzz.perturb.types import Edit

#: Largest probability that a site has a slip.
MOST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Slip(Edit):
    """What a person may do to a word, as an edit of the clean utterance."""

    #: As models have it: `keyboard`, `missing`, `blank`, `texting` ...
    kind: str
    #: How often it is expected at slip rate 1; its probability at the rate ``r`` is ``r * weight``,
    #: but where the weights of its site are very large together: see `Site.share`.
    weight: float

    @property
    def edit(self) -> Edit:
        """The edit alone."""
        return Edit(
            self.transformation, self.operator, self.start, self.end, self.before, self.after
        )


class Change(NamedTuple):
    """What a kind does to a text: ``text[start:end]`` becomes ``after``."""

    kind: str
    start: int
    end: int
    after: str
    weight: float

    def put_into(self, text: str) -> str:
        """Return the text with the change."""
        return text[: self.start] + self.after + text[self.end :]


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of one text that all give different texts; equal to themselves alone."""

    #: What is changed.
    text: str
    changes: tuple[Change, ...]
    #: Whether they are all that happens to one word, wherever it stands.
    of_word: bool = False

    @cached_property
    def sums(self) -> tuple[float, ...]:
        """Sums of their weights, up to each."""
        return tuple(accumulate(change.weight for change in self.changes))

    @cached_property
    def texts(self) -> Mapping[str, float]:
        """What they give -> weight."""
        return {change.put_into(self.text): change.weight for change in self.changes}

    @cached_property
    def longer(self) -> tuple[int, ...]:
        """By how many characters they make the text longer, sorted."""
        return tuple(sorted({len(text) - len(self.text) for text in self.texts}))

    @property
    def weight(self) -> float:
        """All their weights together."""
        return self.sums[-1] if self.sums else 0.0


class Kept(NamedTuple):
    """Changes given that some others do not happen."""

    changes: Changes
    #: The weights of those others.
    lost: tuple[float, ...]


def distinct(text: str, changes: Iterable[Change], *, of_word: bool = False) -> Changes:
    """Make those of one that give the same text: their weights are added.

    The likeliest of them says kind and place. What gives the text itself, or has no weight, is
    left out.
    """
    best: dict[str, Change] = {}
    sums: dict[str, float] = {}
    for change in changes:
        made = change.put_into(text)
        if change.weight <= 0.0 or made == text:
            continue
        known = best.setdefault(made, change)
        if known is not change:  # Few texts come about in two ways.
            sums[made] = sums.get(made, known.weight) + change.weight
            if known.weight < change.weight:
                best[made] = change
    for made, weight in sums.items():
        best[made] = best[made]._replace(weight=weight)
    return Changes(text, tuple(best.values()), of_word)


@dataclass(frozen=True)
class Site:
    """A part of an utterance that takes at most one slip."""

    utterance: str
    #: Its part of the clean utterance, in code points.
    start: int
    end: int
    #: Where in the utterance a text begins -> changes of it, at least one; of all no two give the
    #: same.
    parts: tuple[tuple[int, Changes], ...]

    #: Weight of what is not allowed, where probabilities are on that condition.
    _lost: float = 0.0

    @cached_property
    def weight(self) -> float:
        """Expected slips at slip rate 1; without those that are not allowed."""
        total = 0.0
        for _, part in self.parts:
            total += part.weight
        return total

    def given(self, found: Sequence[Kept]) -> Site:
        """Return the site given that of each of its parts no changes happen but those kept."""
        pairs = zip(self.parts, found, strict=True)
        parts = tuple((at, kept.changes) for (at, _), kept in pairs if kept.changes.changes)
        lost = math.fsum(chain.from_iterable([kept.lost for kept in found]))
        return Site(self.utterance, self.start, self.end, parts, self._lost + lost)

    def probability_given(self, rate: float) -> float:
        """Return how likely the condition is that the site was put under; 1 without one."""
        return 1.0 - self._factor(rate) * self._lost

    @property
    def clean(self) -> str:
        """What it is in the clean utterance."""
        return self.utterance[self.start : self.end]

    @cached_property
    def slips(self) -> tuple[Slip, ...]:
        """What can happen here, in a fixed order."""
        return tuple(
            self._slip(offset, change) for offset, part in self.parts for change in part.changes
        )

    @property
    def texts(self) -> Mapping[str, float]:
        """What the site can come out as, but for clean -> weight."""
        return {
            made.join(self._around(at, part)): weight
            for at, part in self.parts
            for made, weight in part.texts.items()
        }

    def _factor(self, rate: float) -> float:
        both = self.weight + self._lost
        return min(rate, MOST / both) if both else 0.0

    def share(self, rate: float) -> float:
        """Return what weights are multiplied by to be probabilities, at a slip rate."""
        return self._factor(rate) / self.probability_given(rate)

    def probability(self, rate: float) -> float:
        """Return how likely any slip is here, at a slip rate."""
        return self.share(rate) * self.weight

    def weight_of(self, text: str) -> float:
        """Return the weight of what makes the site a text, 0 where nothing does."""
        for at, part in self.parts:
            head, tail = self._around(at, part)
            inside = len(text) - len(tail)
            if inside >= len(head) and text.startswith(head) and text.endswith(tail):
                weight = part.texts.get(text[len(head) : inside])
                if weight is not None:
                    return weight
        return 0.0

    def _around(self, at: int, part: Changes) -> tuple[str, str]:
        """Return what of the site is before a part, and what is after it."""
        return self.utterance[self.start : at], self.utterance[at + len(part.text) : self.end]

    def chance(self, text: str, rate: float) -> float:
        """Return how likely the site comes out as a text."""
        if text == self.clean:
            return 1.0 - self.probability(rate)
        return self.share(rate) * self.weight_of(text)

    @cached_property
    def longest(self) -> int:
        """How long it can come out."""
        longer = [part.longer[-1] for _, part in self.parts]
        return self.end - self.start + max([0, *longer])

    def readings(self, text: str, rate: float) -> Mapping[int, float]:
        """Return with how many characters a text may begin with the site -> how likely."""
        share, size = self.share(rate), self.end - self.start
        found = {size: 1.0 - share * self.weight} if text.startswith(self.clean) else {}
        for at, part in self.parts:
            head, tail = self._around(at, part)
            if not text.startswith(head):
                continue
            for more in part.longer:
                inside = size + more - len(tail)
                if text.startswith(tail, inside):
                    weight = part.texts.get(text[len(head) : inside])
                    if weight is not None:
                        found[size + more] = share * weight
        return {length: found[length] for length in sorted(found) if found[length]}

    def pick(self, number: float, rate: float) -> Slip | None:
        """Return the slip that a number from 0 to 1 draws; ``None`` where the site stays clean."""
        share = self.share(rate)
        if number >= share * self.weight:
            return None
        place = number / share
        # The last one where rounding says that none is left.
        reach = tuple(accumulate([part.weight for _, part in self.parts]))
        index = min(bisect_right(reach, place), len(reach) - 1)
        offset, part = self.parts[index]
        place -= reach[index - 1] if index else 0.0
        inside = min(bisect_right(part.sums, place), len(part.sums) - 1)
        return self._slip(offset, part.changes[inside])

    def _slip(self, offset: int, change: Change) -> Slip:
        start, end = offset + change.start, offset + change.end
        before = self.utterance[start:end]
        return Slip(
            *KINDS[change.kind], start, end, before, change.after, change.kind, change.weight
        )
