"""The figures of `rq2_measure` as Markdown, CSV and charts, beside those of the thesis."""

from __future__ import annotations

from pathlib import Path

from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.action import ActionSpace, uniform_inertia
from pytest_dstfuzz.research.contenders import RATES
from pytest_dstfuzz.research.formatting import (
    bare_percent,
    csv_cells,
    csv_columns,
    csv_number,
    csv_text,
    markdown_table,
    number,
    percent,
)
from pytest_dstfuzz.research.line_chart import Chart, ChartLine, charts_svg
from pytest_dstfuzz.research.resampling import Rate
from pytest_dstfuzz.research.rq2_measure import Rq2Row, Rq2Table

#: The thesis on TRADE, MultiWOZ 2.1 (figures 4.1 and 4.2, appendix A; table 4.6): k, then
#: failure and valid rate of its agent, inertia of its agent and of random sampling. It has
#: no table of the rates of random sampling for TRADE.
PUBLISHED = (
    ("1", "8.2 %", "96.0 %", "1.88", "3.35"),
    ("2", "17.2 %", "98.3 %", "1.57", "3.35"),
    ("3", "16.3 %", "99.4 %", "1.49", "3.36"),
    ("4", "20.2 %", "99.4 %", "1.66", "3.37"),
    ("5", "20.2 %", "99.4 %", "2.02", "3.36"),
    ("6", "23.5 %", "99.1 %", "2.06", "3.36"),
)
_UNIFORM = uniform_inertia(ActionSpace().dimension)
_RATES = tuple(name for name in RATES if name != "broken_per_call")
COLUMNS = (
    "validity",
    "k",
    "search",
    "run",
    "seed",
    "turns",
    "calls",
    "turns_broken",
    *csv_columns("broken_per_1000_calls"),
    *(column for name in _RATES for column in csv_columns(name)),
    "inertia",
    "inertia_share",
)


def write_rq2(table: Rq2Table, folder: Path) -> tuple[Path, ...]:
    """Write ``rq2.md``, ``rq2.csv`` and a chart for each profile into ``folder``.

    Raises:
        UserError: the files cannot be written.
    """
    texts = {"rq2.md": markdown(table, charts=True), "rq2.csv": figures(table)}
    texts |= {_chart_name(validity): chart(table, validity) for validity in table.config.validities}
    for name, text in texts.items():
        write_text(folder / name, text)
    return tuple(folder / name for name in texts)


def markdown(table: Rq2Table, *, charts: bool) -> str:
    """Return the tables with their header and notes.

    Args:
        table: the figures.
        charts: whether the charts lie beside the file, to be shown in it.
    """
    config = table.config
    lines = ["# Searches over the number of transformations (RQ2)", "", *table.ground.header()]
    lines += [
        (
            f"- {config.variants} variants a turn, all of them run; valid rate: after redraws, "
            "and of all draws; counted the thesis' way = (violations + carried) / valid; edit "
            "rates: means over the valid variants"
        ),
        f"- inertia of all draws, as a share of that of uniform sampling ({_UNIFORM:.2f})",
    ]
    for validity in config.validities:
        lines += ["", f"## Validity profile `{validity}`", ""]
        if charts:
            lines += [f"![Rates over k, {validity}]({_chart_name(validity)})", ""]
        lines += _means(table, validity)
        if single := table.single(validity):
            head = ["k", "search", "seed", "valid rate", "failure rate", "the thesis' way"]
            head += ["turns broken per 1,000 calls", "inertia"]
            lines += ["", "Run by run:", "", *markdown_table(head, map(_single, single))]
    lines += ["", "## Published", "", "The thesis, TRADE on MultiWOZ 2.1:", ""]
    head = ["k", "agent: failure rate", "valid rate", "inertia", "random: inertia"]
    lines += markdown_table(head, PUBLISHED)
    return "\n".join(lines) + "\n"


def figures(table: Rq2Table) -> str:
    """Return one line a profile, k and search (all runs), and one a run."""
    rows = [
        [
            row.validity,
            row.k,
            row.label,
            "all" if row.run is None else row.run[0],
            "" if row.run is None else row.run[1],
            row.turns,
            csv_number(row.calls, 1),
            csv_number(row.turns_broken, 1),
            *csv_cells(row.broken_per_1000_calls),
            *(cell for name in _RATES for cell in csv_cells(row.rates[name])),
            csv_number(row.inertia),
            csv_number(row.inertia / _UNIFORM),
        ]
        for row in table.rows
    ]
    return csv_text(COLUMNS, rows)


def chart(table: Rq2Table, validity: str) -> str:
    """Return the valid and the failure rate over k, as SVG."""
    rows = table.means(validity)
    labels = dict.fromkeys(row.label for row in rows)
    return charts_svg(
        [
            Chart(
                f"{title}, {validity}",
                table.config.ks,
                "associated transformations (k)",
                [
                    ChartLine(label, [row.rates[name] for row in rows if row.label == label])
                    for label in labels
                ],
            )
            for title, name in (
                ("valid rate after redraws", "valid_rate"),
                ("failure rate", "failure_rate"),
                ("failure rate, the thesis' way", "thesis_failure_rate"),
            )
        ]
    )


def _chart_name(validity: str) -> str:
    return f"rq2-{validity}.svg"


def _means(table: Rq2Table, validity: str) -> list[str]:
    head = ["k", "search", "valid rate", "per draw", "failure rate", "the thesis' way", "yield"]
    head += ["turns broken per 1,000 calls", "inertia", "edit_w", "edit_c"]
    if validity != "strict":
        head.append("`strict` would veto")
    return markdown_table(head, (_mean(row) for row in table.means(validity)))


def _mean(row: Rq2Row) -> list[str]:
    rates = row.rates
    cells = [
        str(row.k),
        row.label,
        percent(rates["valid_rate"]),
        percent(rates["valid_rate_per_draw"]),
        *(percent(rates[name]) for name in ("failure_rate", "thesis_failure_rate", "yield")),
        number(row.broken_per_1000_calls),
        bare_percent(row.inertia / _UNIFORM, 0),
        *(number(Rate(rates[name].value), 3) for name in ("edit_w", "edit_c")),
    ]
    return cells if row.validity == "strict" else [*cells, percent(rates["strict_vetoes"])]


def _single(row: Rq2Row) -> list[str]:
    search, seed = row.run or ("", 0)
    names = ("valid_rate", "failure_rate", "thesis_failure_rate")
    return [
        str(row.k),
        search if search.startswith(row.label) else f"{row.label} ({search})",
        str(seed),
        *(percent(row.rates[name]) for name in names),
        number(row.broken_per_1000_calls),
        bare_percent(row.inertia / _UNIFORM, 0),
    ]
