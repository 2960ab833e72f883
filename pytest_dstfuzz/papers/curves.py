"""Compares searches over the number of calls of a campaign, in curves and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.searches import training_calls
from pytest_dstfuzz.config import PROFILES, Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import names_file, read_text
from pytest_dstfuzz.papers.command_line import (
    begin,
    comparison_options,
    ground_parser,
    hand_out,
    ks,
    parse_arguments,
    several,
)
from pytest_dstfuzz.papers.comparison import (
    CampaignFigures,
    Contender,
    SearchComparison,
    TurnFigures,
    Violation,
    mean,
    parse_contenders,
)
from pytest_dstfuzz.papers.formatting import (
    NONE,
    Columns,
    Floats,
    Rate,
    Resamples,
    csv_number,
    csv_text,
    interval_of,
    markdown_table,
    number,
    rate_columns,
    share,
    yes_no,
)
from pytest_dstfuzz.search.registry import search_by_name

#: A weakness and a slot. Distinct pairs are counted.
Pair = tuple[str, str]
#: Name of a measure -> description.
MEASURES: Final = {
    "weaknesses": "distinct weaknesses",
    "turns_broken": "turns broken",
    "failing_mass": "failing mass",
}
#: Measures to compare searches by. Failing mass is not one: a few violations have nearly all mass.
COMPARED: Final = ("weaknesses", "turns_broken")
#: Failing mass counts the turns typed like a violation found, out of this many turns.
_TURNS: Final = 1_000


class _Cut(NamedTuple):
    """The fractional number of variants at which a cut divides each row of a campaign."""

    below: npt.NDArray[np.intp]
    share: Floats

    def of(self, totals: Floats) -> Floats:
        """Return a measure, given as [rows, numbers of variants], interpolated at the cut."""
        rows, above = np.arange(len(totals)), np.minimum(self.below + 1, totals.shape[1] - 1)
        low = totals[rows, self.below]
        read: Floats = low + self.share * (totals[rows, above] - low)
        return read


@dataclass(frozen=True, slots=True)
class Growth:
    """The findings of a campaign after each number of variants. 0 means only clean turns."""

    turns: Floats  #: [dialogues], number of turns.
    calls: Floats  #: [dialogues, numbers of variants]; ``broken`` and ``mass`` likewise.
    broken: Floats
    mass: Floats
    #: [dialogues, pairs]: number of the first variant with a pair, or the maximum plus one.
    first: npt.NDArray[np.intp]

    @classmethod
    def of(cls, run: CampaignFigures, dialogues: Sequence[str]) -> Growth:
        """Convert a campaign. ``dialogues`` are its ids, in the order of the bootstrap samples."""
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
        """Total number of calls of the campaign."""
        return float(self.calls[:, -1].sum())

    def found(self, measure: str, calls: float, weights: Floats | None = None) -> Floats:
        """Return the findings of a campaign after a mean number of calls per turn.

        Args:
            measure: a name in `MEASURES`, or ``calls`` for the number of calls at the cut.
            calls: the mean number of calls per turn.
            weights: [rows, dialogues]: how often each dialogue is drawn. Each row has its own cut
                and its own count of distinct weaknesses. The default is one row with all dialogues.
                The result has one value per row.
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
        """Return the rounded number of variants per turn after these calls."""
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
        # The maximum plus one marks pairs never found, which must not count at the last number.
        counts[cut.share == 0, 1] = counts[cut.share == 0, 0]
        read: Floats = counts[:, 0] + cut.share * (counts[:, 1] - counts[:, 0])
        return read


def _cut(totals: Floats, wanted: Floats) -> _Cut:
    """Find the cut of each row with ``wanted`` calls, [rows]."""
    rows, most = np.arange(len(totals)), totals.shape[1] - 1
    below = np.maximum((totals <= wanted[:, None]).sum(axis=1) - 1, 0)
    low, high = totals[rows, below], totals[rows, np.minimum(below + 1, most)]
    more = high - low
    share = np.divide(wanted - low, more, out=np.zeros_like(more), where=more > 0)
    return _Cut(below, np.clip(share, 0.0, 1.0))


