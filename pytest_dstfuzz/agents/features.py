"""What the agent sees of a turn, and of its earlier attempts at it.

Everything here comes from the dialogue, from what the tracker predicted and from the
masks of the perturber; nothing from inside the tracker. Slots enter by a hash of their
names, so that the features know no domain and serve any tracker.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.perturb.draft import FREE, KEPT, TYPO, Source
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.operators import Candidates
from pytest_dstfuzz.perturb.types import Variant
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.transformations import TRANSFORMATIONS

Floats = npt.NDArray[np.float32]

#: Buckets of slot names.
SLOT_BUCKETS: Final = 16
#: Impurity differences are a thousandth or so of a mean over slots; this brings them near 1.
IMPURITY_SCALE: Final = 30.0

#: Features of a turn and of the attempts at it so far.
STATE_SIZE: Final = 16 + len(TRANSFORMATIONS) + SLOT_BUCKETS


class Trace:
    """What earlier attempts at a turn showed."""

    __slots__ = ("attempts", "changed", "impurities", "touched")

    def __init__(self, words: int) -> None:
        #: [words], whether an answered attempt edited the word.
        self.touched = np.zeros(words, bool)
        #: Of all answered attempts, in order, scaled.
        self.impurities: list[float] = []
        self.attempts = 0
        #: Attempts that changed a slot.
        self.changed = 0

    def add(
        self, source: Source, variant: Variant, impurity: float, *, answered: bool, changes: int
    ) -> None:
        """Take in one more attempt."""
        self.attempts += 1
        if not answered:
            return
        scaled = max(-1.0, min(impurity * IMPURITY_SCALE, 1.0))
        self.impurities.append(scaled)
        self.changed += changes > 0
        self.touched[list(touched_words(source, variant))] = True


def touched_words(source: Source, variant: Variant) -> tuple[int, ...]:
    """Return the words of the clean utterance that a variant edits, sorted."""
    starts = source.parts.starts
    found: set[int] = set()
    if not starts:
        return ()
    for start, end in source_spans(variant.edits):
        first = max(bisect_right(starts, start) - 1, 0)
        found.update(range(first, max(bisect_right(starts, max(end - 1, start)) - 1, first) + 1))
    return tuple(sorted(found))


class TurnView:
    """A turn, prepared for many attempts; for its menus see `Perturber.menus`."""

    def __init__(
        self,
        source: Source,
        menus: dict[str, Candidates],
        clean: Prediction | None,
        system: str,
        turn_index: int,
    ) -> None:
        self.source = source
        # A transformation that the run does not use has no menu.
        found = (menus.get(name, Candidates((), ())) for name in TRANSFORMATIONS)
        self._counts = [sum(len(words) for words in menu.words) for menu in found]
        #: [6]: transformations that have a place to go to.
        self.available = np.array([bool(count) for count in self._counts])
        self._static = self._turn_features(clean, system, turn_index)

    def _turn_features(self, clean: Prediction | None, system: str, turn_index: int) -> list[float]:
        tokens = self.source.draft.tokens
        count = max(len(tokens), 1)
        state = clean.state if clean else {}
        impurities = list((clean.impurities or {}).values()) if clean else []
        slots = Counter(bucket(slot, SLOT_BUCKETS) for slot in state)
        return [
            len(tokens) / 20,
            self.source.draft.quota / 5,
            sum(token.distance == 0 for token in tokens) / count,
            sum(token.role == TYPO for token in tokens) / count,
            sum(token.role in (FREE, KEPT) for token in tokens) / count,
            min(turn_index / 10, 1.0),
            float(not system),
            len(state) / 10,
            IMPURITY_SCALE * sum(impurities) / len(impurities) if impurities else 0.0,
            max(impurities, default=0.0),
            *(math.log1p(number) / 6 for number in self._counts),
            *(slots[number] for number in range(SLOT_BUCKETS)),
        ]

    def state(self, trace: Trace, k: int) -> Floats:
        """Return the features of the turn before its next attempt: [STATE_SIZE]."""
        known = trace.impurities
        moving = [
            k / len(TRANSFORMATIONS),
            math.log1p(trace.attempts) / math.log(33),
            min(trace.changed, 4) / 4,
            max(known, default=0.0),
            sum(known) / len(known) if known else 0.0,
            float(trace.touched.mean()) if len(trace.touched) else 0.0,
        ]
        return np.array([*moving, *self._static], np.float32)


@lru_cache(maxsize=1 << 15)
def bucket(name: str, buckets: int) -> int:
    """Return the bucket of a name, the same in every process."""
    return zlib.crc32(name.encode()) % buckets
