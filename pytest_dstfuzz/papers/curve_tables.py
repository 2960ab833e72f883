"""The tables of searches at equal calls: Markdown for people, CSV for drawings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from pytest_dstfuzz.agents.trained import training_calls
from pytest_dstfuzz.config import PROFILES
from pytest_dstfuzz.papers.contenders import Contender, mean
from pytest_dstfuzz.papers.courses import WAYS, Course, Run
from pytest_dstfuzz.papers.equal_calls import (
    Curves,
    Line,
    Side,
    break_even,
    mean_training,
    times,
)
from pytest_dstfuzz.papers.formatting import (
    NONE,
    Columns,
    csv_number,
    csv_text,
    markdown_table,
    number,
    rate_columns,
    share,
    yes_no,
)
from pytest_dstfuzz.papers.growth import COMPARED, MEASURES, shares_by_operator
from pytest_dstfuzz.papers.resampling import Rate

#: Points of the curves, in calls a turn, beside the budgets.
_POINTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: Operators that a table of shares has.
_MOST: Final = 8


class Point(NamedTuple):
    """One point of the curve of one run."""

    contender: Contender
    course: Course
    run: Run
    calls_a_turn: int

    def found(self, measure: str) -> float:
        """Return what had been found; see `Growth.found`."""
        return float(self.run.growth.found(measure, self.calls_a_turn)[0])


def _found_cell(measure: str, point: Point) -> str:
    return csv_number(point.found(measure))


#: Columns of ``curves.csv``: a line a search, training and number of calls.
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
#: Columns of ``curves-ratios.csv``: a line a budget, measure and search, and one for each operator
#: that is left out.
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
    """Return the texts of the files, by name."""
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
        # What holds all budgets is listed once.
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
        lines += [f"- without {', '.join(left_out)}"]
    lines += _notes(curves)
    for budget in budgets:
        lines += ["", f"## {budget} calls a turn"]
        for measure in curves.measures:
            lines += ["", *_headline(curves, budget, measure)]
        lines += ["", *_by_operator(curves, budget), *_break_even(curves, budget)]
    lines += ["", "## Each training", "", *_trainings(curves)]
    if curves.operators_out:
        lines += ["", f"## {subject} / random with an operator left out", ""]
        lines += ["Of the operators that a violation of one of them has:", "", *_out(curves)]
    lines += ["", "## Curves", "", *_curves(curves)]
    return "\n".join(lines) + "\n"


def _notes(curves: Curves) -> list[str]:
    noise = PROFILES[curves.ground.config.settings.variant.validity].noise
    return [
        (
            "- calls: contexts that the tracker was asked for, clean ones and those that find the "
            "cause of a violation included, those of shrinking left out; all turns are given one "
            "variant, then two, and so on, and a campaign is cut where its calls are spent; one "
            "that ends before, as its search proposes nothing more, keeps what it had found"
        ),
        (
            "- each search in the better of two ways: whole, all turns alike, or until broken, "
            "where a turn is left alone once it is broken"
        ),
        (
            "- distinct weaknesses: pairs of a weakness and the slot whose change says most, read "
            "from violations after shrinking"
            + (
                "; failing mass: of 1,000 user turns, how many are typed as one of the violations "
                "found, a lower bound; a few of them have nearly all of it"
                if noise
                else ""
            )
        ),
        (
            f"- ratio: {curves.subject.label} / search, a paired bootstrap over dialogues; each "
            "resample is cut where its own calls are spent and counts the distinct weaknesses of "
            "its own dialogues"
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
        "Share of the violations / of the distinct weaknesses that an operator has part in:",
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
                for name in order[:_MOST]
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
    return [
        "",
        f"Trained in {training:,.0f} calls, {curves.subject.label} has broken more turns than a "
        "search that spent as many calls in all, after so many calls of testing: "
        + (", ".join(cells) or NONE)
        + ".",
    ]


def _trainings(curves: Curves) -> list[str]:
    """Return each run of each search at each budget, those of the subject beside the others."""
    subject = curves.subject.label
    others = [item.label for item in curves.config.contenders if item != curves.subject]
    head = ["calls a turn", "search", "training", "seed", "calls of training"]
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
    """Return the means over runs, each search whole and until broken."""
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
