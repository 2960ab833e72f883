"""What the agent sees of a turn, and of what its parameters would select.

Everything here comes from the dialogue, from what the tracker predicted and from the
masks of the perturber; nothing from inside the tracker. Slots and words enter by a hash
of their names, so that the features know no domain and serve any tracker.
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

from pytest_dstfuzz.perturb.draft import FREE, KEPT, LOCKED, TYPO, Source
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.operators import Candidates
from pytest_dstfuzz.perturb.types import Variant
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.transformations import SHIPPED, TRANSFORMATIONS

Floats = npt.NDArray[np.float32]

#: Buckets of slot names and of words.
SLOT_BUCKETS: Final = 16
WORD_BUCKETS: Final = 128
#: Distances to a slot value that are told apart: 0 to 3, further, and no value at all.
_RINGS: Final = 6
#: What may happen to a word, as the policies know it: what `scopes` keeps is free to them.
_ROLES: Final = ((FREE, KEPT), (TYPO,), (LOCKED,))
_OPERATORS: Final = max(len(item.operators) for item in SHIPPED)
#: Impurity differences are a thousandth or so of a mean over slots; this brings them near 1.
IMPURITY_SCALE: Final = 30.0

#: Features of a word: ring, role, sides of a value, letters, place, hash.
WORD_SIZE: Final = _RINGS + 3 + 2 + 3 + WORD_BUCKETS
#: Features of what earlier attempts showed about a word.
_TRACE_SIZE: Final = 4
#: Features of what a block of parameters selects: `WORD_SIZE`, the traces, the operator, and
#: how many candidates it has.
CHOICE_SIZE: Final = WORD_SIZE + _TRACE_SIZE + _OPERATORS + 1
#: Features of a turn and of the attempts at it so far.
STATE_SIZE: Final = 16 + len(TRANSFORMATIONS) + SLOT_BUCKETS


class Trace:
    """What earlier attempts at a turn showed about its words."""

    __slots__ = ("attempts", "changed", "impurities", "impurity_max", "impurity_sum", "touched")

    def __init__(self, words: int) -> None:
        #: [words]: attempts that edited the word; the highest impurity difference of those,
        #: scaled; and the sum of them.
        self.touched = np.zeros(words, np.float32)
        self.impurity_max = np.zeros(words, np.float32)
        self.impurity_sum = np.zeros(words, np.float32)
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
        for word in touched_words(source, variant):
            self.touched[word] += 1
            self.impurity_sum[word] += scaled
            self.impurity_max[word] = max(self.impurity_max[word], scaled)


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
        self.words = _word_features(source)
        #: [words + 1, WORD_SIZE]: the last row, zeros, is that of no word.
        self.padded = np.vstack([self.words, np.zeros((1, WORD_SIZE), np.float32)])
        self.menus = tuple(menus.get(name, Candidates((), ())) for name in TRANSFORMATIONS)
        #: Numbers of the operators of each menu in their transformation.
        self._operators = tuple(
            np.array([item.operators.index(name) for name in menu.operators], np.int64)
            for item, menu in zip(SHIPPED, self.menus, strict=True)
        )
        self.available = np.array([bool(menu.operators) for menu in self.menus])
        self._static = self._turn_features(clean, system, turn_index)

    def _turn_features(self, clean: Prediction | None, system: str, turn_index: int) -> list[float]:
        tokens = self.source.draft.tokens
        count = max(len(tokens), 1)
        state = clean.state if clean else {}
        impurities = list((clean.impurities or {}).values()) if clean else []
        counts = [sum(len(words) for words in menu.words) for menu in self.menus]
        slots = Counter(bucket(slot, SLOT_BUCKETS) for slot in state)
        return [
            len(tokens) / 20,
            self.source.draft.quota / 5,
            sum(token.distance == 0 for token in tokens) / count,
            sum(token.role == TYPO for token in tokens) / count,
            sum(token.role in _ROLES[0] for token in tokens) / count,
            min(turn_index / 10, 1.0),
            float(not system),
            len(state) / 10,
            IMPURITY_SCALE * sum(impurities) / len(impurities) if impurities else 0.0,
            max(impurities, default=0.0),
            *(math.log1p(number) / 6 for number in counts),
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
            float(trace.touched.astype(bool).mean()) if len(trace.touched) else 0.0,
        ]
        return np.array([*moving, *self._static], np.float32)

    def choices(self, number: int, blocks: Floats, trace: Trace) -> Floats:
        """Return features of what parameters of one transformation select.

        That is [candidates, CHOICE_SIZE], the mean over the active repetitions, of [candidates,
        parameters], triggers included, as in the action vector.
        """
        menu = self.menus[number]
        total = np.zeros((len(blocks), CHOICE_SIZE), np.float32)
        if not menu.operators:
            return total
        sizes = np.array([len(words) for words in menu.words])
        flat = np.concatenate([np.array(words, np.int64) for words in menu.words])
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        traces = self._traces(trace)
        width = blocks.shape[1] // 2
        used = np.zeros((len(blocks), 1), np.float32)
        for start in (0, width):
            active = np.ones(len(blocks), bool) if not start else blocks[:, start] >= 0.5
            which = np.minimum(blocks[:, start + 2] * len(sizes), len(sizes) - 1).astype(int)
            place = np.minimum(blocks[:, start + 1] * sizes[which], sizes[which] - 1).astype(int)
            word = flat[offsets[which] + place]
            operators = np.zeros((len(blocks), _OPERATORS), np.float32)
            operators[np.arange(len(blocks)), self._operators[number][which]] = 1.0
            size = (np.log1p(sizes[which]) / 6)[:, None]
            row = np.hstack([self.padded[word], traces[word], operators, size])
            total += row * active[:, None]
            used += active[:, None]
        return (total / used).astype(np.float32)

    def _traces(self, trace: Trace) -> Floats:
        """Return [words + 1, _TRACE_SIZE]."""
        often = np.maximum(trace.touched, 1.0)
        known = np.stack(
            [
                np.minimum(trace.touched, 4.0) / 4,
                (trace.touched > 0).astype(np.float32),
                trace.impurity_sum / often,
                trace.impurity_max,
            ],
            axis=1,
        )
        return np.vstack([known, np.zeros((1, _TRACE_SIZE))]).astype(np.float32)


def _word_features(source: Source) -> Floats:
    """Return [words, WORD_SIZE]."""
    tokens = source.draft.tokens
    found = np.zeros((len(tokens), WORD_SIZE), np.float32)
    for index, token in enumerate(tokens):
        row = found[index]
        row[_ring(token.distance)] = 1.0
        row[_RINGS : _RINGS + 3] = [token.role in roles for roles in _ROLES]
        sides = [index + step for step in (-1, 1)]
        row[_RINGS + 3 : _RINGS + 5] = [
            0 <= side < len(tokens) and tokens[side].distance == 0 for side in sides
        ]
        at = _RINGS + 5
        row[at : at + 3] = [len(token.text) / 10, index / len(tokens), token.distance / 10 % 9]
        row[at + 3 + bucket(token.lower, WORD_BUCKETS)] = 1.0
    return found


def _ring(distance: int) -> int:
    return distance if distance < 4 else 4 if distance < 90 else 5


@lru_cache(maxsize=1 << 15)
def bucket(name: str, buckets: int) -> int:
    """Return the bucket of a name, the same in every process."""
    return zlib.crc32(name.encode()) % buckets
