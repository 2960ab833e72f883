"""The searches that an experiment compares, and the figures of their campaigns together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final, NamedTuple

from pytest_dstfuzz.papers.campaign_figures import CampaignFigures, TurnFigures, Violation
from pytest_dstfuzz.papers.formatting import Columns, csv_number, rate_columns
from pytest_dstfuzz.papers.resampling import Rate, Resamples, Tally
from pytest_dstfuzz.perturb.action import ActionSpace
from pytest_dstfuzz.search.registry import search_by_name

AGENT: Final = "agent"
_SPACE: Final = ActionSpace()


@dataclass(frozen=True, slots=True)
class Contender:
    """A search, or several that stand for one: policies of several training seeds."""

    label: str
    searches: tuple[str, ...]  #: As the option ``search`` takes them.
    associates: bool = True  #: See `Search.associates`.

    def ks(self, ks: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of transformations at which it differs."""
        return tuple(ks if self.associates else ks[:1])

    def runs(self, seeds: Sequence[int]) -> list[tuple[str, int]]:
        """Return search and seed of each run: every search and every seed at least once."""
        runs = zip(cycle(self.searches), cycle(seeds))
        return list(islice(runs, max(len(self.searches), len(seeds))))


def parse_contenders(text: str) -> tuple[Contender, ...]:
    """Read ``[LABEL=]SEARCH,...``: searches of the same label stand for one.

    Without one the label is the name of the search: all of ``agent:PATH,agent:PATH`` are
    the agent. Each search is made once, so that a mistake shows before anything is run.
    """
    found: dict[str, list[str]] = {}
    associate: dict[str, bool] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        label, equals, search = part.rpartition("=")
        made = search_by_name(search, seed=0, k=1)
        name = label if equals else search.partition(":")[0]
        found.setdefault(name, []).append(search)
        associate[name] = associate.get(name, False) or made.associates
    if not found:
        raise ValueError("names no search")
    return tuple(
        Contender(label, tuple(searches), associate[label]) for label, searches in found.items()
    )


def subject_of(contenders: Sequence[Contender]) -> Contender:
    """Return the one whom the others are compared with: the agent, else the last named."""
    return next((item for item in contenders if item.label == AGENT), contenders[-1])


def _of_violations(holds: Callable[[Violation], bool]) -> Callable[[TurnFigures], _Pair]:
    return lambda turn: (sum(map(holds, turn.violations)), len(turn.violations))


_Pair = tuple[float, float]
#: Name of a rate -> (part, whole) of a turn.
RATES: Final[Mapping[str, Callable[[TurnFigures], _Pair]]] = {
    "broken_per_call": lambda turn: (bool(turn.violations), turn.calls),
    "valid_rate": lambda turn: (turn.counts.valid, turn.counts.generated),
    "valid_rate_per_draw": lambda turn: (turn.counts.valid, turn.draws),
    "failure_rate": lambda turn: (turn.counts.violations, turn.counts.valid),
    "thesis_failure_rate": lambda turn: (
        turn.counts.violations + turn.counts.carried,
        turn.counts.valid,
    ),
    "yield": lambda turn: (turn.counts.violations, turn.counts.generated),
    "edit_w": lambda turn: (turn.edit_w, turn.counts.valid),
    "edit_c": lambda turn: (turn.edit_c, turn.counts.valid),
    "cause_turn": _of_violations(lambda item: item.cause == "turn"),
    "cause_context": _of_violations(lambda item: item.cause == "context"),
    "cause_both": _of_violations(lambda item: item.cause == "both"),
    "strict_vetoes": _of_violations(lambda item: item.vetoed),
    "strict_vetoes_with_context": _of_violations(lambda item: item.vetoed_context),
}


def tallies(runs: Sequence[CampaignFigures], pair: Callable[[TurnFigures], _Pair]) -> list[Tally]:
    """Sum (part, whole) of turns by dialogue, for each run."""
    found: list[Tally] = []
    for run in runs:
        sums: dict[str, _Pair] = {}
        for turn in run.turns:
            (part, whole), (more, of) = sums.get(turn.dialogue, (0.0, 0.0)), pair(turn)
            sums[turn.dialogue] = (part + more, whole + of)
        found.append(sums)
    return found


