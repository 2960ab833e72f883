"""The first question of the thesis: how often do random perturbations break a tracker?

``dstfuzz experiment rq1 --model trade --data PATH --split val,test`` uses only dialogues that the
tracker gets right at every turn. So the perturbation causes every failure. The command perturbs
them by random sampling with k = 1 to 6 combined transformations, and prints the table. With
``--output``, the table is written as ``rq1.md`` and ``rq1.csv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path

from pytest_dstfuzz import __version__, load_dialogues
from pytest_dstfuzz.agents.training.environment import Say, right_dialogues
from pytest_dstfuzz.campaign.figures import Counts, ratio, ratio_interval
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer, percent
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.papers.command_line import (
    command_line,
    experiment_parser,
    hand_out,
    output_folder,
    parse_arguments,
    say,
)
from pytest_dstfuzz.papers.comparison import (
    RATE_NOTES,
    RATES,
    CampaignFigures,
    CampaignRunner,
    GroundConfig,
    common_settings,
    draw_dialogues,
    inertia_share,
    tallies,
)
from pytest_dstfuzz.papers.formatting import (
    Columns,
    Rate,
    csv_number,
    csv_text,
    format_published,
    markdown_table,
    number,
    rate_columns,
    rate_text,
)
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

#: Failure rates of random parameters in the thesis (tables 4.3 and 4.4; k not stated).
PUBLISHED = (
    ("TRADE, MultiWOZ 2.1", "7.51 %"),
    ("TRADE, MultiWOZ 2.2", "7.14 %"),
    ("SimpleTOD, MultiWOZ 2.1", "7.79 %"),
    ("SimpleTOD, MultiWOZ 2.2", "5.29 %"),
)
#: Dialogues in validation and test of MultiWOZ 2.1 that are right at every turn for TRADE.
PUBLISHED_DIALOGUES = 393
#: Rates of the table, see `comparison.RATES`.
_RATES = ("valid_rate", "failure_rate", "thesis_failure_rate", "yield")


@dataclass(frozen=True, slots=True)
class Rq1Config(GroundConfig):
    """The settings of the experiment. Dialogues are drawn with the seed of the campaigns."""

    validities: tuple[str, ...] = ("edit-rate", "strict")
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True, slots=True)
class Rq1Row:
    """The results for one validity profile and one number of transformations."""

    validity: str
    k: int
    figures: CampaignFigures
    counts: Counts
    #: Valid rate, failure rate, failure rate as counted in the thesis, and yield.
    rates: dict[str, Rate]

    @classmethod
    def of(cls, validity: str, k: int, figures: CampaignFigures) -> Rq1Row:
        """Return the row of one campaign."""
        rates = {}
        for name in _RATES:
            (found,) = tallies([figures], RATES[name])
            units = [(int(part), int(whole)) for part, whole in found.values()]
            parts, wholes = map(sum, zip(*units, strict=True))
            rates[name] = Rate(ratio(parts, wholes), ratio_interval(units))
        counts = sum((turn.counts for turn in figures.turns), Counts())
        return cls(validity, k, figures, counts, rates)

    @property
    def broken_per_1000_calls(self) -> float | None:
        """Turns broken per 1,000 calls."""
        return ratio(1000 * self.figures.turns_broken, self.figures.calls)


@dataclass(frozen=True, slots=True)
class Rq1Table:
    """The whole table with its configuration and data."""

    config: Rq1Config
    evaluations: tuple[Evaluation, ...]
    layouts: tuple[str, ...]
    data: DialogueSet  #: Perturbed dialogues.
    rows: tuple[Rq1Row, ...]


def run_rq1(config: Rq1Config, say: Say, tracker: Tracker | None = None) -> Rq1Table:
    """Run the campaigns and return the table. Build the tracker if none is given."""
    given = config.settings
    splits = [load_dialogues(given.data.data, split) for split in config.splits]
    if tracker is None:
        tracker = tracker_for(given, splits[0])
    right = right_dialogues(tracker, splits, given.tracker.batch_size, say)
    data = draw_dialogues(right.data, config.max_dialogues, given.variant.seed, "rq1", "dialogues")
    say(f"{len(data.dialogues)} dialogues, {data.turn_count()} turns to perturb")
    runner = CampaignRunner(tracker, data)
    rows = []
    for validity, k in product(config.validities, config.ks):
        settings = given.replace_options(validity=validity, transformations=k)
        name = f"{validity}, k = {k}"
        rows.append(Rq1Row.of(validity, k, runner.run(settings, say, name)))
        valid, failure, thesis = (percent(rows[-1].rates[rate].value) for rate in _RATES[:3])
        say(f"{name}: valid rate {valid}, failure rate {failure} ({thesis} as in the thesis)")
    layouts = tuple(part.layout for part in splits)
    return Rq1Table(config, right.evaluations, layouts, data, tuple(rows))


#: Columns of the CSV file.
COLUMNS: Columns = {
    "validity": lambda row: row.validity,
    "k": lambda row: row.k,
    "turns": lambda row: len(row.figures.turns),
    **{
        name: attrgetter(f"counts.{name}")
        for name in ("generated", "valid", "violations", "carried", "improved", "errors")
    },
    **rate_columns("valid_rate", lambda row: row.rates["valid_rate"]),
    **rate_columns("failure_rate", lambda row: row.rates["failure_rate"]),
    **rate_columns("thesis_failure_rate", lambda row: row.rates["thesis_failure_rate"]),
    **rate_columns("yield", lambda row: row.rates["yield"]),
    "calls": lambda row: row.figures.calls,
    "turns_broken": lambda row: row.figures.turns_broken,
    "broken_per_1000_calls": lambda row: csv_number(row.broken_per_1000_calls),
    "inertia": lambda row: csv_number(row.figures.inertia),
    "inertia_share": lambda row: csv_number(inertia_share(row.figures.inertia, row.k)),
}


def tables(table: Rq1Table) -> dict[str, str]:
    """Return the contents of the output files by name. Rates in the CSV have 4 decimals."""
    return {"rq1.md": _markdown(table), "rq1.csv": csv_text(COLUMNS, table.rows)}


def _markdown(table: Rq1Table) -> str:
    lines = ["# Random perturbations of a tracker (RQ1)", "", *_header(table)]
    head = ["k", "valid rate", "failure rate", "failure rate (thesis)", "yield"]
    head += ["turns broken per 1,000 calls", "inertia (share of uniform)"]
    for validity in table.config.validities:
        rows = [_cells(row) for row in table.rows if row.validity == validity]
        lines += ["", f"## Validity profile `{validity}`", "", *markdown_table(head, rows)]
    lines += format_published(
        "The tables 4.3 and 4.4 of the thesis give these failure rates (thesis) for random "
        "parameters. They do not state k, the number of transformations.",
        ["tracker and data", "failure rate"],
        PUBLISHED,
    )
    return "\n".join(lines) + "\n"


def _header(table: Rq1Table) -> list[str]:
    config, variant = table.config, table.config.settings.variant
    lines = [
        f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
        f"- tracker: {config.tracker_and_weights}",
        f"- data: `{config.settings.data.data}`, values normalised as `{table.data.normalisation}`",
    ]
    lines += [
        f"  - split {item.split} ({layout} layout): {item.dialogues:,} dialogues, {item.turns:,} "
        f"turns, joint goal accuracy {percent(item.joint_goal_accuracy)}, "
        f"{len(item.right_dialogues):,} dialogues right at every turn"
        for item, layout in zip(table.evaluations, table.layouts, strict=True)
    ]
    dialogues, turns = len(table.data.dialogues), table.data.turn_count()
    most = config.max_dialogues
    drawn = "" if most is None else f" (at most {most}, drawn by seed)"
    lines += [
        (
            f"- perturbed: {dialogues:,} dialogues right at every turn{drawn}, {turns:,} turns; "
            f"the thesis had {PUBLISHED_DIALOGUES} dialogues for TRADE, MultiWOZ 2.1"
        ),
        (
            f"- search {variant.search}, attack {variant.attack}, {variant.variants} variants per "
            f"turn, {config.rates}, seed {variant.seed}"
        ),
        (
            "- k: number of transformations that a variant combines; valid rate: share of the "
            "variants that are valid"
        ),
        *RATE_NOTES,
        (
            "- inertia: how far the drawn parameters of the transformations spread (the sum of "
            "their variances, without parameters that have no effect); in parentheses as a share "
            "of the inertia of uniform sampling with the same k"
        ),
        ("- brackets: 95 % intervals over dialogues"),
    ]
    return lines


def _cells(row: Rq1Row) -> list[str]:
    inertia = row.figures.inertia
    return [
        str(row.k),
        *(rate_text(row.rates[name], 2) for name in _RATES),
        number(Rate(row.broken_per_1000_calls)),
        f"{inertia:.2f} ({percent(inertia_share(inertia, row.k), 1)})",
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    folder = output_folder(given, "rq1")
    own = parse_arguments(given, Rq1Config)
    # As in the thesis, without redraws: the valid rate is one of the results.
    settings = common_settings(redraws=0, **given)
    config = Rq1Config(settings, **own, command=command_line("rq1", arguments))
    hand_out(tables(run_rq1(config, say)), folder)
    return 0


def _parser() -> Parser:
    parser = experiment_parser("rq1", __doc__ or "", "", "splits of the data")
    parser.shared("search", "variants", "seed")
    most = "use at most N dialogues, drawn by seed"
    parser.value("--max-dialogues", integer(1), "N", help=most)
    parser.value("--output", Path, "DIR", help="write rq1.md and rq1.csv into this folder")
    return parser
