"""The totals of a run: all figures for reports and the gate, computed in one pass.

Each relation has separate figures. A tracker that changes its state too easily breaks relations
that expect the same state. A tracker that never changes its state breaks relations that expect a
change. A single number would hide one of these faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, Self, get_args

from pytest_dstfuzz.campaign.figures import (
    DialogueNumbers,
    DialogueSums,
    DistinctCount,
    LastByTurn,
    Ledger,
    LedgerTally,
    ratio,
    ratio_interval,
    tally_results,
)
from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.campaign.summary import Summary, SummaryTally, YieldsTally
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.relations.relation import OTHER_LANGUAGE, Failure, Side, Unit
from pytest_dstfuzz.totals.cases import CasesTally
from pytest_dstfuzz.totals.plainest import Novelty, PlainestTally
from pytest_dstfuzz.totals.tallies import (
    AppliedTally,
    RatesTally,
    ReasonsTally,
    SpreadTally,
    describe_applied,
)
from pytest_dstfuzz.totals.troubles import AnswersTally, TroublesTally
from pytest_dstfuzz.weaknesses.advice import Mending
from pytest_dstfuzz.weaknesses.groups import Member, Weakness, WeaknessTally

__all__ = ["RelationFacts", "Totals"]

#: Number of simplest violations for each relation.
MOST_PLAINEST: Final = 5
FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """Properties of a relation that are not in its results."""

    #: Its expectation, as a sentence.
    expects: str = ""
    #: Source and licence of its word lists.
    source: str = ""
    unit: Unit = "turn"
    #: Whether the search edits the turns, or the relation itself.
    edits: Literal["search", "own"] = "search"


class AddedSection(NamedTuple):
    """A section of a report from the hook of another package."""

    title: str
    lines: tuple[str, ...]


class RelationTotals:
    """The figures of one relation, computed in one pass over its results.

    Add all turns before you read the figures.
    """

    def __init__(self, name: str, side: Side, facts: RelationFacts, kind: AnswerKind) -> None:
        self.name: Final = name
        self.side: Final = side
        self.facts: Final = facts
        #: The tested kind of answer.
        self.kind: Final = kind
        #: Number of results, and results by outcome of the turn.
        self.count = 0
        self.outcomes: Counter[TurnOutcome] = Counter()
        self.reasons: Final = ReasonsTally()
        self.yields: Final = YieldsTally()
        #: Assumed typing errors per word.
        self.slip_rates: set[float] = set()
        self.plainest: Final = PlainestTally(MOST_PLAINEST)
        numbers = DialogueNumbers()
        self.rates: Final = RatesTally(numbers)
        self._summary, self._ledger = SummaryTally(numbers), LedgerTally()
        self._applied = AppliedTally()
        self._failures: Counter[Failure] = Counter()
        #: For each dialogue: rewrites without a change of the state, rewrites that were run, and
        #: turns that were not skipped.
        self._dialogues = DialogueSums(3, numbers)

    def add(self, turn: TurnResult) -> None:
        """Count a result."""
        self.count += 1
        self.outcomes[turn.outcome] += 1
        for tally in (self.reasons, self.rates, self.yields, self.plainest):
            tally.add(turn)
        self._summary.add(turn)
        self._ledger.add(turn)
        self._applied.add(turn)
        if turn.noise is not None:
            self.slip_rates.add(turn.noise.slip_rate)
        kinds = Counter[Failure](variant.failure or "changed" for variant in turn.violations)
        self._failures.update(kinds)
        run = sum(variant.valid for variant in turn.variants)
        self._dialogues.add(turn.dialogue_id, kinds["stuck"], run, turn.outcome != "skipped")

    @cached_property
    def summary(self) -> Summary:
        """The figures of its results."""
        return self._summary.summary

    @cached_property
    def ledger(self) -> Ledger:
        """The counts of variants by outcome, transformation and operator."""
        return self._ledger.ledger

    @property
    def dialogues(self) -> int:
        """Number of dialogues with a turn that was not skipped."""
        return sum(run > 0 for (run,) in self._dialogues.rows(2))

    @property
    def follows(self) -> bool:
        """Whether the relation expects the answer to change with the edits."""
        return self.side == "should-change"

    @property
    def unit(self) -> str:
        """The unit of the relation's results: ``turn`` or ``dialogue``."""
        return self.facts.unit

    @cached_property
    def inapplicable(self) -> dict[str, int]:
        """The numbers of turns the relation does not apply to, by reason, most frequent first."""
        return self._applied.reasons

    @property
    def applicable(self) -> int:
        """The number of turns or dialogues that the relation applies to."""
        return self._applied.applied

    @property
    def applied(self) -> str:
        """A sentence if the relation did not apply to all turns, otherwise ``""``."""
        return describe_applied(self.name, self.applicable, self.inapplicable, self.unit)

    @cached_property
    def failures(self) -> dict[Failure, int]:
        """Number of violations of each kind, including kinds with none."""
        return {kind: self._failures[kind] for kind in FAILURES}

    @property
    def unjudged(self) -> bool:
        """Whether the tracker failed on every rewrite."""
        return bool(self.summary.valid) and not self.summary.answered

    @property
    def over_stability(self) -> float | None:
        """Share of rewrites that should change the state but did not change it at all.

        ``None`` if no rewrite has an answer, or if the state should stay.
        """
        told = self.follows and self.summary.answered
        return ratio(self.failures["stuck"], self.summary.valid) if told else None

    @cached_property
    def over_stability_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `over_stability` over dialogues; ``None`` with too few dialogues."""
        known = self.over_stability is not None
        return ratio_interval(self._dialogues.pairs(0, 1)) if known else None

    def ledger_json(self) -> dict[str, Any]:
        """Return the relation's ledger in the form of a report."""
        yields = self.yields
        return {
            **self.ledger.to_json(),
            "domains": {name: row.to_json() for name, row in yields.domains.items()},
            "slots": {name: row.to_json() for name, row in yields.slots.items()},
            "vetoes": self.reasons.vetoes,
            "causes": self.reasons.causes,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the relation's entry in the JSON report. Floats are not rounded."""
        interval = self.over_stability_interval
        return {
            "name": self.name,
            "side": self.side,
            "unit": self.facts.unit,
            "edits": self.facts.edits,
            "expects": self.facts.expects,
            "source": self.facts.source,
            "applicable": self.applicable,
            "inapplicable": self.inapplicable,
            "applied": self.applied,
            "failures": dict(self.failures),
            "over_stability": self.over_stability,
            "over_stability_interval": None if interval is None else list(interval),
            "summary": self.summary.to_json(),
            "ledger": self.ledger_json(),
        }


#: Number of simplest violations of the run.
_MOST_PLAINEST: Final = 20


class Totals:
    """The figures of each relation, and figures over all relations.

    Add all turns before you read the figures.
    """

    def __init__(
        self,
        facts: Mapping[str, RelationFacts] | None = None,
        fallbacks: tuple[str, ...] = (),
        redact: Callable[[TurnResult], TurnResult] | None = None,
        accepted: Mapping[str, str] | None = None,
        words: str | None = None,
    ) -> None:
        """Create empty totals.

        Args:
            facts: properties of relations by name.
            fallbacks: regular expressions of replies without an answer, in addition to the known
                ones.
            redact: a function that removes the texts from a result; ``None`` = texts may be shown.
                Weaknesses are computed before the texts are removed.
            accepted: weakness -> the reason why it is accepted.
            words: the words of the ontology, separated by blanks. They are the vocabulary of a
                spelling corrector, whose effect is measured. ``None`` = it is not measured.
        """
        self._facts, self._fallbacks, self._redact = facts or {}, fallbacks, redact
        #: Names of the relations in the order of the settings. Others come after them.
        self.order: tuple[str, ...] = ()
        #: Relations by name, in order of their first results.
        self.relations: dict[str, RelationTotals] = {}
        self.count = 0
        self.cases: Final = CasesTally()
        self.replies: Final = SpreadTally()
        self.plainest: Final = PlainestTally(_MOST_PLAINEST)
        self.troubles: Final = TroublesTally(hidden=redact is not None)
        #: Violations that are in the baseline, once known.
        self.novelty = Novelty()
        #: Sections from hooks of other packages.
        self.added: tuple[AddedSection, ...] = ()
        #: Skipped turns by relation, number of their dialogues, and the first reason.
        self.skipped: Counter[str] = Counter()
        self._skipped_dialogues = DistinctCount()
        #: Turns with missing variants, and the maximum number of missing variants.
        self.unfinished = self.left_out = 0
        #: Whether the clean reply to a turn is a fallback.
        self._unanswered = LastByTurn(1)
        self.why_skipped = ""
        #: Turns with a violation.
        self.broken = 0
        corrector = None if words is None else SpellingCorrector(words.split())
        self._weaknesses, self._accepted = WeaknessTally(corrector), accepted or {}
        self._answers = dict[str, AnswersTally]()
        self._together = AnswersTally(self._fallbacks)

    @classmethod
    def of(
        cls,
        results: Iterable[TurnResult],
        facts: Mapping[str, RelationFacts] | None = None,
        fallbacks: tuple[str, ...] = (),
        redact: Callable[[TurnResult], TurnResult] | None = None,
        words: str | None = None,
    ) -> Self:
        """Return the totals of results. For the arguments see `__init__`."""
        return tally_results(cls(facts, fallbacks, redact, words=words), results)

    def add(self, turn: TurnResult, group: str = "") -> None:
        """Count a result. ``group`` separates the results of several tests or trackers."""
        self.troubles.add(turn, group)
        self._weaknesses.add(turn)
        alone = self._answers.setdefault(group, AnswersTally(self._fallbacks))
        for answers in (self._together, alone):
            answers.add(turn)
        self._add_shown(turn if self._redact is None else self._redact(turn))

    def _add_shown(self, turn: TurnResult) -> None:
        name = turn.relation
        if name not in self.relations:
            facts = self._facts.get(name, RelationFacts())
            self.relations[name] = RelationTotals(name, turn.side, facts, turn.kind)
        self.count += 1
        for tally in (self.relations[name], self.cases, self.replies, self.plainest):
            tally.add(turn)
        if not turn.kind.words.values and turn.clean_state is not None:
            reply = turn.kind.text(turn.clean_state)
            self._unanswered.add(turn.id, is_fallback(reply, self._fallbacks))
        self.broken += bool(turn.violations)
        if turn.left_out and turn.outcome != "skipped":
            self.unfinished += 1
            self.left_out += turn.left_out
            self.why_skipped = self.why_skipped or turn.reason
        if turn.outcome == "skipped":
            self.skipped[name] += 1
            self._skipped_dialogues.add(turn.dialogue_id)
            self.why_skipped = self.why_skipped or turn.reason

    @cached_property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """The weaknesses behind the violations, worst first."""
        return tuple(map(self._shown, self._weaknesses.weaknesses))

    @property
    def mending(self) -> Mending | None:
        """The effect of a spelling corrector; ``None`` if it was not measured."""
        return self._weaknesses.mending

    def _shown(self, weakness: Weakness) -> Weakness:
        """Return a weakness for display: redacted if necessary, with the reason if accepted."""
        found = replace(weakness, accepted=self._accepted.get(weakness.id, ""))
        if self._redact is None:
            return found
        member = weakness.example
        turn = self._redact(replace(member.turn, variants=(member.variant,)))
        example = Member(turn, turn.variants[0], member.reading._replace(words=()))
        return replace(found, words=(), example=example)

    @property
    def one_answer(self) -> tuple[str, ...]:
        """One text for each tracker that gives the same answer to all clean turns."""
        parts = [one.text for _, one in sorted(self._answers.items())]
        # Several tests with few turns and different settings may have the same tracker.
        both = [*parts, "" if any(parts) else self._together.text]
        return tuple(dict.fromkeys(filter(None, both)))

    @property
    def in_order(self) -> tuple[RelationTotals, ...]:
        """The figures of each relation, in the order of the settings."""
        names = dict.fromkeys([*self.order, *self.relations])
        return tuple(self.relations[name] for name in names if name in self.relations)

    @property
    def widest(self) -> RelationTotals:
        """The figures of the relation with the most results."""
        return max(self.in_order, key=lambda one: one.count, default=self.first(""))

    def sections(self, named: str) -> tuple[RelationTotals, ...]:
        """Return the figures of each relation with results.

        Relations in ``named``, which are separated by commas, come first, in this order.
        """
        asked = [name for name in named.split(",") if name in self.relations]
        names = dict.fromkeys([*asked, *sorted(self.relations)])
        return tuple(self.relations[name] for name in names)

    def first(self, named: str) -> RelationTotals:
        """Return the figures of the first relation. A report on one relation shows these."""
        for one in self.sections(named):
            return one
        return RelationTotals("", "should-not-change", RelationFacts(), BELIEF_STATES)

    @property
    def kind(self) -> AnswerKind:
        """The tested kind of answer. A run has only one."""
        return next((one.kind for one in self.relations.values()), BELIEF_STATES)

    @property
    def skipped_dialogues(self) -> int:
        """Number of dialogues with a turn that was not run."""
        return self._skipped_dialogues.value

    @property
    def fallbacks(self) -> tuple[int, int]:
        """Count the distinct turns whose clean reply is a fallback, and those with any reply."""
        rows = self._unanswered.rows()
        return sum(none > 0 for (none,) in rows), len(rows)

    @property
    def in_other_languages(self) -> int:
        """Number of distinct turns that were not edited because they are not in English."""
        sections = self.relations.values()
        return max((one.inapplicable.get(OTHER_LANGUAGE, 0) for one in sections), default=0)

    @cached_property
    def outcomes(self) -> Counter[TurnOutcome]:
        """The number of results by the outcome of their turn."""
        return sum((one.outcomes for one in self.relations.values()), Counter[TurnOutcome]())

    @cached_property
    def errors(self) -> dict[str, int]:
        """Reasons of errors and their counts, the most frequent first."""
        counts: Counter[str] = Counter()
        for one in self.relations.values():
            counts.update(one.reasons.errors)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def outcome_columns(sections: Sequence[RelationTotals], *, follows: bool) -> dict[str, list[int]]:
    """Return table columns: for each relation, the numbers of rewrites by outcome.

    There is a column for errors if the tracker failed on a rewrite. Such a rewrite neither holds
    nor breaks the relation.
    """
    kinds: tuple[Failure, ...] = ("stuck", "partial", "other") if follows else ("changed",)
    columns = {"held": [one.summary.held for one in sections]}
    columns |= {kind: [one.failures[kind] for one in sections] for kind in kinds}
    if follows and any(changed := [one.failures["changed"] for one in sections]):
        # Relations with custom verdicts may not report how a variant failed.
        columns["changed"] = changed
    if any(errors := [one.summary.errors for one in sections]):
        columns["errors"] = errors
    return columns