@dataclass(frozen=True, slots=True)
class MeanFigures:
    """The figures of a search at one k: means over its runs."""

    runs: int  #: Campaigns.
    turns: int
    calls: float
    turns_broken: float
    inertia: float  #: Of the actions of all draws.
    rates: Mapping[str, Rate]  #: See `RATES`.

    @classmethod
    def of(cls, resamples: Resamples, runs: Sequence[CampaignFigures]) -> MeanFigures:
        """Return the means over campaigns on the same dialogues."""
        return cls(
            runs=len(runs),
            turns=len(runs[0].turns),
            calls=mean([run.calls for run in runs]),
            turns_broken=mean([run.turns_broken for run in runs]),
            inertia=mean([run.inertia for run in runs]),
            rates={name: resamples.rate(tallies(runs, pair)) for name, pair in RATES.items()},
        )

    @property
    def broken_per_1000_calls(self) -> Rate:
        """Turns broken per 1,000 calls."""
        return self.rates["broken_per_call"].scaled(1000)


#: Columns of a row whose ``means`` are such figures.
COUNT_COLUMNS: Final[Columns] = {
    "turns": lambda row: row.means.turns,
    "calls": lambda row: csv_number(row.means.calls, 1),
    "turns_broken": lambda row: csv_number(row.means.turns_broken, 1),
    **rate_columns("broken_per_1000_calls", lambda row: row.means.broken_per_1000_calls),
}


def _rate_columns(rate: str) -> Columns:
    return rate_columns(rate, lambda row: row.means.rates[rate])


RATE_COLUMNS: Final[Columns] = {
    name: cell
    for rate in RATES
    if rate != "broken_per_call"
    for name, cell in _rate_columns(rate).items()
}


def inertia_share(inertia: float, k: int | None) -> float:
    """Return an inertia as a share of that of uniform sampling with as many transformations.

    A search without a number of them (``None``) makes one edit a step.
    """
    return inertia / _SPACE.uniform_inertia(k or 1)


def mean(numbers: Sequence[float]) -> float:
    """Return the mean of some numbers."""
    return sum(numbers) / len(numbers)


def broken_alone(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> Rate:
    """Return the share of the turns that ``runs`` break which ``others`` do not.

    The first run is held against the first of the others, and so on.
    """

    def alone(run: CampaignFigures, other: CampaignFigures) -> Tally:
        theirs = {_place(turn) for turn in other.turns if turn.violations}

        def pair(turn: TurnFigures) -> _Pair:
            broken = bool(turn.violations)
            return broken and _place(turn) not in theirs, broken

        return tallies([run], pair)[0]

    return resamples.rate([alone(run, other) for run, other in zip(runs, cycle(others))])


class Weaknesses(NamedTuple):
    """How varied what was found is; means over runs."""

    number: float  #: Different sets of changed slots and the values that they got.
    #: Share of the violations that the most frequent one has; ``None`` without violations.
    most_frequent: float | None
    name: str  #: That of the first run.


def weaknesses_of(runs: Sequence[CampaignFigures]) -> Weaknesses:
    """Return how varied the violations are."""
    counted = [
        Counter(item.weakness for turn in run.turns for item in turn.violations) for run in runs
    ]
    shares = [max(found.values()) / found.total() for found in counted if found]
    # Of equally frequent ones the first in the order of the alphabet.
    top = min(counted[0].items(), key=lambda item: (-item[1], str(item[0])), default=((), 0))[0]
    return Weaknesses(
        number=mean([*map(len, counted)]),
        most_frequent=mean(shares) if shares else None,
        name=", ".join(f"{slot} -> {after or 'none'}" for slot, after in top),
    )


def _place(turn: TurnFigures) -> tuple[str, int]:
    return turn.dialogue, turn.turn


class Against(NamedTuple):
    """A search beside the subject."""

    ratio: Rate  #: How many times as many turns the subject breaks for every call.
    alone: Rate  #: Share of the subject's broken turns that this search did not break.

    @classmethod
    def of(
        cls,
        resamples: Resamples,
        subject: Sequence[CampaignFigures],
        runs: Sequence[CampaignFigures],
    ) -> Against:
        """Compare the runs of a search with those of the subject."""
        pair = RATES["broken_per_call"]
        ratio = resamples.ratio(tallies(subject, pair), tallies(runs, pair))
        return cls(ratio, broken_alone(resamples, subject, runs))
