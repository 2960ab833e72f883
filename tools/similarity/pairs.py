"""Pairs of texts that say the same, or nearly the same, from which the embedding learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tools.similarity.sources import ActTurn, Gloss

#: Share of the words of a definition that is left out.
_DROPPED = 0.25
#: How often an utterance is held against another one of its service rather than other values.
_OTHER_ACTS = 0.5


class Triple(NamedTuple):
    """A text, a rewording of it, and a text that says something else."""

    text: str
    same: str
    other: str
    #: Texts of one group say nearly the same: they are never held against each other.
    group: str


@dataclass
class Utterances:
    """Utterances, grouped by the acts that they express."""

    turns: Sequence[ActTurn]
    groups: list[list[int]] = field(default_factory=list)
    services: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Group them."""
        grouped: dict[str, list[int]] = {}
        for place, turn in enumerate(self.turns):
            grouped.setdefault(turn.signature, []).append(place)
            self.services.setdefault(self.service(turn), []).append(place)
        worded = (
            places
            for places in grouped.values()
            if len({self.turns[place].pieces[::2] for place in places}) > 1
        )
        self.groups = list(worded)
        sizes = np.sqrt([len(places) for places in self.groups])
        self._chances = np.cumsum(sizes / sizes.sum())

    @staticmethod
    def service(turn: ActTurn) -> str:
        """Return the speaker and the service of an utterance."""
        return f"{turn.system} {turn.signature.partition(',')[0]}"

    def drawn(self, rng: np.random.Generator, *, acts: bool | None = None) -> Triple:
        """Return an utterance, a rewording with the same acts and values, and a near miss.

        If ``acts`` is true, the near miss has other acts. If it is false, it has the same acts with
        other values. ``None`` means either.
        """
        while True:
            drawn = int(np.searchsorted(self._chances, rng.random()))
            places = self.groups[min(drawn, len(self.groups) - 1)]
            one, two, three = (self.turns[place] for place in rng.choice(places, 3))
            if one.pieces[::2] == two.pieces[::2]:
                continue
            others = bool(rng.random() < _OTHER_ACTS) if acts is None else acts
            if others:
                near = self.services[self.service(one)]
                other = self.turns[near[rng.integers(len(near))]]
                if other.signature == one.signature:
                    continue
                return Triple(one.text, two.filled(one.values()), other.text, one.signature)
            if one.slots and one.values() != three.values():
                filled = two.filled(three.values())
                return Triple(one.text, two.filled(one.values()), filled, one.signature)
            if acts is None:
                return Triple(one.text, two.filled(one.values()), "", one.signature)


@dataclass
class Meanings:
    """The meanings of words in the dictionary."""

    glosses: Sequence[Gloss]

    def drawn(self, rng: np.random.Generator) -> Triple:
        """Return two wordings of a meaning: another word for it, and with some words left out."""
        gloss = self.glosses[int(rng.integers(len(self.glosses)))]
        first, second = (gloss.words[rng.integers(len(gloss.words))] for _ in range(2))
        usable = [example for example in gloss.examples if first in example]
        if usable and rng.random() < 0.5:
            example = usable[rng.integers(len(usable))]
            return Triple(example, example.replace(first, second), "", gloss.definition)
        told = [f"{word} {self._thinned(gloss.definition, rng)}" for word in (first, second)]
        return Triple(told[0], told[1], "", gloss.definition)

    @staticmethod
    def _thinned(text: str, rng: np.random.Generator) -> str:
        words = text.split()
        kept = [word for word in words if rng.random() >= _DROPPED]
        return " ".join(kept or words)
