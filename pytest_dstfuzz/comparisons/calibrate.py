"""Which distance parts replies that say the same from replies that do not, for given replies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Final

import numpy as np

from pytest_dstfuzz.comparisons.comparison import Comparison, TextPair
from pytest_dstfuzz.comparisons.fallbacks import is_fallback
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange, answer_of
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import stream

#: Pairs of replies to different questions that are compared at most.
MOST: Final = 4000
#: Recorded replies that it takes.
LEAST: Final = 50
#: Share of replies to different questions that may be taken for the same, where nothing is known
#: of how a system words one reply.
TAKEN: Final = 0.05
#: Percentiles that are shown.
SHOWN: Final = (1, 5, 25, 50, 75, 95)
_NOWHERE: Final = Context((Exchange("", "?"),))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distances of replies, and the threshold between them."""

    #: Of recorded replies to different questions, in ascending order.
    different: tuple[float, ...]
    #: Of a system's own replies to one question; empty where none was asked.
    own: tuple[float, ...] = ()

    @property
    def threshold(self) -> float:
        """The distance up to which replies say the same, to two digits.

        With own replies, where as many of them are farther apart as others are nearer; without,
        what 95 % of the replies to different questions are farther apart than.
        """
        if not self.own:
            return math.floor(100 * self.different[int(TAKEN * len(self.different))]) / 100
        points = np.arange(201) / 100
        apart = 1 - np.searchsorted(self.own, points, side="right") / len(self.own)
        near = np.searchsorted(self.different, points, side="right") / len(self.different)
        # Of several that are as good, the one in the middle.
        errors = np.maximum(apart, near)
        best = points[errors == errors.min()]
        return round(float(best[(len(best) - 1) // 2]), 2)

    def lines(self) -> Iterator[str]:
        """Yield the percentiles, the threshold and how often it errs, as lines of text."""
        heads = "".join(f"{f'{share} %':>7}" for share in SHOWN)
        yield f"{'distance below which lie':<46}{heads}"
        rows = [
            (f"recorded replies to different questions ({len(self.different):,})", self.different)
        ]
        rows += [(f"own replies to one question ({len(self.own):,})", self.own)] if self.own else []
        for told, distances in rows:
            cells = "".join(f"{np.percentile(distances, share):7.2f}" for share in SHOWN)
            yield f"{told:<46}{cells}"
        eps = self.threshold
        taken = np.mean(np.array(self.different) <= eps)
        yield f"--dst-compare=embedding:threshold={eps:g}"
        yield f"  different questions: {taken:.1%} of the pairs are taken for the same"
        if self.own:
            apart = np.mean(np.array(self.own) > eps)
            yield f"  one question: {apart:.1%} of the pairs are told apart"


def different_replies(data: DialogueSet, seed: int) -> list[tuple[str, str]]:
    """Return pairs of recorded replies to different questions, those of one dialogue first.

    Replies that are no answer are left out, and so are two with the same text.

    Raises:
        UserError: there are too few recorded replies.
    """
    by_dialogue = [
        [
            answer
            for turn in dialogue.turns
            if (answer := answer_of(dialogue, turn.index) or "").strip() and not is_fallback(answer)
        ]
        for dialogue in data.dialogues
    ]
    replies = [*chain.from_iterable(by_dialogue)]
    if len(replies) < LEAST:
        raise UserError(
            f"the data {data.name!r} (split {data.split}) have {len(replies)} recorded replies, "
            f"and it takes {LEAST} to find a threshold: give one as "
            "--dst-compare=embedding:threshold=DISTANCE"
        )
    rng = stream(seed, "calibrate")
    near = [
        (one, other) for said in by_dialogue for one, other in combinations(said, 2) if one != other
    ]
    chosen = [near[place] for place in sorted(rng.permutation(len(near))[:MOST])]
    several = len(set(replies)) > 1
    while several and len(chosen) < MOST:
        one, other = (replies[int(place)] for place in rng.integers(len(replies), size=2))
        if one != other:
            chosen.append((one, other))
    return chosen


def distances(comparison: Comparison, pairs: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """Return how far the texts of some pairs are apart, in ascending order."""
    asked = [TextPair(REPLY, *pair, _NOWHERE) for pair in pairs]
    comparison.prepare(asked)
    found = (comparison.compare(*pair).distance for pair in asked)
    return tuple(sorted(distance for distance in found if distance is not None))