def mean_found(runs: Sequence[Growth], measure: str, calls: float) -> float:
    """Return the mean findings of some runs after a number of calls per turn."""
    return float(np.mean([run.found(measure, calls)[0] for run in runs]))


def ratio(
    resamples: Resamples,
    runs: Sequence[Growth],
    others: Sequence[Growth],
    measure: str,
    calls: float,
) -> Rate:
    """Return how much more ``runs`` find than ``others`` at equal calls per turn.

    The ratio is the mean over ``runs`` divided by the mean over ``others``. The interval comes from
    a paired bootstrap over dialogues. Each resample has its own cut and its own distinct
    weaknesses.
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
    """Return each operator's shares of the violations and of the distinct weaknesses.

    A violation counts for each operator in its minimal version. A weakness counts for each operator
    in one of its violations. So the shares may sum to more than 1. Each run comes with the number
    of variants to consider.
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


#: Maximum variants per turn, as a multiple of the budget.
_MOST_LENGTHS: Final = 4
#: Stop if a longer campaign makes less than this many times the calls.
_WORTH: Final = 1.02
#: Initial variants per turn as a multiple of the budget, if broken turns leave calls to others.
_LEFT: Final = 1.2
#: Factor on the estimated number of variants: invalid ones and duplicates cost no call.
_SPARE: Final = 1.1
#: Ways to spend calls: on every turn, or only on turns that are not broken yet.
WAYS: Final = {False: "whole", True: "until broken"}


class Course(NamedTuple):
    """A planned run of a search with a number of calls. Its number of variants is unknown."""

    search: str
    seed: int
    k: int
    until_broken: bool
    budget: int  #: Mean number of calls per turn to make.
    without: tuple[str, ...] = ()  #: Excluded operators, besides those of all campaigns.

    def settings(self, common: Settings, variants: int) -> Settings:
        """Return the settings of the run's campaign, with ``variants`` variants per turn."""
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
    """Plans and executes the runs of all searches in a comparison."""

    ground: SearchComparison
    budgets: tuple[int, ...]
    ks: Mapping[str, int]  #: Label -> number of transformations; ``""`` is the default.

    def k(self, item: Contender) -> int:
        """Return the number of transformations of a search."""
        return self.ks.get(item.label, self.ks[""])

    def of(
        self, item: Contender, until_broken: bool, budget: int, without: Sequence[str] = ()
    ) -> list[Course]:
        """Return the runs of a search for a budget.

        Usually one run serves all budgets, because the run with the largest budget includes the
        smaller budgets. If the variants of a search depend on their total number, each budget has
        separate runs.
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
        """Run campaigns with more and more variants until each has spent its budget."""
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
    """The campaign for a `Course`."""

    variants: int  #: Maximum number of variants per turn.
    figures: CampaignFigures
    growth: Growth


def _plans_ahead(search: str) -> bool:
    found = search_by_name(search, seed=0, k=1)
    return found.by_density or found.waits


def _begin(course: Course) -> int:
    """Return a number of variants that usually suffices."""
    return math.ceil(_LEFT * course.budget) if course.until_broken else course.budget


def _more(budget: int, run: Run, before: float) -> int:
    """Return the number of variants for a longer campaign, or 0 if it could find no more.

    ``before`` is the number of calls in the previous campaign, or 0 for the first campaign.
    """
    wanted, most = budget * float(run.growth.turns.sum()), _MOST_LENGTHS * budget
    spent = run.growth.spent
    if spent >= wanted or run.variants >= most or spent < _WORTH * before:
        return 0
    return min(most, max(run.variants + 1, math.ceil(_SPARE * run.variants * wanted / spent)))


#: Masked sampling, the baseline when an operator is left out.
_PLAIN: Final = "random"


@dataclass(frozen=True, slots=True)
class CurvesConfig:
    """The configuration of a comparison at equal calls."""

    contenders: tuple[Contender, ...]
    #: Label of the search that the others are compared with. ``None`` means the last one.
    subject: str | None = None
    budgets: tuple[int, ...] = (8, 32)
    #: Label -> number of transformations; ``""`` is the default.
    ks: Mapping[str, int] | None = None
    each_operator_out: bool = False

    def check(self) -> None:
        """Reject invalid settings before any campaign is run.

        Raises:
            UserError: a search for the comparison is missing.
        """
        if self.each_operator_out and self.compared == self.plain:
            raise UserError(f"--each-operator-out needs a --subject other than {_PLAIN!r}")

    @property
    def plain(self) -> Contender:
        """Random sampling, the baseline for leaving out an operator."""
        found = next((item for item in self.contenders if item.label == _PLAIN), None)
        if found is None:
            raise UserError(f"--each-operator-out needs {_PLAIN!r}: add it to --searches")
        return found

    @property
    def compared(self) -> Contender:
        """The subject, which is the search that the others are compared with."""
        if self.subject is None:
            return self.contenders[-1]
        names = {item.label: item for item in self.contenders}
        if self.subject not in names:
            raise unknown_name("search", self.subject, names)
        return names[self.subject]


class Side(NamedTuple):
    """A search at one budget, by one measure, with the better of two ways to spread calls."""

    contender: Contender
    until_broken: bool
    runs: tuple[Run, ...]
    found: float  #: Mean over the runs.
    spent: float  #: Actual calls per turn. Fewer if the search ran out of proposals.


class Line(NamedTuple):
    """One row of a table: a search compared with the subject."""

    budget: int
    measure: str
    side: Side
    subject: Side
    #: Ratio of the subject to the search. ``None`` for the subject itself, and for measures that
    #: are not compared.
    ratio: Rate | None
    without: str = ""  #: The operator excluded from both.


@dataclass(frozen=True, slots=True)
class Curves:
    """All results of a comparison at equal calls."""

    ground: SearchComparison
    courses: Courses
    config: CurvesConfig
    subject: Contender
    lines: tuple[Line, ...]  #: With all operators in use.
    operators_out: tuple[Line, ...]
    runs: Mapping[Course, Run]

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures. Failing mass is left out if the profile has no noise model."""
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
    """Choose the better way of spreading calls for each search. Ties give "whole"."""

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
    """Return how many times more some runs find than a search."""
    one, other = ([run.growth for run in each] for each in (runs, side.runs))
    return ratio(curves.ground.resamples, one, other, measure, budget)


