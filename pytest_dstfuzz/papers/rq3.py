"""Which search breaks the most turns per tracker call, with equally many variants?

``dstfuzz experiment rq3 --model trade --data PATH --searches random,agent:PATH`` uses only held-out
dialogues that the tracker gets right at every turn. No agent was trained on them. All searches
choose from the same edits and get equally many variants per turn. The command prints the table.
With ``--output``, it also writes ``rq3.md`` and ``rq3.csv``.

Policies of several training seeds count as one search: ``agent:A,agent:B,agent:C`` are together
called ``agent``. To keep searches apart, name them: ``other=agent:D,other=agent:E``. Each search is
compared at its best number of transformations. A number that was chosen on the same dialogues makes
its rate a little too high: run the command on another split first, and pass its ``rq3.csv`` to
``--k-from``.

This is the comparison of the thesis. For equally many variants, searches make different numbers of
calls. The experiment `curves` compares searches at equal calls, and by the distinct weaknesses that
they find.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from pytest_dstfuzz.config import PROFILES
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers.command_line import (
    begin,
    comparison_parser,
    hand_out,
    parse_arguments,
    several,
    switches,
)
from pytest_dstfuzz.papers.comparison import (
    COUNT_COLUMNS,
    RATE_COLUMNS,
    RATE_NOTES,
    Against,
    CampaignFigures,
    Contender,
    Contest,
    MeanFigures,
    SearchComparison,
    Weaknesses,
    inertia_share,
    parse_contenders,
    subject_of,
    weaknesses_of,
)
from pytest_dstfuzz.papers.formatting import (
    NONE,
    Columns,
    csv_number,
    csv_text,
    format_published,
    markdown_table,
    number,
    rate_columns,
    rate_text,
    share,
    yes_no,
)
from pytest_dstfuzz.printable import format_count

#: Table 4.7 of the thesis, MultiWOZ 2.1: tracker, then failure and valid rate of each search.
PUBLISHED = (
    ("TRADE", "23.5 %", "99.1 %", "33.3 %", "70.1 %"),
    ("SimpleTOD", "23.3 %", "98.2 %", "45.0 %", "71.8 %"),
)
_EXAMPLES = """\
  dstfuzz experiment rq3 --model trade --data PATH --output DIR \\
      --searches random,near-value,greedy,dialtest,agent:A,agent:B,agent:C"""
_SEARCHES = "random,near-value,greedy,dialtest"


@dataclass(frozen=True, slots=True)
class ChosenKs:
    """The best k of each search in an earlier table, which was made on other dialogues."""

    file: Path
    best: Mapping[tuple[str, ...], int] = field(repr=False)  #: Contest and search -> k.

    def k(self, contest: Contest, item: Contender) -> int:
        """Return the best k of a search. Raise `UserError` if the table does not have it."""
        if not item.associates:
            return 1  # The search ignores it.
        place = (contest.validity, yes_no(contest.until_broken), str(contest.budget), item.label)
        try:
            return self.best[place]
        except KeyError:
            validity, until_broken, budget, search = place
            raise UserError(
                f"{self.file} has no best k for --searches {search} with --validity {validity}, "
                f"--until-broken {until_broken} and --budgets {budget}: make this table with the "
                "same options, on other dialogues"
            ) from None


def read_chosen_ks(text: str) -> ChosenKs:
    """Read the best numbers of transformations from an ``rq3.csv``."""
    try:
        with Path(text).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        names = ("validity", "until_broken", "budget", "search")
        # A search that ignores k has none.
        best = {
            tuple(row[name] for name in names): int(row["k"])
            for row in rows
            if row["best_k"] == yes_no(True) and row["k"]
        }
    except (OSError, ValueError, KeyError, csv.Error) as fault:
        raise ValueError(f"must be an rq3.csv of this command ({fault})") from None
    if not best:
        raise ValueError("must be an rq3.csv of this command, and has no row with a best k")
    return ChosenKs(Path(text), best)


@dataclass(frozen=True, slots=True)
class Rq3Config:
    """The settings of the experiment."""

    contenders: tuple[Contender, ...]
    budgets: tuple[int, ...] = (8, 32)
    validities: tuple[str, ...] = ("strict",)
    until_broken: tuple[bool, ...] = (True, False)
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    chosen: ChosenKs | None = None  #: Numbers that replace ``ks``, see `read_chosen_ks`.

    def ks_of(self, contest: Contest, item: Contender) -> tuple[int, ...]:
        """Return the numbers of transformations that a search tries in a contest."""
        return item.ks(self.ks if self.chosen is None else [self.chosen.k(contest, item)])

    @property
    def contests(self) -> tuple[Contest, ...]:
        """All combinations of profile, counting and budget."""
        every = product(self.validities, self.until_broken, self.budgets)
        return tuple(Contest(validity, budget, until) for validity, until, budget in every)


@dataclass(frozen=True, slots=True)
class Rq3Row:
    """The results of one search with k transformations."""

    contest: Contest
    label: str
    k: int | None  #: ``None`` if the search does not use k.
    best: bool  #: Whether this is the best k of the search. Others have one campaign only.
    means: MeanFigures
    weaknesses: Weaknesses
    against: Against | None  #: ``None`` if k is not the best one, and for the subject itself.


@dataclass(frozen=True, slots=True)
class Rq3Table:
    """The tables with their configuration."""

    ground: SearchComparison
    config: Rq3Config
    subject: Contender
    rows: tuple[Rq3Row, ...]

    def compared(self, contest: Contest) -> list[Rq3Row]:
        """Return the row of each search at its best k."""
        return [row for row in self.rows if row.contest == contest and row.best]


def run_rq3(ground: SearchComparison, config: Rq3Config) -> Rq3Table:
    """Run the campaigns, and compare the searches.

    The first run of a search tries all k and chooses the best. The other runs use only this k.
    """
    places = [(contest, item) for contest in config.contests for item in config.contenders]

    def figures(
        contest: Contest, item: Contender, k: int, runs: int | None = None
    ) -> list[CampaignFigures]:
        return ground.campaigns.figures(ground.settings(contest, item, k)[:runs])

    def best_k(contest: Contest, item: Contender) -> int:
        """Return the k with the most turns broken per call.

        If several values of k are equally good, return the lowest.
        """

        def rate(k: int) -> float:
            (found,) = figures(contest, item, k, 1)
            return found.turns_broken / found.calls

        return max(config.ks_of(contest, item), key=rate)

    run = ground.campaigns.run
    run([ground.settings(*place, k)[0] for place in places for k in config.ks_of(*place)])
    best = {place: best_k(*place) for place in places}
    run([more for place, k in best.items() for more in ground.settings(*place, k)[1:]])
    subject = subject_of(config.contenders)
    rows = []
    for contest, item in places:
        theirs = figures(contest, subject, best[contest, subject])
        for k in config.ks_of(contest, item):
            is_best = k == best[contest, item]
            found = figures(contest, item, k, None if is_best else 1)
            compared = is_best and item != subject
            rows.append(
                Rq3Row(
                    contest=contest,
                    label=item.label,
                    k=k if item.associates else None,
                    best=is_best,
                    means=MeanFigures.of(ground.resamples, found),
                    weaknesses=weaknesses_of(found),
                    against=Against.of(ground.resamples, theirs, found) if compared else None,
                )
            )
    return Rq3Table(ground, config, subject, tuple(rows))


#: Columns of ``rq3.csv``, with a line per search and k.
COLUMNS: Columns = {
    "validity": lambda row: row.contest.validity,
    "until_broken": lambda row: yes_no(row.contest.until_broken),
    "budget": lambda row: row.contest.budget,
    "search": lambda row: row.label,
    "k": lambda row: "" if row.k is None else row.k,
    "best_k": lambda row: yes_no(row.best),
    "runs": lambda row: row.means.runs,
    **COUNT_COLUMNS,
    **rate_columns("ratio", lambda row: row.against and row.against.ratio),
    **rate_columns("broken_alone", lambda row: row.against and row.against.alone),
    **RATE_COLUMNS,
    "inertia_share": lambda row: csv_number(inertia_share(row.means.inertia, row.k)),
    "weaknesses": lambda row: csv_number(row.weaknesses.number, 1),
    "most_frequent_weakness": lambda row: csv_number(row.weaknesses.most_frequent),
    "most_frequent_weakness_name": lambda row: row.weaknesses.name,
}


def tables(table: Rq3Table) -> dict[str, str]:
    """Return the contents of the output files by name."""
    return {"rq3.md": _markdown(table), "rq3.csv": csv_text(COLUMNS, table.rows)}


def _markdown(table: Rq3Table) -> str:
    subject, contests = table.subject.label, table.config.contests
    lines = ["# Searches with equally many variants (RQ3)", "", *table.ground.header()]
    lines += _notes(subject, table.config.chosen)
    lines += ["", f"## Turns broken per call: {subject} / search", ""]
    others = [item.label for item in table.config.contenders if item != table.subject]
    lines += markdown_table(
        ["profile", "counting", "budget", *others],
        (
            [contest.validity, contest.counting, str(contest.budget)]
            + [number(row.against.ratio, 2) for row in table.compared(contest) if row.against]
            for contest in contests
        ),
    )
    for contest in contests:
        lines += _section(table, contest)
    head = ["tracker", "agent: failure rate", "valid rate", "DialTest: failure rate", "valid rate"]
    lines += format_published("Table 4.7 of the thesis, MultiWOZ 2.1:", head, PUBLISHED)
    return "\n".join(lines) + "\n"


def _notes(subject: str, chosen: ChosenKs | None) -> list[str]:
    table = "of its first run" if chosen is None else f"in `{chosen.file}`"
    return [
        (
            "- budget: variants per turn. Whole: every turn uses the whole budget. Until broken: "
            "a turn gets no more variants after its first violation, and stays clean in the "
            "contexts of later turns. So the rates of variants depend on when turns end"
        ),
        (
            "- calls: number of contexts that the tracker answered. Clean turns count, and "
            "contexts that show the cause of a violation. Searches need different numbers of "
            "calls for equally many variants. `dstfuzz experiment curves` compares them at equal "
            "calls"
        ),
        (
            "- k: number of transformations that a variant combines. Each search uses the best k "
            f"{table}, by turns broken per call"
        ),
        (
            f"- {subject} / search: turns broken per call by {subject}, divided by those of the "
            "search, from a paired bootstrap; missed: share of the turns that "
            f"{subject} broke and the search did not"
        ),
        (
            "- weaknesses: number of different sets of changed slots with their new values; most "
            "frequent: share of the violations that have the most frequent weakness"
        ),
        *RATE_NOTES,
    ]


def _section(table: Rq3Table, contest: Contest) -> list[str]:
    subject, rows = table.subject.label, table.compared(contest)
    budget = format_count(contest.budget, "variant")
    lines = ["", f"## `{contest.validity}`, {budget} a turn, {contest.counting}"]
    head = ["search", "k", "turns broken per 1,000 calls", f"{subject} / search"]
    head += ["missed", "turns broken", "calls", "runs"]
    lines += ["", *markdown_table(head, map(_compared, rows))]
    head = ["search", "valid rate", "per draw", "failure rate", "failure rate (thesis)", "yield"]
    head += ["cause: turn", "context", "both", "weaknesses", "most frequent"]
    if not PROFILES[contest.validity].locks:
        head += ["vetoed by `strict`", "vetoed with context"]
    lines += ["", *markdown_table(head, map(_described, rows))]
    if len(table.config.ks) > 1 and table.config.chosen is None:
        lines += ["", "Turns broken per 1,000 calls, by k (first run; all runs at the best k):", ""]
        head = ["search", *(f"k = {k}" for k in table.config.ks)]
        cells: dict[str, list[str]] = {row.label: [row.label] for row in rows}
        for row in table.rows:
            if row.contest == contest:
                cells[row.label].append(number(row.means.broken_per_1000_calls))
        lines += markdown_table(head, (found for found in cells.values() if len(found) > 2))
    return lines


def _compared(row: Rq3Row) -> list[str]:
    means = row.means
    return [
        row.label,
        NONE if row.k is None else str(row.k),
        number(means.broken_per_1000_calls),
        "" if row.against is None else number(row.against.ratio, 2),
        "" if row.against is None else rate_text(row.against.alone),
        f"{means.turns_broken:.0f} of {means.turns:,}",
        f"{means.calls:,.0f}",
        str(means.runs),
    ]


def _described(row: Rq3Row) -> list[str]:
    rates = row.means.rates
    cells = [
        row.label,
        rate_text(rates["valid_rate"]),
        share(rates["valid_rate_per_draw"].value),
        *(rate_text(rates[name]) for name in ("failure_rate", "thesis_failure_rate", "yield")),
        *(share(rates[f"cause_{cause}"].value) for cause in ("turn", "context", "both")),
        f"{row.weaknesses.number:.0f}",
        share(row.weaknesses.most_frequent),
    ]
    if not PROFILES[row.contest.validity].locks:
        cells += [rate_text(rates[f"strict_vetoes{name}"]) for name in ("", "_with_context")]
    return cells


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    if given["ks"] and given["chosen"]:
        raise UserError("--k and --k-from exclude each other: remove one of them")
    config = Rq3Config(**parse_arguments(given, Rq3Config))
    for place in product(config.contests, config.contenders):
        config.ks_of(*place)  # Find what --k-from lacks before the tracker is measured.
    ground, folder = begin(given, config.contenders, "rq3", arguments)
    hand_out(tables(run_rq3(ground, config)), folder)
    return 0


def _parser() -> Parser:
    parser = comparison_parser("rq3", __doc__ or "", _EXAMPLES)
    parser.value(
        "--searches",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help=f"searches to compare (default: {_SEARCHES})",
        dest="contenders",
        default=_SEARCHES,
    )
    parser.value(
        "--k-from",
        read_chosen_ks,
        "RQ3.CSV",
        help="use the best k of each search in this table, which was made on other dialogues, "
        "instead of --k",
        dest="chosen",
    )
    budgets = "numbers of variants per turn (default: 8,32)"
    parser.value("--budgets", several(integer(1)), "N,...", help=budgets)
    until = (
        "whether a turn ends at its first violation (yes) or uses the whole budget (no) (default: "
        "yes,no)"
    )
    parser.value("--until-broken", switches, "yes|no|yes,no", help=until)
    return parser
