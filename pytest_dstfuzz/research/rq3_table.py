"""The comparison of `rq3_measure` as Markdown and CSV, beside what the thesis published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.action import ActionSpace, uniform_inertia
from pytest_dstfuzz.research.contenders import RATES
from pytest_dstfuzz.research.formatting import (
    NONE,
    bare_percent,
    csv_cells,
    csv_columns,
    csv_number,
    csv_text,
    markdown_table,
    number,
    percent,
)
from pytest_dstfuzz.research.resampling import Rate
from pytest_dstfuzz.research.rq3_measure import Contest, Rq3Row, Rq3Table

#: Table 4.7 of the thesis, MultiWOZ 2.1: tracker, then failure and valid rate of each.
PUBLISHED = (
    ("TRADE", "23.5 %", "99.1 %", "33.3 %", "70.1 %"),
    ("SimpleTOD", "23.3 %", "98.2 %", "45.0 %", "71.8 %"),
)
#: Rates that the CSV file has as they are.
_RATES = tuple(name for name in RATES if name != "broken_per_call")
COLUMNS = (
    "validity",
    "until_broken",
    "budget",
    "search",
    "k",
    "best_k",
    "runs",
    "turns",
    "calls",
    "turns_broken",
    *csv_columns("broken_per_1000_calls"),
    *csv_columns("ratio"),
    *csv_columns("broken_alone"),
    *(column for name in _RATES for column in csv_columns(name)),
    "inertia_share",
    "weaknesses",
    "most_frequent_weakness",
    "most_frequent_weakness_name",
)
EQUAL_CALLS_COLUMNS = (
    "validity",
    "until_broken",
    "budget",
    "search",
    "k",
    "runs",
    "variants_a_turn",
    "calls",
    "turns_broken",
    "subject",
    "subject_calls",
    "subject_turns_broken",
    *csv_columns("ratio"),
)


def write_rq3(table: Rq3Table, folder: Path) -> tuple[Path, ...]:
    """Write the tables into ``folder``, which is made where it is missing.

    ``rq3.md`` has all of it; ``rq3.csv`` has a line a search and k, ``rq3-equal-calls.csv``
    a line a search that is compared with the subject at the subject's number of calls.

    Raises:
        UserError: the files cannot be written.
    """
    texts = {
        "rq3.md": markdown(table),
        "rq3.csv": figures(table),
        "rq3-equal-calls.csv": equal_calls_figures(table),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return tuple(folder / name for name in texts)


def markdown(table: Rq3Table) -> str:
    """Return the comparison with its header and notes."""
    subject = table.subject.label
    lines = ["# Searches at equal budgets (RQ3)", "", *table.ground.header(), *_notes(subject)]
    lines += ["", f"## Turns broken for every call: {subject} as a multiple of the others", ""]
    others = [item.label for item in table.config.contenders if item != table.subject]
    lines += markdown_table(
        ["profile", "counting", "budget", *others],
        (
            [
                contest.validity,
                _counting(contest),
                str(contest.budget),
                *(number(table.row(contest, label).ratio or Rate(None), 2) for label in others),
            ]
            for contest in table.config.contests
        ),
    )
    for contest in table.config.contests:
        lines += _section(table, contest)
    lines += ["", "## Published", "", "Table 4.7 of the thesis, MultiWOZ 2.1:", ""]
    head = ["tracker", "agent: failure rate", "valid rate", "DialTest: failure rate", "valid rate"]
    lines += markdown_table(head, PUBLISHED)
    return "\n".join(lines) + "\n"


def figures(table: Rq3Table) -> str:
    """Return one line a search and k."""
    uniform = uniform_inertia(ActionSpace().dimension)
    rows = [
        [
            row.contest.validity,
            "yes" if row.contest.until_broken else "no",
            row.contest.budget,
            row.label,
            "" if row.k is None else row.k,
            "yes" if row.best else "no",
            row.runs,
            row.turns,
            csv_number(row.calls, 1),
            csv_number(row.turns_broken, 1),
            *csv_cells(row.broken_per_1000_calls),
            *csv_cells(row.ratio),
            *csv_cells(row.alone),
            *(cell for name in _RATES for cell in csv_cells(row.rates[name])),
            csv_number(row.inertia / uniform),
            csv_number(row.weaknesses.number, 1),
            csv_number(row.weaknesses.most_frequent),
            row.weaknesses.name,
        ]
        for row in table.rows
    ]
    return csv_text(COLUMNS, rows)


def equal_calls_figures(table: Rq3Table) -> str:
    """Return one line a search, at as many calls as the subject made."""
    rows = [
        [
            contest.validity,
            "yes" if contest.until_broken else "no",
            contest.budget,
            row.label,
            "" if row.k is None else row.k,
            row.runs,
            csv_number(equal.variants, 2),
            csv_number(equal.calls, 1),
            csv_number(equal.turns_broken, 1),
            subject.label,
            csv_number(subject.calls, 1),
            csv_number(subject.turns_broken, 1),
            *csv_cells(equal.ratio),
        ]
        for contest in table.config.contests
        for subject in [table.row(contest, table.subject.label)]
        for item in table.config.contenders
        for row in [table.row(contest, item.label)]
        if (equal := row.equal_calls) is not None
    ]
    return csv_text(EQUAL_CALLS_COLUMNS, rows)


def _notes(subject: str) -> list[str]:
    return [
        (
            "- budget: variants that a search gets run at a turn; until broken: a turn is left "
            "alone once it is broken (later turns see it clean), so that rates of variants tell "
            "when turns ended; whole: the budget is spent on every turn. Calls are the contexts "
            "that the tracker was asked for, clean ones and those that find the cause of a "
            "violation included"
        ),
        (
            "- each search at the k at which its first run breaks most turns for every call; "
            f"{subject} / search: ratio of the turns broken for every call, a paired bootstrap; "
            f"not broken: share of the turns that {subject} broke which this search did not; "
            f"as many calls: the search's campaigns cut where they had made as many calls as "
            f"{subject}, all turns having been given one variant, then two, and so on"
        ),
        (
            "- weaknesses: different sets of changed slots with their new values, and the share "
            "of the violations that the most frequent one has; counted the thesis' way = "
            "(violations + carried) / valid"
        ),
    ]


def _section(table: Rq3Table, contest: Contest) -> list[str]:
    subject = table.subject.label
    counting = _counting(contest)
    lines = ["", f"## `{contest.validity}`, {contest.budget} variants a turn, {counting}", ""]
    rows = [table.row(contest, item.label) for item in table.config.contenders]
    head = ["search", "k", "turns broken per 1,000 calls", f"{subject} / search"]
    head += [f"not broken, of {subject}'s", "turns broken", "calls", "runs"]
    lines += markdown_table(head, (_compared(row) for row in rows))
    lines += ["", *_at_equal_calls(rows, subject)]
    head = ["search", "valid rate", "per draw", "failure rate", "the thesis' way", "yield"]
    head += ["cause: turn", "context", "both", "weaknesses", "most frequent"]
    if contest.validity != "strict":
        head += ["`strict` would veto", "or their context's edits"]
    lines += ["", *markdown_table(head, (_described(row) for row in rows))]
    if len(table.config.ks) > 1:
        lines += ["", "Turns broken per 1,000 calls by k (the best one over all runs):", ""]
        head = ["search", *(f"k = {k}" for k in table.config.ks)]
        lines += markdown_table(
            head,
            (
                [item.label, *(number(row.broken_per_1000_calls) for row in by_k)]
                for item in table.config.contenders
                if len(by_k := table.of(contest, item.label)) > 1
            ),
        )
    return lines


def _compared(row: Rq3Row) -> list[str]:
    return [
        row.label,
        _k(row),
        number(row.broken_per_1000_calls),
        "" if row.ratio is None else number(row.ratio, 2),
        "" if row.alone is None else percent(row.alone),
        f"{row.turns_broken:.0f} of {row.turns:,}",
        f"{row.calls:,.0f}",
        str(row.runs),
    ]


def _at_equal_calls(rows: Sequence[Rq3Row], subject: str) -> list[str]:
    return markdown_table(
        [
            f"with as many calls as {subject}",
            "variants a turn",
            "calls",
            "turns broken",
            f"{subject} / search",
        ],
        (
            [
                row.label,
                f"{equal.variants:.1f}",
                f"{equal.calls:,.0f}",
                f"{equal.turns_broken:.0f} of {row.turns:,}",
                number(equal.ratio, 2),
            ]
            for row in rows
            if (equal := row.equal_calls) is not None
        ),
    )


def _described(row: Rq3Row) -> list[str]:
    rates = row.rates
    cells = [
        row.label,
        percent(rates["valid_rate"]),
        bare_percent(rates["valid_rate_per_draw"].value),
        *(percent(rates[name]) for name in ("failure_rate", "thesis_failure_rate", "yield")),
        *(bare_percent(rates[f"cause_{cause}"].value) for cause in ("turn", "context", "both")),
        f"{row.weaknesses.number:.0f}",
        bare_percent(row.weaknesses.most_frequent),
    ]
    if row.contest.validity != "strict":
        cells += [percent(rates[f"strict_vetoes{name}"]) for name in ("", "_with_context")]
    return cells


def _k(row: Rq3Row) -> str:
    return NONE if row.k is None else str(row.k)


def _counting(contest: Contest) -> str:
    return "until broken" if contest.until_broken else "whole"
