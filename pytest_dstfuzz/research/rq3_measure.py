"""The measurements behind `rq3`: which campaigns, which of their figures are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.research.campaign_figures import CampaignFigures
from pytest_dstfuzz.research.comparison import Comparison
from pytest_dstfuzz.research.contenders import (
    Contender,
    Weaknesses,
    broken_alone,
    broken_ratio,
    rates_of,
    subject_of,
    weaknesses_of,
)
from pytest_dstfuzz.research.equal_calls import EqualCalls, at_equal_calls
from pytest_dstfuzz.research.resampling import Rate


class Contest(NamedTuple):
    """The rules under which the searches are compared: the same for all of them."""

    validity: str
    #: Turns are left alone once broken; otherwise the budget is spent on every turn.
    until_broken: bool
    #: Variants that a search gets run at a turn.
    budget: int


@dataclass(frozen=True, slots=True)
class Rq3Config:
    """What to compare."""

    contenders: tuple[Contender, ...]
    budgets: tuple[int, ...] = (8, 32)
    validities: tuple[str, ...] = ("strict",)
    until_broken: tuple[bool, ...] = (True, False)
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    @property
    def contests(self) -> tuple[Contest, ...]:
        """Every combination of profile, way of counting and budget."""
        return tuple(
            Contest(validity, until, budget)
            for validity in self.validities
            for until in self.until_broken
            for budget in self.budgets
        )


@dataclass(frozen=True, slots=True)
class Rq3Row:
    """One search at one k."""

    contest: Contest
    label: str
    #: ``None`` where the search has no number of transformations.
    k: int | None
    #: Its best k, the one that is compared.
    best: bool
    #: Campaigns: one at a k that is not the best.
    runs: int
    turns: int
    #: Means over the runs.
    calls: float
    turns_broken: float
    inertia: float
    #: See `contenders.RATES`.
    rates: dict[str, Rate]
    weaknesses: Weaknesses
    #: Of the best k only: how many times as many turns the subject breaks for every call,
    #: and the share of the subject's broken turns that this search did not break.
    ratio: Rate | None = None
    alone: Rate | None = None
    #: ... and what it breaks with as many calls as the subject made.
    equal_calls: EqualCalls | None = None

    @property
    def broken_per_1000_calls(self) -> Rate:
        """Turns broken per 1,000 calls."""
        return self.rates["broken_per_call"].scaled(1000)


@dataclass(frozen=True, slots=True)
class Rq3Table:
    """The whole table, and what it was measured on."""

    ground: Comparison
    config: Rq3Config
    subject: Contender
    rows: tuple[Rq3Row, ...]

    def row(self, contest: Contest, label: str) -> Rq3Row:
        """Return the row that is compared."""
        found = (row for row in self.rows if row.contest == contest and row.label == label)
        return next(row for row in found if row.best)

    def of(self, contest: Contest, label: str) -> tuple[Rq3Row, ...]:
        """Return the rows of a search, by k."""
        return tuple(r for r in self.rows if r.contest == contest and r.label == label)


def run_rq3(ground: Comparison, config: Rq3Config) -> Rq3Table:
    """Run the campaigns and compare them.

    The best k of a search is that of its first run; its other runs are made at this k
    alone.

    Raises:
        UserError: the settings will not do.
    """
    first = [
        _settings(ground, contest, item, k, 0)
        for contest in config.contests
        for item in config.contenders
        for k in item.ks(config.ks)
    ]
    ground.campaigns.run(first)
    best = {
        (contest, item.label): _best_k(ground, config, contest, item)
        for contest in config.contests
        for item in config.contenders
    }
    others = [
        _settings(ground, contest, item, best[contest, item.label], run)
        for contest in config.contests
        for item in config.contenders
        for run in range(1, len(item.runs(ground.config.seeds)))
    ]
    ground.campaigns.run(others)
    subject = subject_of(config.contenders)
    rows = [
        row for contest in config.contests for row in _rows(ground, config, contest, subject, best)
    ]
    return Rq3Table(ground, config, subject, tuple(rows))


def _settings(ground: Comparison, contest: Contest, item: Contender, k: int, run: int) -> Settings:
    search, seed = item.runs(ground.config.seeds)[run]
    return ground.config.settings(
        validity=contest.validity,
        until_broken=contest.until_broken,
        variants=contest.budget,
        transformations=k,
        search=search,
        seed=seed,
    )


def _figures(
    ground: Comparison, contest: Contest, item: Contender, k: int, runs: Sequence[int]
) -> list[CampaignFigures]:
    return [
        ground.campaigns.figures(_settings(ground, contest, item, k, number)) for number in runs
    ]


def _best_k(ground: Comparison, config: Rq3Config, contest: Contest, item: Contender) -> int:
    """Return the k of most turns broken for every call; of equal ones the lowest."""

    def rate(k: int) -> float:
        turns = _figures(ground, contest, item, k, [0])[0].turns
        calls = sum(turn.calls for turn in turns)
        return sum(bool(turn.violations) for turn in turns) / calls

    return max(item.ks(config.ks), key=rate)


def _rows(
    ground: Comparison,
    config: Rq3Config,
    contest: Contest,
    subject: Contender,
    best: dict[tuple[Contest, str], int],
) -> list[Rq3Row]:
    def compared(item: Contender) -> list[CampaignFigures]:
        runs = range(len(item.runs(ground.config.seeds)))
        return _figures(ground, contest, item, best[contest, item.label], runs)

    theirs = compared(subject)
    rows = []
    for item in config.contenders:
        for k in item.ks(config.ks):
            is_best = k == best[contest, item.label]
            figures = compared(item) if is_best else _figures(ground, contest, item, k, [0])
            against = is_best and item != subject
            rows.append(
                Rq3Row(
                    contest=contest,
                    label=item.label,
                    k=k if len(item.ks((1, 2))) > 1 else None,
                    best=is_best,
                    runs=len(figures),
                    turns=len(figures[0].turns),
                    calls=_mean([sum(turn.calls for turn in run.turns) for run in figures]),
                    turns_broken=_mean(
                        [sum(bool(turn.violations) for turn in run.turns) for run in figures]
                    ),
                    inertia=_mean([run.inertia for run in figures]),
                    rates=rates_of(ground.resamples, figures),
                    weaknesses=weaknesses_of(figures),
                    ratio=broken_ratio(ground.resamples, theirs, figures) if against else None,
                    alone=broken_alone(ground.resamples, theirs, figures) if against else None,
                    equal_calls=(
                        at_equal_calls(ground.resamples, theirs, figures) if against else None
                    ),
                )
            )
    return rows


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
