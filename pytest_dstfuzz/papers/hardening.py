"""Compares a tracker with hardened trackers, on clean turns and on rewritten turns.

``dstfuzz experiment hardening --model trade --hardened NAME=CHECKPOINT,... --data PATH`` tests
every turn of the data with each tracker. The table has the accuracy on clean turns, the failures
under typing errors, and the failure rate of each relation. It also shows which relations the
trackers were trained on. With ``--output``, the table is written as ``hardening.md`` and
``hardening.csv`` after each tracker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_dstfuzz import UserError, __version__, load_dialogues
from pytest_dstfuzz.agents.training.environment import Say
from pytest_dstfuzz.campaign.engine import predictor_for
from pytest_dstfuzz.campaign.figures import EstimatedFailures, ExpectedTally, tally_results
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.files import read_json
from pytest_dstfuzz.models.trade.files import CONFIG_FILE, folder_of
from pytest_dstfuzz.papers.command_line import (
    add_relation_options,
    command_line,
    ground_parser,
    hand_out_last,
    output_folder,
    parse_arguments,
    say,
    several,
)
from pytest_dstfuzz.papers.comparison import common_settings, draw_dialogues
from pytest_dstfuzz.papers.formatting import (
    Columns,
    Rate,
    Resamples,
    Tally,
    csv_text,
    markdown_table,
    number,
    rate_columns,
    rate_text,
)
from pytest_dstfuzz.papers.relations import (
    FAILURES,
    RelationRow,
    RelationsConfig,
    measure_relation,
    run_relation,
)
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.trackers.registry import tracker_for


class HardenedTracker(NamedTuple):
    """A checkpoint to compare."""

    name: str
    checkpoint: str | None


@dataclass(frozen=True, slots=True)
class HardeningConfig(RelationsConfig):
    """The settings of the experiment."""

    hardened: tuple[HardenedTracker, ...] = ()


@dataclass(frozen=True, slots=True)
class TrackerFigures:
    """The results of one tracker."""

    name: str
    trained_on: frozenset[str]  #: Relations whose rewrites it was trained on.
    right: Tally  #: Dialogue -> (turns with a right answer, turns).
    slips: EstimatedFailures | None  #: ``None`` without a sample.
    rows: tuple[RelationRow, ...]


@dataclass(frozen=True, slots=True)
class HardeningTable:
    """The results so far. The first tracker is the original of the hardened trackers."""

    config: HardeningConfig
    data: DialogueSet
    trackers: tuple[TrackerFigures, ...]


def relations_of(checkpoint: str | None) -> frozenset[str]:
    """Return the relations whose rewrites were used to train a checkpoint of TRADE."""
    config = read_json(folder_of(checkpoint) / CONFIG_FILE, "TRADE checkpoint")
    settings = config.get("about", {}).get("settings", {})
    return frozenset(filter(None, settings.get("relations", "").split(",")))


def run_hardening(config: HardeningConfig, tell: Say) -> Iterator[HardeningTable]:
    """Yield the table after each tracker."""
    given = config.settings
    first = HardenedTracker(given.tracker.model or "", given.tracker.checkpoint)
    trained = [frozenset[str](), *(relations_of(one.checkpoint) for one in config.hardened)]
    whole = load_dialogues(given.data.data, config.splits[0])
    data = draw_dialogues(whole, config.max_dialogues, given.variant.seed, "relations", "dialogues")
    found: list[TrackerFigures] = []
    for one, relations in zip((first, *config.hardened), trained, strict=True):
        own = replace(config, settings=given.replace_options(checkpoint=one.checkpoint))
        found.append(_measure(own, one.name, relations, data, tell))
        yield HardeningTable(config, data, tuple(found))


def _measure(
    config: HardeningConfig, name: str, trained_on: frozenset[str], data: DialogueSet, tell: Say
) -> TrackerFigures:
    settings = config.settings
    predictor = predictor_for(settings, data, tracker_for(settings, data))
    (metamorphic,) = relations_named("metamorphic")
    noisy = settings.replace_options(search="noise")
    results = run_relation(noisy, metamorphic, data, predictor, tell)
    right: dict[str, tuple[int, int]] = {}
    for turn in results:
        part, total = right.get(turn.dialogue_id, (0, 0))
        right[turn.dialogue_id] = part + turn.is_right, total + 1
    rows = []
    for relation in relations_named(config.relations, data, "state"):
        rows.append(measure_relation(config, relation, data, predictor, tell))
        rate = rate_text(rows[-1].rate(*FAILURES))
        tell(f"{name}: {relation.name}: {rate} of {rows[-1].rewrites:,} rewrites fail")
    slips = tally_results(ExpectedTally(), results).expected
    return TrackerFigures(name, trained_on, right, slips, tuple(rows))


class HardeningRow(NamedTuple):
    """A line of the CSV file: one tracker in one test."""

    tracker: str
    test: str
    side: str
    trained: bool
    tested: int  #: Turns, or rewrites that were run.
    rate: Rate


def rows_of(table: HardeningTable) -> Iterator[HardeningRow]:
    """Yield the lines of the CSV file."""
    draws = Resamples([one.id for one in table.data.dialogues], table.config.settings.variant.seed)
    for one in table.trackers:
        turns = table.data.turn_count()
        yield HardeningRow(one.name, "right", "", False, turns, draws.rate([one.right]))
        if one.slips is not None and one.slips.per_1000 is not None:
            slips = Rate(one.slips.per_1000, one.slips.interval).scaled(0.001)
            yield HardeningRow(one.name, "slips", "should-not-change", False, turns, slips)
        for row in one.rows:
            trained, rate = row.name in one.trained_on, row.rate(*FAILURES)
            yield HardeningRow(one.name, row.name, row.side, trained, row.rewrites, rate)


#: Columns of ``hardening.csv``.
COLUMNS: Columns = {
    "tracker": lambda row: row.tracker,
    "test": lambda row: row.test,
    "side": lambda row: row.side,
    "trained_on": lambda row: "yes" if row.trained else "no",
    "tested": lambda row: row.tested,
    **rate_columns("rate", lambda row: row.rate),
}


def tables(table: HardeningTable) -> dict[str, str]:
    """Return the contents of the output files by name. Rates in the CSV have 4 decimals."""
    return {
        "hardening.md": "\n".join(_markdown(table)) + "\n",
        "hardening.csv": csv_text(COLUMNS, list(rows_of(table))),
    }


def _markdown(table: HardeningTable) -> Iterator[str]:
    config, variant = table.config, table.config.settings.variant
    names = [f"`{one.name}`" for one in table.trackers]
    yield "# A tracker before and after adversarial training"
    yield ""
    yield f"- command: `{config.command}` (pytest-dstfuzz {__version__})"
    yield f"- first tracker: {config.tracker_and_weights}"
    yield (
        f"- data: `{config.settings.data.data}`, split {config.splits[0]}: "
        f"{len(table.data.dialogues):,} dialogues, {table.data.turn_count():,} turns; at most "
        f"{variant.variants} rewrites of a turn or dialogue, seed {variant.seed}"
    )
    yield (
        "- brackets: 95 % intervals over dialogues; a relation applies by the tracker's own answers"
    )
    yield from ("", "## Clean turns and typing errors", "")
    yield from markdown_table(["", *names], _clean(table))
    for side in ("should-not-change", "should-change"):
        cells = list(_failing(table, side))
        if cells:
            yield from ("", f"## {side.replace('-', ' ').capitalize()}: failed rewrites", "")
            yield from markdown_table(["relation", "trained on", *names], cells)


def _clean(table: HardeningTable) -> Iterator[list[str]]:
    draws = Resamples([one.id for one in table.data.dialogues], table.config.settings.variant.seed)
    first, *others = table.trackers
    yield ["right turns", *(rate_text(draws.rate([one.right])) for one in table.trackers)]
    changes = (draws.rate([_difference(first.right, one.right)]) for one in others)
    points = (number(rate.scaled(100), 2, " points") for rate in changes)
    yield ["difference", "", *points]
    yield ["failures of 1,000 turns with typing errors", *map(_slips, table.trackers)]


def _difference(first: Tally, other: Tally) -> Mapping[str, tuple[float, float]]:
    return {name: (other[name][0] - part, whole) for name, (part, whole) in first.items()}


def _slips(one: TrackerFigures) -> str:
    if one.slips is None:
        return number(Rate(None))
    return number(Rate(one.slips.per_1000, one.slips.interval))


def _failing(table: HardeningTable, side: str) -> Iterator[list[str]]:
    for rows in zip(*(one.rows for one in table.trackers), strict=True):
        if rows[0].side == side and any(row.rewrites for row in rows):
            name = rows[0].name
            trained = any(name in one.trained_on for one in table.trackers)
            cells = (f"{rate_text(row.rate(*FAILURES))} of {row.rewrites:,}" for row in rows)
            yield [f"`{name}`", "yes" if trained else "no", *cells]


def _hardened(text: str) -> HardenedTracker:
    """Read ``NAME=CHECKPOINT``."""
    name, equals, checkpoint = text.partition("=")
    if not (name and equals and checkpoint):
        raise ValueError("must be NAME=CHECKPOINT, such as hardened=my-hardened")
    return HardenedTracker(name, checkpoint)


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given: dict[str, Any] = vars(_parser().parse_all(arguments))
    folder = output_folder(given, "hardening")
    own = parse_arguments(given, HardeningConfig)
    config = HardeningConfig(
        common_settings(**given), **own, command=command_line("hardening", arguments)
    )
    if config.settings.tracker.model != "trade":
        raise UserError("experiment hardening compares checkpoints of TRADE: write --model trade")
    hand_out_last(run_hardening(config, say), tables, folder)
    return 0


def _parser() -> Parser:
    parser = ground_parser("hardening", __doc__ or "", "", "split of the data", default="test")
    add_relation_options(parser, "hardening")
    parser.value(
        "--hardened",
        several(_hardened),
        "NAME=CHECKPOINT,...",
        required=True,
        help="hardened checkpoints, each with a name for the table",
    )
    return parser
