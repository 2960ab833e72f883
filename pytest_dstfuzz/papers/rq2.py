"""The second question of the thesis: how much better than random is a trained agent?

``dstfuzz experiment rq2 --model trade --data PATH --search agent:PATH`` uses only held-out
dialogues that the tracker gets right at every turn. No agent was trained on them. It runs the agent
and random sampling with k = 1 to 6 combined transformations, and prints the tables. With
``--output``, they are written as ``rq2.md`` and ``rq2.csv``, with charts. Policies of several
training seeds count as one search, see `rq3`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

from pytest_dstfuzz.config import PROFILES
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers.command_line import (
    begin,
    comparison_parser,
    hand_out,
    parse_arguments,
    say,
)
from pytest_dstfuzz.papers.comparison import (
    AGENT,
    COUNT_COLUMNS,
    RATE_COLUMNS,
    RATE_NOTES,
    Contender,
    Contest,
    MeanFigures,
    SearchComparison,
    inertia_share,
    parse_contenders,
)
from pytest_dstfuzz.papers.formatting import (
    Columns,
    Rate,
    csv_number,
    csv_text,
    format_published,
    markdown_table,
    number,
    rate_text,
    share,
)
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.charts import Chart, ChartLine, line_charts

#: Results of the thesis for TRADE, MultiWOZ 2.1 (figures 4.1 and 4.2, appendix A; table 4.6): k,
#: failure and valid rate of its agent, inertia of its agent and of random sampling. The thesis has
#: no table with the rates of random sampling for TRADE.
PUBLISHED = (
    ("1", "8.2 %", "96.0 %", "1.88", "3.35"),
    ("2", "17.2 %", "98.3 %", "1.57", "3.35"),
    ("3", "16.3 %", "99.4 %", "1.49", "3.36"),
    ("4", "20.2 %", "99.4 %", "1.66", "3.37"),
    ("5", "20.2 %", "99.4 %", "2.02", "3.36"),
    ("6", "23.5 %", "99.1 %", "2.06", "3.36"),
)
_EXAMPLES = """\
  dstfuzz experiment rq2 --model trade --data PATH --output DIR \\
      --search agent:A,agent:B,agent:C
  dstfuzz experiment rq2 --model trade --data PATH --search agent:A,gini=agent:D"""


@dataclass(frozen=True, slots=True)
class Rq2Config:
    """The settings of the experiment."""

    contenders: tuple[Contender, ...]  #: Random sampling is added.
    validities: tuple[str, ...] = ("edit-rate", "strict")
    variants: int = 5
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    @property
    def compared(self) -> tuple[Contender, ...]:
        """The compared searches. Random sampling is added if it is missing."""
        for item in self.contenders:
            if not item.associates:
                raise UserError(
                    f"rq2 varies the number of transformations, which {item.label!r} does not "
                    "use: compare it with rq3"
                )
        if any(item.label == "random" for item in self.contenders):
            return self.contenders
        return (*self.contenders, Contender("random", ("random",)))


@dataclass(frozen=True, slots=True)
class Rq2Row:
    """The results of a search with k transformations: of one run, or the mean over its runs."""

    validity: str
    k: int
    label: str
    run: tuple[str, int] | None  #: Search and seed. ``None`` means all runs.
    means: MeanFigures


@dataclass(frozen=True, slots=True)
class Rq2Table:
    """The tables with their configuration and data."""

    ground: SearchComparison
    config: Rq2Config
    rows: tuple[Rq2Row, ...]

    def of(self, validity: str, *, single: bool) -> list[Rq2Row]:
        """Return the rows of a profile by k: single runs, or means over all runs."""
        return [
            row for row in self.rows if row.validity == validity and (row.run is not None) == single
        ]


def run_rq2(ground: SearchComparison, config: Rq2Config) -> Rq2Table:
    """Run the campaigns, and compute the tables."""
    wanted = {
        (validity, k, item): ground.settings(Contest(validity, config.variants), item, k)
        for validity, k, item in product(config.validities, config.ks, config.compared)
    }
    ground.campaigns.run([*chain.from_iterable(wanted.values())])
    rows: list[Rq2Row] = []
    for (validity, k, item), settings in wanted.items():
        runs, figures = item.runs(ground.config.seeds), ground.campaigns.figures(settings)
        every = MeanFigures.of(ground.resamples, figures)
        rows.append(Rq2Row(validity, k, item.label, None, every))
        if len(runs) > 1:
            rows += [
                Rq2Row(validity, k, item.label, run, MeanFigures.of(ground.resamples, [found]))
                for run, found in zip(runs, figures, strict=True)
            ]
    return Rq2Table(ground, config, tuple(rows))


#: Columns of the CSV file, with a line per profile, k and search (all runs), and one per run.
COLUMNS: Columns = {
    "validity": lambda row: row.validity,
    "k": lambda row: row.k,
    "search": lambda row: row.label,
    "run": lambda row: "all" if row.run is None else row.run[0],
    "seed": lambda row: "" if row.run is None else row.run[1],
    **COUNT_COLUMNS,
    **RATE_COLUMNS,
    "inertia": lambda row: csv_number(row.means.inertia),
    "inertia_share": lambda row: csv_number(inertia_share(row.means.inertia, row.k)),
}


def tables(table: Rq2Table, *, charts: bool) -> dict[str, str]:
    """Return the contents of the output files by name. The first file shows the charts, if any."""
    texts = {"rq2.md": _markdown(table, charts=charts), "rq2.csv": csv_text(COLUMNS, table.rows)}
    if charts:
        texts |= {_chart_name(name): _chart(table, name) for name in table.config.validities}
    return texts


def _markdown(table: Rq2Table, *, charts: bool) -> str:
    config = table.config
    lines = ["# Searches over the number of transformations (RQ2)", "", *table.ground.header()]
    lines += [
        (
            f"- {format_count(config.variants, 'variant')} per turn, also after a violation; k: "
            "number of transformations that a variant combines"
        ),
        (
            "- valid rate: share of the variants that are valid after redraws; per draw: share of "
            "all draws that are valid"
        ),
        *RATE_NOTES,
        "- edit_w, edit_c: mean edit rates of the valid variants, by words and by characters",
        (
            "- inertia: how far the drawn parameters of the transformations spread (the sum of "
            "their variances), as a share of the value for uniform sampling with the same k; "
            "unlike in "
            "the thesis, parameters that have no effect do not count"
        ),
    ]
    for validity in config.validities:
        lines += ["", f"## Validity profile `{validity}`", ""]
        if charts:
            lines += [f"![Rates over k, {validity}]({_chart_name(validity)})", ""]
        head = ["k", "search", "valid rate", "per draw", "failure rate", "failure rate (thesis)"]
        head += ["yield", "turns broken per 1,000 calls", "inertia", "edit_w", "edit_c"]
        head += ["vetoed by `strict`"] if not PROFILES[validity].locks else []
        lines += markdown_table(head, map(_cells, table.of(validity, single=False)))
        if single := table.of(validity, single=True):
            head = ["k", "search", "seed", "valid rate", "failure rate", "failure rate (thesis)"]
            head += ["turns broken per 1,000 calls", "inertia"]
            lines += ["", "Each run:", "", *markdown_table(head, map(_single_cells, single))]
    head = ["k", "agent: failure rate", "valid rate", "inertia", "random: inertia"]
    lines += format_published("The thesis, TRADE on MultiWOZ 2.1:", head, PUBLISHED)
    return "\n".join(lines) + "\n"


def _chart(table: Rq2Table, validity: str) -> str:
    """Draw the valid rate and the failure rate over k as SVG."""
    rows = table.of(validity, single=False)
    labels = dict.fromkeys(row.label for row in rows)

    def line(label: str, name: str) -> ChartLine:
        return ChartLine(label, [row.means.rates[name] for row in rows if row.label == label])

    return line_charts(
        [
            Chart(
                f"{title}, {validity}",
                table.config.ks,
                "associated transformations (k)",
                [line(label, name) for label in labels],
            )
            for title, name in (
                ("valid rate after redraws", "valid_rate"),
                ("failure rate", "failure_rate"),
                ("failure rate (thesis)", "thesis_failure_rate"),
            )
        ]
    )


def _chart_name(validity: str) -> str:
    return f"rq2-{validity}.svg"


def _cells(row: Rq2Row) -> list[str]:
    means, rates = row.means, row.means.rates
    names = ("valid_rate", "valid_rate_per_draw", "failure_rate", "thesis_failure_rate", "yield")
    cells = [
        str(row.k),
        row.label,
        *(rate_text(rates[name]) for name in names),
        number(means.broken_per_1000_calls),
        share(inertia_share(means.inertia, row.k), 0),
        *(number(Rate(rates[name].value), 3) for name in ("edit_w", "edit_c")),
    ]
    return cells if PROFILES[row.validity].locks else [*cells, rate_text(rates["strict_vetoes"])]


def _single_cells(row: Rq2Row) -> list[str]:
    search, seed = row.run or ("", 0)
    names = ("valid_rate", "failure_rate", "thesis_failure_rate")
    return [
        str(row.k),
        search if search.startswith(row.label) else f"{row.label} ({search})",
        str(seed),
        *(rate_text(row.means.rates[name]) for name in names),
        number(row.means.broken_per_1000_calls),
        share(inertia_share(row.means.inertia, row.k), 0),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    config = Rq2Config(**parse_arguments(given, Rq2Config))
    # Find searches that cannot be compared before the tracker is measured.
    say(f"comparing {', '.join(item.label for item in config.compared)}")
    ground, folder = begin(given, config.compared, "rq2", arguments)
    hand_out(tables(run_rq2(ground, config), charts=folder is not None), folder)
    return 0


def _parser() -> Parser:
    parser = comparison_parser("rq2", __doc__ or "", _EXAMPLES)
    parser.shared("variants")
    parser.value(
        "--search",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help="searches to compare (default: agent); random is added",
        dest="contenders",
        default=AGENT,
    )
    return parser
