"""Measures how often a tracker violates each relation: is it too sensitive or too stable?

``dstfuzz experiment relations --model trade --data PATH --split test --output DIR`` tests every
turn of the data with each relation. It prints one table for relations that expect the same answer,
and one table for relations that expect a change. With ``--output``, the tables are written as
``relations.md`` and ``relations.csv`` after each relation, so that results survive if the run ends
early. With ``--value-f1``, a further table compares answers to clean and to rewritten turns with
the recorded answers, as Niu and Bansal do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Final, NamedTuple

from pytest_dstfuzz import Outcome, __version__, load_dialogues
from pytest_dstfuzz.agents.training.environment import PacedOutput, Say
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.figures import ratio, ratio_interval
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import Event, TurnDone, TurnResult, VariantResult
from pytest_dstfuzz.comparisons.embedding import load_shipped_vectors
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.papers.command_line import (
    add_relation_options,
    command_line,
    ground_parser,
    hand_out_last,
    output_folder,
    parse_arguments,
    say,
)
from pytest_dstfuzz.papers.comparison import GroundConfig, common_settings, draw_dialogues
from pytest_dstfuzz.papers.formatting import (
    Columns,
    Rate,
    Resamples,
    Tally,
    csv_number,
    csv_text,
    markdown_table,
    number,
    rate_columns,
    rate_text,
)
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.relations.checks import (
    KnownWordsRelation,
    WholeContextRelation,
    reasons_by_label,
)
from pytest_dstfuzz.relations.contexts import read
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.relations.relation import Relation, Scenes
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

#: Kinds of failures, in the order of the table.
FAILURES: Final = ("changed", "stuck", "partial", "other")
#: Maximum number of reasons per relation in the table.
_MOST: Final = 4


@dataclass(frozen=True, slots=True)
class RelationsConfig(GroundConfig):
    """The settings of the experiment. Dialogues are drawn with the seed of the campaigns."""

    splits: tuple[str, ...] = ("test",)
    relations: str = "all"
    #: Whether to use only rewrites whose new words are in the tracker's vocabulary.
    vocabulary: bool = False
    #: Whether rewrites change the user's earlier turns, too.
    whole_context: bool = False
    value_f1: bool = False  #: Whether to make the table of value F1 and similarity.


@dataclass(frozen=True, slots=True)
class PairedFigures:
    """The answers to rewrites beside those to clean turns. Each tally is summed by dialogue.

    The tallies of F1 have pairs of twice the number of right values, and the number of values in
    the answer and in the recorded answer together. Their ratio is F1.
    """

    clean: Tally  #: Of the clean answer, once for each rewrite.
    rewritten: Tally
    texts: Tally  #: Similarity of the user's turns: sum and number.
    replies: Tally  #: Similarity of the replies: sum and number. Empty for other answers.


@dataclass(frozen=True, slots=True)
class RelationRow:
    """The results of one relation."""

    name: str
    side: str
    unit: str
    units: int  #: Number of turns, or of dialogues if the relation edits whole dialogues.
    by_gold: int | None  #: Applicable units by the labels. ``None`` if they are incomplete.
    applicable: int  #: Applicable units by the tracker's predictions.
    tested: int  #: Units with a rewrite that was run.
    broken: int  #: Units with a failed rewrite.
    #: Kind of failure -> (rewrites, failed rewrites) for each dialogue.
    failures: dict[str, list[tuple[int, int]]]
    reasons: Counter[str]  #: Why it does not apply to the other units.
    paired: PairedFigures | None = None  #: ``None`` if it was not asked for.

    @property
    def rewrites(self) -> int:
        """Number of rewrites that the tracker answered."""
        return sum(run for run, _ in self.failures["changed"])

    def count(self, failure: str) -> int:
        """Return the number of rewrites with one kind of failure."""
        return sum(failed for _, failed in self.failures[failure])

    def rate(self, *ways: str) -> Rate:
        """Return the share of rewrites that failed in one of these ways, with its interval."""
        columns = zip(*(self.failures[way] for way in ways), strict=True)
        pairs = [(sum(failed for _, failed in cells), cells[0][0]) for cells in columns]
        part, whole = (sum(pair[place] for pair in pairs) for place in (0, 1))
        return Rate(ratio(part, whole), ratio_interval(pairs))


@dataclass(frozen=True, slots=True)
class RelationsTable:
    """The results with their configuration and data."""

    config: RelationsConfig
    data: DialogueSet
    rows: tuple[RelationRow, ...]


def vocabulary_of(tracker: Tracker) -> tuple[str, ...]:
    """Return the words in a tracker's vocabulary.

    Raises:
        UserError: the tracker has no vocabulary of words.
    """
    words = getattr(getattr(tracker, "vocabulary", None), "words", None)
    if not words:
        raise UserError(
            f"--vocabulary: the tracker {type(tracker).__name__} has no vocabulary of words: use "
            "it with the model 'trade', or a tracker with an attribute vocabulary.words"
        )
    return tuple(words)


def run_relations(
    config: RelationsConfig, tell: Say, tracker: Tracker | None = None
) -> Iterator[RelationsTable]:
    """Yield the table after each relation. Build the tracker if none is given."""
    given = config.settings
    outcome = given.reply.outcome
    whole = load_dialogues(given.data.data, config.splits[0], outcome=outcome)
    data = draw_dialogues(whole, config.max_dialogues, given.variant.seed, "relations", "dialogues")
    if tracker is None:
        tracker = tracker_for(given, data)
    predictor = predictor_for(given, data, tracker)
    rows: list[RelationRow] = []
    relations = relations_named(config.relations, data, outcome)
    if config.whole_context:
        relations = tuple(map(WholeContextRelation, relations))
    if config.vocabulary:
        known = vocabulary_of(tracker)
        relations = tuple(KnownWordsRelation(one, known, tokenise) for one in relations)
    for relation in relations:
        rows.append(measure_relation(config, relation, data, predictor, tell))
        rate = rate_text(rows[-1].rate(*FAILURES))
        tell(f"{relation.name}: {rate} of {rows[-1].rewrites:,} rewrites fail")
        yield RelationsTable(config, data, tuple(rows))


def measure_relation(
    config: RelationsConfig, relation: Relation, data: DialogueSet, predictor: Predictor, tell: Say
) -> RelationRow:
    """Test all turns of the data with a relation, and return its results."""
    settings = config.settings
    results = run_relation(settings, relation, data, predictor, tell)
    by_gold = None
    if data.labelled:
        lexicon = load_lexicon()
        guards = Perturber.of(settings.variant, data, lexicon).guards
        scenes = Scenes(data, lexicon, guards, settings.variant.seed, settings.reply)
        by_gold = sum(not reason for reason in reasons_by_label(relation, data, scenes))
    row = row_of(relation, data, results, by_gold)
    return replace(row, paired=pair_answers(results)) if config.value_f1 else row


def run_relation(
    settings: Settings, relation: Relation, data: DialogueSet, predictor: Predictor, tell: Say
) -> tuple[TurnResult, ...]:
    """Test all turns of the data with a relation.

    Raises:
        UserError: the tracker gave too few answers.
    """
    paced, done = PacedOutput(tell), 0

    def listen(event: Event) -> None:
        nonlocal done
        done += isinstance(event, TurnDone)
        if isinstance(event, TurnDone):
            paced(f"{relation.name}: {done:,} of {data.turn_count():,} turns")

    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in data.dialogues]
    engine = CampaignEngine(
        settings.replace_options(relation=relation.name),
        data,
        predictor,
        load_lexicon(),
        plan=plan,
        listener=listen,
        relation=relation,
    )
    results = tuple(engine.run())
    predictor.refuse_if_given_up()
    return results


def row_of(
    relation: Relation, data: DialogueSet, results: Sequence[TurnResult], by_gold: int | None
) -> RelationRow:
    """Compute the results of one relation."""
    left_out = [turn for turn in results if turn.outcome == "inapplicable"]
    tested = [turn for turn in results if _run(turn)]
    by_dialogue: dict[str, list[VariantResult]] = {}
    for turn in tested:
        by_dialogue.setdefault(turn.dialogue_id, []).extend(_run(turn))
    dialogues = relation.unit == "dialogue"
    return RelationRow(
        name=relation.name,
        side=relation.side,
        unit=relation.unit,
        units=len(data.dialogues) if dialogues else data.turn_count(),
        by_gold=by_gold,
        applicable=len(results) - len(left_out),
        tested=len(tested),
        broken=sum(bool(turn.violations) for turn in tested),
        failures={
            way: [(len(run), sum(_way(one) == way for one in run)) for run in by_dialogue.values()]
            for way in FAILURES
        },
        reasons=Counter(turn.reason for turn in left_out),
    )


def pair_answers(results: Iterable[TurnResult]) -> PairedFigures:
    """Compare the answers to clean and to rewritten turns with the recorded answers.

    Turns without a recorded answer count only for the similarities.
    """
    tallies: tuple[dict[str, tuple[float, float]], ...] = ({}, {}, {}, {})
    for turn in results:
        clean = turn.clean_state
        replies = turn.outcome_kind == "reply"
        for one in _run(turn):
            assert clean is not None and one.state is not None  # noqa: PT018, S101 - it was run
            adds: list[tuple[float, float] | None] = [None, None, None, None]
            if turn.label is not None:
                recorded = values_of(turn.label, replies=replies)
                for place, answer in enumerate((clean, one.state)):
                    values = values_of(answer, replies=replies)
                    adds[place] = (2 * len(values & recorded), len(values) + len(recorded))
            adds[2] = (similarity(turn.user, one.text), 1)
            if replies:
                texts = turn.kind.text(clean), turn.kind.text(one.state)
                adds[3] = (similarity(*texts), 1)
            for tally, add in zip(tallies, adds, strict=True):
                if add is not None:
                    part, whole = tally.get(turn.dialogue_id, (0.0, 0.0))
                    tally[turn.dialogue_id] = (part + add[0], whole + add[1])
    return PairedFigures(*tallies)


def values_of(answer: Outcome, *, replies: bool) -> frozenset[object]:
    """Return the values of an answer: its slots with values, or the names and numbers of a reply.

    They take the place of the activities and entities of Niu and Bansal.
    """
    if not replies:
        return frozenset(answer.items())
    return frozenset(read(" ".join(answer.values()), load_lexicon()).entities)


def similarity(one: str, other: str) -> float:
    """Return the cosine of the mean word vectors of two texts, as in table 4 of the paper."""
    vectors = load_shipped_vectors()
    first, second = vectors.parts(one).total, vectors.parts(other).total
    lengths = sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / lengths if lengths else float(one == other)


def _run(turn: TurnResult) -> list[VariantResult]:
    return [one for one in turn.variants if one.valid and one.state is not None]


def _way(variant: VariantResult) -> str:
    return (variant.failure or "changed") if variant.outcome == "violation" else ""


def _rate_of(ways: Sequence[str], row: RelationRow) -> Rate:
    return row.rate(*ways)


#: Columns of ``relations.csv``, with a line per relation.
COLUMNS: Columns = {
    "relation": lambda row: row.name,
    "side": lambda row: row.side,
    "unit": lambda row: row.unit,
    "units": lambda row: row.units,
    "applicable_by_gold": lambda row: "" if row.by_gold is None else row.by_gold,
    "applicable": lambda row: row.applicable,
    "tested": lambda row: row.tested,
    "broken": lambda row: row.broken,
    "rewrites": lambda row: row.rewrites,
    **{way: partial(lambda way, row: row.count(way), way) for way in FAILURES},
    **rate_columns("failure_rate", partial(_rate_of, FAILURES)),
    **rate_columns("stuck_rate", partial(_rate_of, ("stuck",))),
}


def tables(table: RelationsTable) -> dict[str, str]:
    """Return the contents of the output files by name. Rates in the CSV have 4 decimals."""
    texts = {"relations.md": _markdown(table), "relations.csv": csv_text(COLUMNS, table.rows)}
    if table.config.value_f1:
        texts["value-f1.csv"] = csv_text(_PAIRED_COLUMNS, list(_paired(table)))
    return texts


class PairedRow(NamedTuple):
    """The value F1 and the similarities of one relation."""

    name: str
    clean: Rate
    rewritten: Rate
    difference: Rate
    texts: Rate
    replies: Rate


def _paired(table: RelationsTable) -> Iterator[PairedRow]:
    draws = Resamples([one.id for one in table.data.dialogues], table.config.settings.variant.seed)
    for row in table.rows:
        if row.paired is not None:
            one = row.paired
            yield PairedRow(
                row.name,
                draws.rate([one.clean]),
                draws.rate([one.rewritten]),
                draws.difference([one.rewritten], [one.clean]),
                Rate(draws.rate([one.texts]).value),
                Rate(draws.rate([one.replies]).value),
            )


_PAIRED_COLUMNS: Columns = {
    "relation": lambda row: row.name,
    **rate_columns("clean_f1", lambda row: row.clean),
    **rate_columns("rewritten_f1", lambda row: row.rewritten),
    **rate_columns("difference", lambda row: row.difference),
    "turn_similarity": lambda row: csv_number(row.texts.value),
    "reply_similarity": lambda row: csv_number(row.replies.value),
}


def _paired_lines(table: RelationsTable) -> list[str]:
    told = (
        "Value F1 compares the values of an answer with those of the recorded answer to the clean "
        "turn: the slots with their values, or the names and numbers of a reply. It takes the "
        "place of the activity and entity F1 of Niu and Bansal. The difference is rewritten minus "
        "clean. "
        "Similarity is the cosine of the mean word vectors (the shipped ones) of two texts."
    )
    head = ["relation", "F1, clean", "F1, rewritten", "difference in points"]
    head += ["similarity of turns", "similarity of replies"]
    cells = (
        [
            f"`{row.name}`",
            rate_text(row.clean),
            rate_text(row.rewritten),
            number(row.difference.scaled(100), 2),
            number(row.texts, 2),
            number(row.replies, 2),
        ]
        for row in _paired(table)
    )
    return ["", "## Value F1 and similarity", "", told, "", *markdown_table(head, cells)]


def _markdown(table: RelationsTable) -> str:
    config, variant = table.config, table.config.settings.variant
    dialogues, turns = len(table.data.dialogues), table.data.turn_count()
    most = config.max_dialogues
    some = "" if most is None else f" (at most {most}, drawn by seed)"
    lines = [
        "# How often each relation is broken",
        "",
        f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
        f"- tracker: {config.tracker_and_weights}",
        (
            f"- data: `{config.settings.data.data}`, split {config.splits[0]}: {dialogues:,} "
            f"dialogues{some}, {turns:,} turns, also those with a wrong prediction"
        ),
        (
            f"- at most {format_count(variant.variants, 'rewrite')} of a turn or dialogue, seed "
            f"{variant.seed}"
            + ("; only new words of the tracker's vocabulary" if config.vocabulary else "")
            + ("; the user's earlier turns are rewritten, too" if config.whole_context else "")
        ),
        (
            "- by gold: number of turns or dialogues to which the relation applies if the labels "
            "decide; by prediction: if the tracker's answers decide, as in a test; brackets: 95 % "
            "intervals over dialogues"
        ),
    ]
    stay = [row for row in table.rows if row.side == "should-not-change"]
    follow = [row for row in table.rows if row.side == "should-change"]
    if stay:
        head = ["relation", "of", "by gold", "by prediction", "rewrites", "changed: over-sensitive"]
        cells = ([*_place(row), rate_text(row.rate("changed"))] for row in stay)
        lines += ["", "## Should not change", "", *markdown_table(head, cells)]
    if follow:
        head = ["relation", "of", "by gold", "by prediction", "rewrites", "fail"]
        head += ["stuck: over-stable", "partial", "other"]
        cells = (
            [*_place(row), rate_text(row.rate(*FAILURES)), rate_text(row.rate("stuck"))]
            + [rate_text(row.rate(way)) for way in ("partial", "other")]
            for row in follow
        )
        lines += ["", "## Should change", "", *markdown_table(head, cells)]
    if config.value_f1:
        lines += _paired_lines(table)
    lines += ["", "## Why a relation does not apply", ""]
    lines += markdown_table(["relation", "number of turns or dialogues, by reason"], _left(table))
    return "\n".join(lines) + "\n"


def _place(row: RelationRow) -> list[str]:
    gold = "n/a" if row.by_gold is None else f"{row.by_gold:,}"
    return [
        f"`{row.name}`",
        f"{row.units:,} {row.unit}s",
        gold,
        f"{row.applicable:,}",
        f"{row.rewrites:,}",
    ]


def _left(table: RelationsTable) -> Iterable[list[str]]:
    for row in table.rows:
        if row.reasons:
            ranked = sorted(row.reasons.items(), key=lambda item: (-item[1], item[0]))
            told = [f"{count:,} {reason}" for reason, count in ranked[:_MOST]]
            more = len(ranked) - _MOST
            told += [f"{more} other reason{'s' * (more > 1)}"] if more > 0 else []
            yield [f"`{row.name}`", "; ".join(told)]


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    folder = output_folder(given, "relations")
    own = parse_arguments(given, RelationsConfig)
    config = RelationsConfig(
        common_settings(**given), **own, command=command_line("relations", arguments)
    )
    hand_out_last(run_relations(config, say), tables, folder)
    return 0


def _parser() -> Parser:
    parser = ground_parser("relations", __doc__ or "", "", "split of the data", default="test")
    add_relation_options(parser, "relations")
    parser.shared("outcome")
    parser.option(
        "--vocabulary",
        action="store_true",
        help="use only rewrites whose new words are in the tracker's vocabulary, as Niu and Bansal",
    )
    parser.option(
        "--whole-context",
        action="store_true",
        help="rewrite the user's earlier turns, too, as Niu and Bansal, unless the relation says "
        "which slots must change",
    )
    parser.option(
        "--value-f1",
        action="store_true",
        help="also compare the values of the answers with the recorded answers, and the clean with "
        "the rewritten texts, as tables 2 to 4 of Niu and Bansal",
    )
    return parser
