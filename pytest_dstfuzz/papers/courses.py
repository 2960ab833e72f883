"""Campaigns that are long enough to spend a budget of calls, run by run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.papers.campaign_figures import CampaignFigures
from pytest_dstfuzz.papers.comparison import SearchComparison
from pytest_dstfuzz.papers.contenders import Contender
from pytest_dstfuzz.papers.growth import Growth
from pytest_dstfuzz.search.registry import search_by_name

#: Most variants of a turn, as a multiple of the calls that are to be spent on one.
_MOST: Final = 4
#: A longer campaign that makes less than so many times the calls is the last one.
_WORTH: Final = 1.02
#: Broken turns leave calls to others: how many more variants these are given at first.
_LEFT: Final = 1.2
#: Invalid variants and duplicates cost no call: how many more variants are asked for.
_SPARE: Final = 1.1
#: The ways to spend calls: on every turn, or on those that are not broken yet.
WAYS: Final = {False: "whole", True: "until broken"}


class Course(NamedTuple):
    """One run of a search; how many variants it takes is found out."""

    search: str
    seed: int
    k: int
    until_broken: bool
    budget: int  #: Calls a turn, on average, that it is to make.
    without: tuple[str, ...] = ()  #: Operators that are left out, beside those of all campaigns.

    def settings(self, common: Settings, variants: int) -> Settings:
        """Return the settings of its campaign of so many variants."""
        return common.replace_options(
            search=self.search,
            seed=self.seed,
            transformations=self.k,
            stop_at_first=self.until_broken,
            variants=variants,
            edits=(*common.variant.edits, *(f"-{name}" for name in self.without)),
        )


@dataclass(frozen=True, slots=True)
class Courses:
    """The runs of searches on the ground of a comparison."""

    ground: SearchComparison
    budgets: tuple[int, ...]
    ks: Mapping[str, int]  #: Label -> number of transformations; ``""`` = of all others.

    def k(self, item: Contender) -> int:
        """Return how many transformations a search associates."""
        return self.ks.get(item.label, self.ks[""])

    def of(
        self, item: Contender, until_broken: bool, budget: int, without: Sequence[str] = ()
    ) -> list[Course]:
        """Return the runs of a search that are read at a budget.

        They are those of the largest budget, which hold all others. A search whose variants depend
        on how many there will be gets runs for each budget.
        """
        return [
            Course(
                search=search,
                seed=seed,
                k=self.k(item),
                until_broken=until_broken,
                budget=budget if _plans_ahead(search) else max(self.budgets),
                without=tuple(without),
            )
            for search, seed in item.runs(self.ground.config.seeds)
        ]

    def run(self, courses: Iterable[Course]) -> dict[Course, Run]:
        """Run campaigns that spend the budgets, with more variants until they do, see `_more`."""
        waiting = {one: _begin(one) for one in courses}
        found: dict[Course, Run] = {}
        common, campaigns = self.ground.config.settings, self.ground.campaigns
        ids = [dialogue.id for dialogue in self.ground.data.dialogues]
        while waiting:
            settings = [one.settings(common, variants) for one, variants in waiting.items()]
            campaigns.run(settings)
            longer: dict[Course, int] = {}
            for (one, variants), figures in zip(
                waiting.items(), campaigns.figures(settings), strict=True
            ):
                before = found[one].growth.spent if one in found else 0.0
                found[one] = run = Run(variants, figures, Growth.of(figures, ids))
                if more := _more(one.budget, run, before):
                    longer[one] = more
            waiting = longer
        return found


class Run(NamedTuple):
    """A campaign that was run for a `Course`."""

    variants: int  #: That it gave a turn at most.
    figures: CampaignFigures
    growth: Growth


def _plans_ahead(search: str) -> bool:
    found = search_by_name(search, seed=0, k=1)
    return found.by_density or found.waits


def _begin(course: Course) -> int:
    """Return how many variants are mostly enough."""
    return math.ceil(_LEFT * course.budget) if course.until_broken else course.budget


def _more(budget: int, run: Run, before: float) -> int:
    """Return how many variants a longer campaign takes, 0 where none is worth its while.

    ``before`` are the calls of the campaign before it, 0 where there was none.
    """
    wanted, most = budget * float(run.growth.turns.sum()), _MOST * budget
    spent = run.growth.spent
    if spent >= wanted or run.variants >= most or spent < _WORTH * before:
        return 0
    return min(most, max(run.variants + 1, math.ceil(_SPARE * run.variants * wanted / spent)))
