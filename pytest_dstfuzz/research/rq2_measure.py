"""The measurements behind `rq2`: searches over the number of associated transformations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.research.campaign_figures import CampaignFigures
from pytest_dstfuzz.research.comparison import Comparison
from pytest_dstfuzz.research.contenders import WITHOUT_K, Contender, rates_of
from pytest_dstfuzz.research.resampling import Rate
from pytest_dstfuzz.search.uniform import RandomSearch


@dataclass(frozen=True, slots=True)
class Rq2Config:
    """What to measure."""

    #: Random sampling is put beside them.
    contenders: tuple[Contender, ...]
    validities: tuple[str, ...] = ("edit-rate", "strict")
    variants: int = 5
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    @property
    def compared(self) -> tuple[Contender, ...]:
        """The contenders, and random sampling where it is none of them.

        Raises:
            UserError: one of them has no number of transformations.
        """
        for item in self.contenders:
            if item.label in WITHOUT_K:
                raise UserError(
                    f"rq2 goes over the number of transformations, which {item.label!r} does not "
                    "have: compare it with rq3"
                )
        name = RandomSearch.name
        if any(item.label == name for item in self.contenders):
            return self.contenders
        return (*self.contenders, Contender(name, (name,)))


@dataclass(frozen=True, slots=True)
class Rq2Row:
    """One search at one k: the mean over its runs, or one of them."""

    validity: str
    k: int
    label: str
    #: Search and seed; ``None`` = all runs.
    run: tuple[str, int] | None
    turns: int
    calls: float
    turns_broken: float
    #: Of the actions of all draws.
    inertia: float
    #: See `contenders.RATES`.
    rates: dict[str, Rate]

    @property
    def broken_per_1000_calls(self) -> Rate:
        """Turns broken per 1,000 calls."""
        return self.rates["broken_per_call"].scaled(1000)


@dataclass(frozen=True, slots=True)
class Rq2Table:
    """The whole table, and what it was measured on."""

    ground: Comparison
    config: Rq2Config
    rows: tuple[Rq2Row, ...]

    def means(self, validity: str) -> list[Rq2Row]:
        """Return the rows of all runs together, by k."""
        return [row for row in self.rows if row.validity == validity and row.run is None]

    def single(self, validity: str) -> list[Rq2Row]:
        """Return the rows of single runs, by k."""
        return [row for row in self.rows if row.validity == validity and row.run is not None]


def run_rq2(ground: Comparison, config: Rq2Config) -> Rq2Table:
    """Run the campaigns.

    Raises:
        UserError: the settings will not do.
    """
    seeds = ground.config.seeds

    def settings(validity: str, k: int, run: tuple[str, int]) -> Settings:
        return ground.config.settings(
            validity=validity,
            variants=config.variants,
            transformations=k,
            search=run[0],
            seed=run[1],
        )

    places = [
        (validity, k, item)
        for validity in config.validities
        for k in config.ks
        for item in config.compared
    ]
    ground.campaigns.run(
        [settings(validity, k, run) for validity, k, item in places for run in item.runs(seeds)]
    )
    rows: list[Rq2Row] = []
    for validity, k, item in places:
        runs = item.runs(seeds)
        figures = [ground.campaigns.figures(settings(validity, k, run)) for run in runs]
        rows.append(_row(ground, validity, k, item.label, None, figures))
        if len(runs) > 1:
            rows += [
                _row(ground, validity, k, item.label, run, [found])
                for run, found in zip(runs, figures, strict=True)
            ]
    return Rq2Table(ground, config, tuple(rows))


def _row(
    ground: Comparison,
    validity: str,
    k: int,
    label: str,
    run: tuple[str, int] | None,
    figures: Sequence[CampaignFigures],
) -> Rq2Row:
    turns = [turn for campaign in figures for turn in campaign.turns]
    return Rq2Row(
        validity=validity,
        k=k,
        label=label,
        run=run,
        turns=len(figures[0].turns),
        calls=sum(turn.calls for turn in turns) / len(figures),
        turns_broken=sum(bool(turn.violations) for turn in turns) / len(figures),
        inertia=sum(campaign.inertia for campaign in figures) / len(figures),
        rates=rates_of(ground.resamples, figures),
    )
