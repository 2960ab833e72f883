"""What the values of an axis differ by, on the same dialogues, all else being alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.scale.results.sweeping import SweptCell
from pytest_dstfuzz.seeding import stream

_DRAWS: Final = 5_000
#: Of them in memory at once.
_SLICE: Final = 100
#: Fewer dialogues give no interval worth showing.
_FEWEST: Final = 8

Sums = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AxisDifference:
    """Share of tested turns that break with one value of an axis, beside that of the first."""

    axis: str
    first: str
    value: str
    relation: str
    #: Dialogues that have tested turns with both values.
    dialogues: int
    rate_first: float
    rate: float
    #: 95 % interval of the difference over dialogues; ``None`` with fewer than 8.
    interval: tuple[float, float] | None
    #: Of a test that swaps the values within dialogues, and the same by Holm's method, over all
    #: differences of the sweep.
    p_value: float | None
    holm: float | None = None

    @property
    def difference(self) -> float:
        """The rate less that of the first value."""
        return self.rate - self.rate_first


def differences_of(
    axes: Mapping[str, Sequence[str]], swept: Iterable[SweptCell]
) -> tuple[AxisDifference, ...]:
    """Compare each value of each axis with the axis' first.

    Of the cells with the value, turns are added up by dialogue; only cells count whose
    counterpart with the first value was run to its end too.
    """
    done = {tuple(one.cell.values.items()): one for one in swept if not one.problem}
    sums = {key: _by_relation(one) for key, one in done.items()}
    found: list[AxisDifference] = []
    for axis, values in axes.items():
        for value in values[1:]:
            pairs = [
                (sums[other], own)
                for key, own in sums.items()
                if dict(key)[axis] == value
                and (other := tuple({**dict(key), axis: values[0]}.items())) in sums
            ]
            # Under the axis of relations no two cells have one in common.
            names = dict.fromkeys(
                name for before, after in pairs for name in before if name in after
            )
            for name in names:
                before, after = _added(pairs, name)
                found.append(_difference(axis, values[0], value, name, before, after))
    return _with_holm(found)


def _by_relation(swept: SweptCell) -> dict[str, dict[str, tuple[int, int]]]:
    """Return relation -> dialogue -> its turns that broke, and those that were tested."""
    sums: dict[str, dict[str, tuple[int, int]]] = {}
    folder = swept.folder
    for turn in () if folder is None else folder.results:
        of = sums.setdefault(turn.relation, {})
        broken, tested = of.get(turn.dialogue_id, (0, 0))
        of[turn.dialogue_id] = broken + bool(turn.violations), tested + turn.tested
    return sums


def _added(
    pairs: Sequence[tuple[Mapping[str, Mapping[str, tuple[int, int]]], ...]], relation: str
) -> tuple[Sums, Sums]:
    """Return the sums of the two values, each ``[dialogues, 2]``, of dialogues with both."""
    both: list[dict[str, Sums]] = [{}, {}]
    for pair in pairs:
        for side, of in enumerate(pair):
            for name, counts in of.get(relation, {}).items():
                both[side][name] = both[side].get(name, np.zeros(2)) + np.array(counts)
    names = [name for name in both[0] if name in both[1]]
    names = [name for name in names if both[0][name][1] and both[1][name][1]]
    first, second = (np.array([one[name] for name in names]).reshape(-1, 2) for one in both)
    return first, second


def _difference(
    axis: str, first: str, value: str, relation: str, before: Sums, after: Sums
) -> AxisDifference:
    count = len(before)
    if not count:
        return AxisDifference(axis, first, value, relation, 0, 0.0, 0.0, None, None)
    rates = _rate(before.sum(0)), _rate(after.sum(0))
    interval = p_value = None
    if count >= _FEWEST:
        rng = stream(0, "sweep", axis, value, relation)
        slices = [_drawn(before, after, rng) for _ in range(_DRAWS // _SLICE)]
        moved, swapped = (np.concatenate(part) for part in zip(*slices, strict=True))
        low, high = np.percentile(moved, [2.5, 97.5])
        interval = float(low), float(high)
        beyond = np.abs(swapped) >= abs(rates[1] - rates[0]) - 1e-12
        p_value = float((beyond.sum() + 1) / (len(swapped) + 1))
    return AxisDifference(
        axis, first, value, relation, count, float(rates[0]), float(rates[1]), interval, p_value
    )


def _drawn(before: Sums, after: Sums, rng: np.random.Generator) -> tuple[Sums, Sums]:
    """Return differences on dialogues drawn again, and with the values swapped within them."""
    count = len(before)
    again = rng.integers(0, count, (_SLICE, count))
    moved = _rate(after[again].sum(1)) - _rate(before[again].sum(1))
    swap = rng.random((_SLICE, count, 1)) < 0.5
    one, other = (np.where(swap, *both).sum(1) for both in ((after, before), (before, after)))
    return moved, _rate(one) - _rate(other)


def _rate(sums: Sums) -> Sums:
    """Return broken / tested of ``[..., 2]``."""
    rate: Sums = sums[..., 0] / np.maximum(sums[..., 1], 1)
    return rate


def _with_holm(found: Sequence[AxisDifference]) -> tuple[AxisDifference, ...]:
    """Put in the p-values that hold for all differences together (Holm, 1979)."""
    known = sorted((one.p_value, at) for at, one in enumerate(found) if one.p_value is not None)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p_value, at) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p_value))
        adjusted[at] = highest
    return tuple(replace(one, holm=adjusted.get(at)) for at, one in enumerate(found))