def _operators_out(curves: Curves) -> list[Line]:
    """Compare the subject with random sampling, without one operator at a time.

    Each search keeps the way that is better with all operators. Operators that take part in no
    violation are skipped, because no result depends on them.
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
    """Return the operators in use that take part in a violation of the two searches."""
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
    """Return after how many testing calls a trained search has recovered its training calls.

    Suppose a search breaks ``a`` turns per call after ``t`` training calls. It has broken ``a * n``
    turns after ``n`` testing calls. Another search has the rate ``b`` and ``s`` training calls.
    With an equal total of calls, it has broken ``b * (n + t - s)`` turns. The two numbers are equal
    at ``n = (t - s) / (a / b - 1)``. This assumes constant rates when turns are added, with as many
    calls per turn as here. So the formula applies to broken turns. It does not apply to distinct
    weaknesses, because their number is limited.

    Args:
        training: ``t``.
        others: ``s``.
        factor: ``a / b``.

    Returns:
        ``n``, or 0 if the training needed no extra calls, or ``None`` if it never pays off.

    >>> break_even(60_000, 0, 2.5)
    40000.0
    """
    if factor is None or factor <= 1:
        return None
    return max(0.0, (training - others) / (factor - 1))


def mean_training(item: Contender) -> float:
    """Return the mean number of calls for the training of a search."""
    return mean([training_calls(search) for search in item.searches])


#: Points of the curves in calls per turn, besides the budgets.
_POINTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: Maximum number of operators in a table of shares.
_MOST_ROWS: Final = 8


class Point(NamedTuple):
    """The findings of one run after a number of calls."""

    contender: Contender
    course: Course
    run: Run
    calls_a_turn: int

    def found(self, measure: str) -> float:
        """Return the value of a measure at this point, see `Growth.found`."""
        return float(self.run.growth.found(measure, self.calls_a_turn)[0])


def _found_cell(measure: str, point: Point) -> str:
    return csv_number(point.found(measure))


#: Columns of ``curves.csv``, with a line per search, training and number of calls.
COLUMNS: Columns = {
    "search": lambda point: point.contender.label,
    "training": lambda point: point.course.search,
    "seed": lambda point: point.course.seed,
    "k": lambda point: point.course.k if point.contender.associates else "",
    "until_broken": lambda point: yes_no(point.course.until_broken),
    "variants": lambda point: point.run.variants,
    "budget": lambda point: point.course.budget,
    "calls_a_turn": lambda point: point.calls_a_turn,
    "calls": lambda point: csv_number(point.found("calls"), 1),
    **{name: partial(_found_cell, name) for name in MEASURES},
}
#: Columns of ``curves-ratios.csv``, with a line per budget, measure and search, and one for each
#: excluded operator.
RATIO_COLUMNS: Columns = {
    "budget": lambda line: line.budget,
    "measure": lambda line: line.measure,
    "without": lambda line: line.without,
    "search": lambda line: line.side.contender.label,
    "until_broken": lambda line: yes_no(line.side.until_broken),
    "calls_a_turn": lambda line: csv_number(line.side.spent, 2),
    "found": lambda line: csv_number(line.side.found),
    "subject": lambda line: line.subject.contender.label,
    "subject_until_broken": lambda line: yes_no(line.subject.until_broken),
    "subject_calls_a_turn": lambda line: csv_number(line.subject.spent, 2),
    "subject_found": lambda line: csv_number(line.subject.found),
    **rate_columns("ratio", lambda line: line.ratio),
}


def tables(curves: Curves) -> dict[str, str]:
    """Return the contents of the output files by name."""
    return {
        "curves.md": _markdown(curves),
        "curves.csv": csv_text(COLUMNS, _points(curves)),
        "curves-ratios.csv": csv_text(RATIO_COLUMNS, (*curves.lines, *curves.operators_out)),
    }


def _points(curves: Curves) -> Iterable[Point]:
    budgets = curves.config.budgets
    calls = sorted({*budgets, *(one for one in _POINTS if one < max(budgets))})
    for item, until, budget in product(curves.config.contenders, WAYS, budgets):
        courses = curves.courses.of(item, until, budget)
        # Runs that serve all budgets are listed only once.
        for course in courses if courses[0].budget == budget else []:
            for one in calls:
                if one <= budget:
                    yield Point(item, course, curves.runs[course], one)


def _markdown(curves: Curves) -> str:
    subject, budgets = curves.subject.label, curves.config.budgets
    variant = curves.ground.config.settings.variant
    lines = [
        "# Searches at equal calls",
        "",
        *curves.ground.header(),
        f"- profile {variant.validity}",
    ]
    if left_out := [name[1:] for name in variant.edits if name.startswith("-")]:
        lines += [f"- edits not used: {', '.join(left_out)}"]
    lines += _notes(curves)
    for budget in budgets:
        lines += ["", f"## {budget} calls a turn"]
        for measure in curves.measures:
            lines += ["", *_headline(curves, budget, measure)]
        lines += ["", *_by_operator(curves, budget), *_break_even(curves, budget)]
    lines += ["", "## Each training", "", *_trainings(curves)]
    if curves.operators_out:
        lines += ["", f"## {subject} / random with an operator left out", ""]
        lines += ["Operators that take part in a violation of one of the two searches:", ""]
        lines += _out(curves)
    lines += ["", "## Curves", "", *_curves(curves)]
    return "\n".join(lines) + "\n"


_FAILING_MASS: Final = (
    "- failing mass: expected number of 1,000 user turns with exactly the edits of a violation "
    "that was found. It is a lower bound, and a few violations cause most of it"
)


def _notes(curves: Curves) -> list[str]:
    noise = PROFILES[curves.ground.config.settings.variant.validity].noise
    return [
        (
            "- calls: number of contexts that the tracker answered. Clean turns count, and "
            "contexts that show the cause of a violation. Requests to find the smallest edits do "
            "not count"
        ),
        (
            "- all turns get one variant, then a second variant, and so on, until the calls are "
            "spent. A search may run out of proposals before; then its findings so far count"
        ),
        (
            "- way: the better of two ways for each search to spread its calls over the turns. "
            "Whole: all turns get the same number of variants. Until broken: a turn gets no more "
            "variants after its first violation"
        ),
        (
            "- distinct weaknesses: number of different pairs (weakness, slot) in the minimal "
            "violations. The slot is the one with the most informative change"
        ),
        *([_FAILING_MASS] if noise else []),
        (
            f"- {curves.subject.label} / search: the figure of {curves.subject.label} divided by "
            "that of the search, from a paired bootstrap over dialogues; each bootstrap sample is "
            "cut when its own calls are spent, and counts the distinct weaknesses of its own "
            "dialogues"
        ),
    ]


def _headline(curves: Curves, budget: int, measure: str) -> list[str]:
    head = ["search", "k", "way", "calls a turn", MEASURES[measure]]
    compared = measure in COMPARED
    rows = []
    for line in curves.lines:
        if (line.budget, line.measure) == (budget, measure):
            side = line.side
            item = side.contender
            row = [item.label, str(curves.courses.k(item)) if item.associates else NONE]
            row += [WAYS[side.until_broken], f"{side.spent:.1f}", _cell(measure, side.found)]
            rows.append([*row, *[number(line.ratio, 2) if line.ratio else ""] * compared])
    return markdown_table([*head, *[f"{curves.subject.label} / search"] * compared], rows)


def _side_of(curves: Curves, budget: int, measure: str) -> dict[str, Side]:
    return {
        line.side.contender.label: line.side
        for line in curves.lines
        if (line.budget, line.measure) == (budget, measure)
    }


def _by_operator(curves: Curves, budget: int) -> list[str]:
    sides = _side_of(curves, budget, "weaknesses")
    shares = {
        label: shares_by_operator(
            (run.figures, run.growth.variants_at(budget)) for run in side.runs
        )
        for label, side in sides.items()
    }
    subject = shares[curves.subject.label]
    every = {name for found in shares.values() for name in found}
    order = sorted(every, key=lambda name: (-subject.get(name, (0.0, 0.0))[0], name))
    nothing = (0.0, 0.0)
    return [
        "Share of the violations / of the distinct weaknesses in which an operator takes part:",
        "",
        *markdown_table(
            ["operator", *shares],
            (
                [
                    f"`{name}`",
                    *(
                        " / ".join(share(part, 0) for part in found.get(name, nothing))
                        for found in shares.values()
                    ),
                ]
                for name in order[:_MOST_ROWS]
            ),
        ),
    ]


def _break_even(curves: Curves, budget: int) -> list[str]:
    training = mean_training(curves.subject)
    if not training:
        return []
    cells = []
    for line in curves.lines:
        if (line.budget, line.measure) == (budget, "turns_broken") and line.ratio is not None:
            others = mean_training(line.side.contender)
            calls = break_even(training, others, line.ratio.value)
            after = "never" if calls is None else f"{calls:,.0f} calls"
            cells.append(f"{line.side.contender.label} {after}")
    told = (
        f"The training of {curves.subject.label} took {training:,.0f} calls. If they count too, "
        f"{curves.subject.label} has broken more turns than another search after this number of "
        f"test calls: {', '.join(cells) or NONE}."
    )
    return ["", told]


def _trainings(curves: Curves) -> list[str]:
    """Return a table with each run of each search at each budget, and the subject's ratios."""
    subject = curves.subject.label
    others = [item.label for item in curves.config.contenders if item != curves.subject]
    head = ["calls a turn", "search", "training", "seed", "training calls"]
    head += [MEASURES[name] for name in curves.measures]
    head += [f"{subject} / {other}: {MEASURES[name]}" for name, other in product(COMPARED, others)]
    rows = []
    for budget, item in product(curves.config.budgets, curves.config.contenders):
        sides = {name: _side_of(curves, budget, name) for name in curves.measures}
        for place, (search, seed) in enumerate(item.runs(curves.ground.config.seeds)):
            row = [str(budget), item.label, f"`{search}`", str(seed), f"{training_calls(search):,}"]
            for name, found in sides.items():
                growth = found[item.label].runs[place].growth
                row.append(_cell(name, float(growth.found(name, budget)[0])))
            for name, other in product(COMPARED, others):
                own = sides[name][item.label].runs[place : place + 1]
                factor = times(curves, own, sides[name][other], budget, name)
                row.append(number(factor, 2) if item == curves.subject else "")
            rows.append(row)
    return markdown_table(head, rows)


