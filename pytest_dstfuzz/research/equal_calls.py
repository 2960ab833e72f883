"""What a search breaks with as many calls as another one made.

At the same number of variants a turn, a search that repeats itself, or breaks its turns early,
makes fewer calls, and the first calls at a turn are worth most: its rate is flattered. So a
campaign is also cut where it had made as many calls as the other search: all its turns had been
given one variant, then two, and so on. A variant never depends on those of higher numbers, so
nothing has to be run for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_dstfuzz.research.campaign_figures import CampaignFigures, TurnFigures
from pytest_dstfuzz.research.contenders import tally
from pytest_dstfuzz.research.resampling import Rate, Resamples, Tally


@dataclass(frozen=True, slots=True)
class EqualCalls:
    """A search at the calls of another one; means over its runs."""

    #: Variants that a turn had been given then; a fraction where some had one more.
    variants: float
    #: Fewer than the other's where the whole campaign made fewer.
    calls: float
    turns_broken: float
    #: How many times as many turns the other breaks for every call.
    ratio: Rate


class Cut(NamedTuple):
    """One campaign, cut at a number of calls."""

    variants: float
    #: Dialogue -> (turns broken, calls).
    tally: Tally


def cut(run: CampaignFigures, calls: float) -> Cut:
    """Cut a campaign at ``calls``.

    Between two numbers of variants a share of the turns has the higher one: the mean over
    which turns those are is taken.
    """
    most = max((len(turn.calls_after) for turn in run.turns), default=1) - 1
    totals = [_calls(run.turns, number) for number in range(most + 1)]
    below = max((number for number in range(most + 1) if totals[number] <= calls), default=0)
    share = 0.0
    if below < most:
        share = max(0.0, (calls - totals[below]) / (totals[below + 1] - totals[below]))

    def pair(turn: TurnFigures) -> tuple[float, float]:
        (broken, asked), (later, more) = (_at(turn, number) for number in (below, below + 1))
        return broken + share * (later - broken), asked + share * (more - asked)

    return Cut(below + share, tally((turn.dialogue, pair(turn)) for turn in run.turns))


def at_equal_calls(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> EqualCalls:
    """Compare ``others``, cut at the mean number of calls of ``runs``, with ``runs``."""
    theirs = [tally((turn.dialogue, _whole(turn)) for turn in run.turns) for run in runs]
    calls = _mean([sum(whole for _, whole in found.values()) for found in theirs])
    cuts = [cut(run, calls) for run in others]
    tallies = [item.tally for item in cuts]
    return EqualCalls(
        variants=_mean([item.variants for item in cuts]),
        calls=_mean([sum(whole for _, whole in found.values()) for found in tallies]),
        turns_broken=_mean([sum(part for part, _ in found.values()) for found in tallies]),
        ratio=resamples.ratio(theirs, tallies),
    )


def _at(turn: TurnFigures, variants: int) -> tuple[int, int]:
    """Return whether a turn is broken by so many variants, and its calls."""
    broken = turn.broken_after is not None and turn.broken_after <= variants
    return int(broken), turn.calls_after[min(variants, len(turn.calls_after) - 1)]


def _whole(turn: TurnFigures) -> tuple[int, int]:
    return _at(turn, len(turn.calls_after))


def _calls(turns: Sequence[TurnFigures], variants: int) -> int:
    return sum(_at(turn, variants)[1] for turn in turns)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
