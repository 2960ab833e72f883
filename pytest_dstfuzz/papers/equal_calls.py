"""Searches with as many calls to the tracker as each other, and what each has found by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Final, NamedTuple

from pytest_dstfuzz.agents.trained import training_calls
from pytest_dstfuzz.config import PROFILES
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.papers.comparison import SearchComparison
from pytest_dstfuzz.papers.contenders import Contender, mean
from pytest_dstfuzz.papers.courses import WAYS, Course, Courses, Run
from pytest_dstfuzz.papers.growth import COMPARED, MEASURES, mean_found, ratio
from pytest_dstfuzz.papers.resampling import Rate

#: Masked sampling: what a search with an operator less is compared with.
_PLAIN: Final = "random"


@dataclass(frozen=True, slots=True)
class CurvesConfig:
    """What to compare."""

    contenders: tuple[Contender, ...]
    #: Label of the search that the others are compared with; ``None`` = the last one.
    subject: str | None = None
    budgets: tuple[int, ...] = (8, 32)
    #: Label -> number of transformations; ``""`` = of all others.
    ks: Mapping[str, int] | None = None
    each_operator_out: bool = False

    def check(self) -> None:
        """Refuse what would only show after all campaigns.

        Raises:
            UserError: a search is not there that others are compared with.
        """
        if self.each_operator_out and self.compared == self.plain:
            raise UserError(f"--each-operator-out compares {_PLAIN!r} with another search")

    @property
    def plain(self) -> Contender:
        """Masked sampling, what a search with an operator less is compared with."""
        found = next((item for item in self.contenders if item.label == _PLAIN), None)
        if found is None:
            raise UserError(f"--each-operator-out compares with {_PLAIN!r}: name it in --searches")
        return found

    @property
    def compared(self) -> Contender:
        """The search that the others are compared with."""
        if self.subject is None:
            return self.contenders[-1]
        names = {item.label: item for item in self.contenders}
        if self.subject not in names:
            raise unknown_name("search", self.subject, names)
        return names[self.subject]


class Side(NamedTuple):
    """A search at one budget, by one measure, in the better of its two ways."""

    contender: Contender
    until_broken: bool
    runs: tuple[Run, ...]
    found: float  #: Mean over the runs.
    spent: float  #: Calls a turn that were made; fewer than the budget where it proposed no more.


class Line(NamedTuple):
    """A search beside the subject."""

    budget: int
    measure: str
    side: Side
    subject: Side
    #: How many times as much the subject finds; ``None`` where it is the subject, and of what
    #: searches are not compared by.
    ratio: Rate | None
    without: str = ""  #: The operator that both did without.


@dataclass(frozen=True, slots=True)
class Curves:
    """The whole comparison."""

    ground: SearchComparison
    courses: Courses
    config: CurvesConfig
    subject: Contender
    lines: tuple[Line, ...]  #: All operators in use.
    operators_out: tuple[Line, ...]
    runs: Mapping[Course, Run]

    @property
    def measures(self) -> tuple[str, ...]:
        """What is counted: without a noise model nobody knows what people type."""
        noise = PROFILES[self.ground.config.settings.variant.validity].noise
        return tuple(name for name in MEASURES if noise or name != "failing_mass")


def run_curves(ground: SearchComparison, config: CurvesConfig) -> Curves:
    """Run the campaigns and compare them."""
    courses = Courses(ground, config.budgets, config.ks or {"": 3})
    subject = config.compared
    every = [
        course
        for item, until, budget in product(config.contenders, WAYS, config.budgets)
        for course in courses.of(item, until, budget)
    ]
    found = Curves(ground, courses, config, subject, (), (), courses.run(every))
    lines = [
        line
        for budget, measure in product(config.budgets, found.measures)
        for line in _compared(found, _sides(found, budget, measure), budget, measure)
    ]
    whole = replace(found, lines=tuple(lines))
    out = _operators_out(whole) if config.each_operator_out else []
    return replace(whole, operators_out=tuple(out))


def _sides(curves: Curves, budget: int, measure: str) -> list[Side]:
    """Return each search in the way in which it finds more; of equal ones, on every turn."""

    def better(item: Contender) -> Side:
        sides = [
            _side(item, until, curves.runs, curves.courses.of(item, until, budget), measure, budget)
            for until in WAYS
        ]
        return max(sides, key=lambda side: side.found)

    return list(map(better, curves.config.contenders))


def _side(
    item: Contender,
    until_broken: bool,
    runs: Mapping[Course, Run],
    courses: Sequence[Course],
    measure: str,
    budget: int,
) -> Side:
    its = tuple(runs[course] for course in courses)
    growths = [run.growth for run in its]
    spent = mean([float(run.found("calls", budget)[0] / run.turns.sum()) for run in growths])
    return Side(item, until_broken, its, mean_found(growths, measure, budget), spent)


def _compared(
    curves: Curves, sides: Sequence[Side], budget: int, measure: str, without: str = ""
) -> list[Line]:
    subject = next(side for side in sides if side.contender == curves.subject)
    return [
        Line(
            budget=budget,
            measure=measure,
            side=side,
            subject=subject,
            ratio=None
            if side is subject or measure not in COMPARED
            else times(curves, subject.runs, side, budget, measure),
            without=without,
        )
        for side in sides
    ]


def times(curves: Curves, runs: Sequence[Run], side: Side, budget: int, measure: str) -> Rate:
    """Return how many times as much some runs find as a search."""
    one, other = ([run.growth for run in each] for each in (runs, side.runs))
    return ratio(curves.ground.resamples, one, other, measure, budget)


def _operators_out(curves: Curves) -> list[Line]:
    """Compare subject and random sampling with each operator of the profile left out in turn.

    Each goes the way that is its better one with all of them. Operators that neither has in any
    violation stay: nothing that was found hangs on them.
    """
    plain, lines = curves.config.plain, []
    headlines = [
        line for line in curves.lines if line.side.contender == plain and line.measure in COMPARED
    ]
    for operator in _operators_of(curves, headlines):
        courses = {
            (side.contender, side.until_broken, line.budget): curves.courses.of(
                side.contender, side.until_broken, line.budget, (operator,)
            )
            for line in headlines
            for side in (line.side, line.subject)
        }
        runs = curves.courses.run(dict.fromkeys(chain.from_iterable(courses.values())))
        for line in headlines:
            budget, measure = line.budget, line.measure
            ways = [side[:2] for side in (line.side, line.subject)]
            both = [_side(*way, runs, courses[*way, budget], measure, budget) for way in ways]
            lines += _compared(curves, both, budget, measure, operator)[:1]
    return lines


def _operators_of(curves: Curves, lines: Sequence[Line]) -> list[str]:
    """Return the operators in use that a violation of the searches has."""
    runs = [
        run.figures for line in lines for side in (line.side, line.subject) for run in side.runs
    ]
    turns = chain.from_iterable(run.turns for run in runs)
    found = {name for turn in turns for one in turn.violations for name in one.operators}
    selection = curves.ground.config.settings.variant.selection
    pairs = zip(selection.names, selection.operators, strict=True)
    names = (f"{name}/{operator}" for name, operators in pairs for operator in operators)
    return [name for name in names if name in found]


def break_even(training: float, others: float, factor: float | None) -> float | None:
    """Return after how many calls of testing a trained search has paid for its training.

    A search that breaks ``a`` turns for every call and was trained in ``t`` calls has broken
    ``a * n`` turns after ``n`` calls of testing; another one of rate ``b`` and training ``s`` has
    broken ``b * (n + t - s)`` turns, if it may spend as many calls in all. They are equal at
    ``n = (t - s) / (a / b - 1)``. That takes both rates to stay as they are while turns are added,
    each of which gets as many calls as here; so it is reckoned of turns broken, and never of
    distinct weaknesses, of which there is an end.

    Args:
        training: ``t``.
        others: ``s``.
        factor: ``a / b``.

    Returns:
        ``n``, 0 where there is nothing to pay for; ``None`` where it never pays.

    >>> break_even(60_000, 0, 2.5)
    40000.0
    """
    if factor is None or factor <= 1:
        return None
    return max(0.0, (training - others) / (factor - 1))


def mean_training(item: Contender) -> float:
    """Return the calls of one training of a search, on average."""
    return mean([training_calls(search) for search in item.searches])