def _out(curves: Curves) -> list[str]:
    places = list(product(curves.config.budgets, COMPARED))
    by_operator: dict[str, dict[tuple[int, str], Line]] = {}
    for line in curves.operators_out:
        by_operator.setdefault(line.without, {})[line.budget, line.measure] = line
    return markdown_table(
        ["without", *(f"{MEASURES[measure]}, {budget} calls" for budget, measure in places)],
        (
            [f"`{name}`", *(number(found[place].ratio or Rate(None), 2) for place in places)]
            for name, found in by_operator.items()
        ),
    )


def _curves(curves: Curves) -> list[str]:
    """Return a table with the means over runs for each search, whole and until broken."""
    points: dict[tuple[str, bool, int], list[Point]] = {}
    for point in _points(curves):
        key = (point.contender.label, point.course.until_broken, point.calls_a_turn)
        if point.course.budget == max(curves.config.budgets):
            points.setdefault(key, []).append(point)
    names = ("calls", *curves.measures)
    head = ["search", "way", "calls a turn", "calls", *(MEASURES[name] for name in curves.measures)]
    return markdown_table(
        head,
        (
            [label, WAYS[until], str(calls)] + [_mean_cell(found, name) for name in names]
            for (label, until, calls), found in points.items()
        ),
    )


