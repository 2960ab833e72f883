"""What a search had found after how many calls to the tracker, dialogue by dialogue.

A campaign gives all turns one variant, then a second one, and so on; a variant never depends on
those of higher numbers. So a campaign is also all those that were given less: it is cut where it
has made so many calls. Calls are the contexts that the tracker was asked for: clean ones and the
second passes that find the cause of a violation are among them, those of shrinking are not.
Between two numbers of variants a share of the turns has one more: what is found is then read off
the straight line between them. Where a campaign ends before, because its search proposes nothing
more, what it had found last stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.papers.campaign_figures import CampaignFigures, TurnFigures, Violation
from pytest_dstfuzz.papers.resampling import Floats, Rate, Resamples, interval_of

#: Weakness and slot: distinct ones are counted.
Pair = tuple[str, str]
#: What is counted: the name of a figure -> what it is called.
MEASURES: Final = {
    "weaknesses": "distinct weaknesses",
    "turns_broken": "turns broken",
    "failing_mass": "failing mass",
}
#: What searches are compared by; a few violations have nearly all of the mass that is found.
COMPARED: Final = ("weaknesses", "turns_broken")
#: Failing mass: of so many user turns, those that are typed as a violation found.
_TURNS: Final = 1_000


class _Cut(NamedTuple):
    """Where a campaign is cut, for each row of weights: after a number of variants and a share."""

    below: npt.NDArray[np.intp]
    share: Floats

    def of(self, totals: Floats) -> Floats:
        """Read a figure, [rows, numbers of variants], off at the cut."""
        rows, above = np.arange(len(totals)), np.minimum(self.below + 1, totals.shape[1] - 1)
        low = totals[rows, self.below]
        read: Floats = low + self.share * (totals[rows, above] - low)
        return read


@dataclass(frozen=True, slots=True)
class Growth:
    """One campaign; numbers of variants begin with 0, after the clean turns alone."""

    turns: Floats  #: [dialogues]: how many each has.
    calls: Floats  #: [dialogues, numbers of variants], and likewise:
    broken: Floats
    mass: Floats
    #: [dialogues, pairs]: the number of the first variant that shows a pair, or one too many.
    first: npt.NDArray[np.intp]

    @classmethod
    def of(cls, run: CampaignFigures, dialogues: Sequence[str]) -> Growth:
        """Read a campaign; ``dialogues`` are its ids in the order of the resamples."""
        rows = {name: row for row, name in enumerate(dialogues)}
        numbers = max((len(turn.calls_after) for turn in run.turns), default=1)
        pairs = {pair: place for place, pair in enumerate(sorted(_pairs(run.turns)))}
        turns = np.zeros(len(rows))
        calls, broken, mass = (np.zeros((len(rows), numbers)) for _ in range(3))
        first = np.full((len(rows), len(pairs)), numbers, dtype=np.intp)
        for turn in run.turns:
            row, asked = rows[turn.dialogue], turn.calls_after
            turns[row] += 1
            calls[row] += (*asked, *[asked[-1]] * (numbers - len(asked)))
            if turn.broken_after is not None:
                broken[row, turn.broken_after :] += 1
            for item in turn.violations:
                mass[row, item.number :] += item.mass
                place = pairs[_pair(item)]
                first[row, place] = min(first[row, place], item.number)
        return cls(turns, calls, broken, mass, first)

    @property
    def spent(self) -> float:
        """Calls that the whole campaign made."""
        return float(self.calls[:, -1].sum())

    def found(self, measure: str, calls: float, weights: Floats | None = None) -> Floats:
        """Return what was found in so many calls a turn on average, for each row of weights.

        Args:
            measure: a name of `MEASURES`, or ``calls``: those that were made by then.
            calls: a turn.
            weights: [rows, dialogues]: how often each dialogue is drawn. Each row is cut where its
                own calls are spent, and its distinct pairs are counted anew. One row of all
                dialogues where there are none.
        """
        drawn = np.ones((1, len(self.turns))) if weights is None else weights
        turns = drawn @ self.turns
        totals = drawn @ self.calls
        cut = _cut(totals, calls * turns)
        if measure == "calls":
            return cut.of(totals)
        if measure == "weaknesses":
            return self._pairs_at(cut, drawn)
        if measure == "turns_broken":
            return cut.of(drawn @ self.broken)
        return _TURNS * cut.of(drawn @ self.mass) / turns

    def variants_at(self, calls: float) -> int:
        """Return how many variants, to the nearest number, a turn has been given at a cut."""
        totals = self.calls.sum(axis=0, keepdims=True)
        cut = _cut(totals, np.array([calls * self.turns.sum()]))
        return int(cut.below[0]) + int(cut.share[0] >= 0.5)

    def _pairs_at(self, cut: _Cut, weights: Floats) -> Floats:
        counts = np.zeros((len(weights), 2))
        if self.first.shape[1]:
            for row, drawn in enumerate(weights > 0):
                soonest = self.first[drawn].min(axis=0)
                below = cut.below[row]
                counts[row] = (soonest <= below).sum(), (soonest <= below + 1).sum()
        # One too many is the number of what was never found, and may be asked for.
        counts[cut.share == 0, 1] = counts[cut.share == 0, 0]
        read: Floats = counts[:, 0] + cut.share * (counts[:, 1] - counts[:, 0])
        return read


def _cut(totals: Floats, wanted: Floats) -> _Cut:
    """Return where calls, [rows, numbers of variants], come to those wanted, [rows]."""
    rows, most = np.arange(len(totals)), totals.shape[1] - 1
    below = np.maximum((totals <= wanted[:, None]).sum(axis=1) - 1, 0)
    low, high = totals[rows, below], totals[rows, np.minimum(below + 1, most)]
    more = high - low
    share = np.divide(wanted - low, more, out=np.zeros_like(more), where=more > 0)
    return _Cut(below, np.clip(share, 0.0, 1.0))


def mean_found(runs: Sequence[Growth], measure: str, calls: float) -> float:
    """Return what so many calls a turn find, on average over runs."""
    return float(np.mean([run.found(measure, calls)[0] for run in runs]))


def ratio(
    resamples: Resamples,
    runs: Sequence[Growth],
    others: Sequence[Growth],
    measure: str,
    calls: float,
) -> Rate:
    """Return how many times as much ``runs`` find as ``others`` in as many calls a turn.

    The mean over runs of the one divided by that of the other. The interval is that of a paired
    bootstrap over dialogues: each resample is cut where its calls are spent, and counts the
    distinct pairs of its own dialogues.
    """
    one, other = (
        np.mean([run.found(measure, calls, resamples.weights) for run in side], axis=0)
        for side in (runs, others)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = one / other
    if not np.isfinite(ratios[0]):
        return Rate(None)
    several = resamples.weights.shape[1] > 1
    return Rate(float(ratios[0]), interval_of(ratios[1:]) if several else None)


def shares_by_operator(
    runs: Iterable[tuple[CampaignFigures, int]],
) -> dict[str, tuple[float, float]]:
    """Return for each operator its shares of the violations and of the distinct weaknesses.

    A violation counts for each operator of its smallest version, a weakness for each operator that
    one of its violations has, so that shares may add up to more than 1. Each run comes with the
    number of variants that are looked at.
    """
    violations = weaknesses = 0
    counted: dict[str, list[int]] = {}
    for run, variants in runs:
        known: dict[Pair, set[str]] = {}
        for item in (one for turn in run.turns for one in turn.violations):
            if item.number <= variants:
                violations += 1
                known.setdefault(_pair(item), set()).update(item.operators)
                for name in item.operators:
                    counted.setdefault(name, [0, 0])[0] += 1
        weaknesses += len(known)
        for names in known.values():
            for name in names:
                counted[name][1] += 1
    return {name: (one / violations, other / weaknesses) for name, (one, other) in counted.items()}


def _pair(violation: Violation) -> Pair:
    return violation.key, violation.slot


def _pairs(turns: Iterable[TurnFigures]) -> set[Pair]:
    return {_pair(violation) for turn in turns for violation in turn.violations}
