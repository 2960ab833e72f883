"""How odd an attack may sound: its utterances under a language model of its side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dstfuzz.games.game import Goal, TalkLine
from pytest_dstfuzz.games.insight import FluencyModel, Said


def talk_of(said: Said) -> list[TalkLine]:
    """Return what was said as the adversary sees it."""
    return [TalkLine(not target, text) for target, text in said]


@dataclass(frozen=True)
class Fluency:
    """What a language model of the adversary's side finds of its utterances.

    Without a model nothing is measured; without a bound nothing is left out.
    """

    model: FluencyModel | None = None
    goal: Goal | None = None  #: The adversary's.
    most: float | None = None  #: Perplexity of an utterance, its end included.

    def of(self, said: Said, utterances: Sequence[str]) -> list[str]:
        """Return those of some utterances that may be said next, in their order."""
        if self.model is None or self.most is None or not utterances:
            return list(utterances)
        found = self.model.surprise(self.goal or {}, talk_of(said), utterances)
        return [
            text
            for text, (nats, words) in zip(utterances, found, strict=True)
            if math.exp(nats / words) <= self.most
        ]

    def surprise(self, said: Said) -> tuple[float, int]:
        """Return nats and words of all that the adversary said in a talk."""
        if self.model is None:
            return 0.0, 0
        nats, words = 0.0, 0
        for place, (target, text) in enumerate(said):
            if not target:
                ((more, count),) = self.model.surprise(
                    self.goal or {}, talk_of(said[:place]), [text]
                )
                nats, words = nats + more, words + count
        return nats, words


def perplexity(nats: float, words: int) -> float | None:
    """Return ``exp(nats / words)``; ``None`` where nothing was measured."""
    return math.exp(nats / words) if words else None