def _mean_cell(points: Sequence[Point], measure: str) -> str:
    return _cell(measure, mean([point.found(measure) for point in points]))


def _cell(measure: str, value: float) -> str:
    if measure == "failing_mass":
        return f"{value:.3g}"
    return f"{value:,.0f}" if measure == "calls" else f"{value:.1f}"


_EXAMPLES = """\
  dstfuzz experiment curves --model trade --data PATH --split test --output DIR \\
      --searches random,near-value,agent:A,agent:B,agent:C"""
_SEARCHES = "random,near-value"


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    config = CurvesConfig(**parse_arguments(given, CurvesConfig))
    config.check()
    all_right = {"all_right": True, "shrink": True}
    ground, folder = begin({**given, **all_right}, config.contenders, "curves", arguments)
    hand_out(tables(run_curves(ground, config)), folder)
    return 0


def _parser() -> Parser:
    parser = ground_parser("curves", __doc__ or "", _EXAMPLES)
    parser.shared("validity", "noise", "slip_rate", "edits")
    comparison_options(parser)
    parser.value(
        "--searches",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help=f"searches to compare (default: {_SEARCHES})",
        dest="contenders",
        default=_SEARCHES,
    )
    subject = "the search with which all others are compared (default: the last)"
    parser.value("--subject", str, "LABEL", help=subject)
    budgets = "numbers of calls per turn, on average, at which to compare (default: 8,32)"
    parser.value("--budgets", several(integer(1)), "N,...", help=budgets)
    parser.value(
        "--k",
        _ks,
        "K,LABEL=K,...",
        help="number of transformations in a variant; LABEL=K sets it for one search, as in "
        "3,random=6 (default: 3)",
        dest="ks",
    )
    parser.value("--keep", _ids, "IDS", help="use only these dialogues: ids, or a file of ids")
    parser.value("--leave-out", _ids, "IDS", help="exclude these dialogues: ids, or a file of ids")
    parser.option(
        "--each-operator-out",
        action="store_true",
        help="for each operator, compare with random once more without this operator",
    )
    return parser


def _ks(text: str) -> Mapping[str, int]:
    """Read numbers of transformations by label, such as ``3,random=6``.

    The label of 3 is ``""``.
    """
    found = {"": 3}
    for part in text.split(","):
        label, _, number = part.strip().rpartition("=")
        (found[label],) = ks(number)
    return found


def _ids(text: str) -> tuple[str, ...]:
    """Read dialogue ids separated by commas, or from a file."""
    path = Path(text).expanduser()
    listed = read_text(path, "list of dialogues") if names_file(text) else text
    return tuple(dict.fromkeys(listed.replace(",", " ").split()))
