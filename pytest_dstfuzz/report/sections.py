"""The results of each relation by itself: figures of two sides that are never added up.

A tracker that changes its mind too easily breaks relations under which the state is to stay; one
that never changes it breaks those under which it is to follow. One number for both would let
either fault hide the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

from pytest_dstfuzz.campaign.applied import AppliedTally, applied_text
from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Ledger, LedgerTally, ratio
from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.campaign.summary import Summary, SummaryTally, YieldsTally
from pytest_dstfuzz.campaign.sums import DialogueNumbers, DialogueSums
from pytest_dstfuzz.kinds.kind import AnswerKind, Words
from pytest_dstfuzz.relations.rewrite import Failure, Side, Unit
from pytest_dstfuzz.report.figures import RatesTally
from pytest_dstfuzz.report.plainest import PlainestTally
from pytest_dstfuzz.report.tally import ReasonsTally

#: The plainest violations that are at hand of each relation.
MOST_PLAINEST: Final = 5
FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """What a relation says of itself, which its results do not tell."""

    #: What it expects, as a sentence.
    expects: str = ""
    #: Where its word lists come from, and their licence.
    source: str = ""
    unit: Unit = "turn"
    #: Whether the search edits the turns, or the relation itself.
    edits: Literal["search", "own"] = "search"


class Section:
    """What was found under one relation: figures from one pass over its results.

    Turns are taken in first; the figures are read when all are in.
    """

    def __init__(self, name: str, side: Side, facts: RelationFacts, kind: AnswerKind) -> None:
        self.name: Final = name
        self.side: Final = side
        self.facts: Final = facts
        #: What of the answers was tested.
        self.kind: Final = kind
        #: How many results there are, and results by what became of the turns.
        self.count = 0
        self.outcomes: Counter[TurnOutcome] = Counter()
        self.reasons: Final = ReasonsTally()
        self.yields: Final = YieldsTally()
        #: Slips per word that its probabilities are reckoned with.
        self.slip_rates: set[float] = set()
        self.plainest: Final = PlainestTally(MOST_PLAINEST)
        numbers = DialogueNumbers()
        self.rates: Final = RatesTally(numbers)
        self._summary, self._ledger = SummaryTally(numbers), LedgerTally()
        self._applied = AppliedTally()
        self._failures: Counter[Failure] = Counter()
        #: Rewrites that left the state as it was, those that were run, turns that were not skipped.
        self._dialogues = DialogueSums(3, numbers)

    def add(self, turn: TurnResult) -> None:
        """Take in a result."""
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
        """What became of every variant."""
        return self._ledger.ledger

    @property
    def dialogues(self) -> int:
        """Dialogues with a turn that was not skipped."""
        return sum(run > 0 for (run,) in self._dialogues.rows(2))

    @property
    def follows(self) -> bool:
        """Whether the state is to follow what was edited."""
        return self.side == "should-change"

    @property
    def unit(self) -> str:
        """What it has one result for, as a word."""
        return self.facts.unit

    @property
    def words(self) -> Words:
        """What reports call what was tested."""
        return self.kind.words

    @cached_property
    def inapplicable(self) -> dict[str, int]:
        """How many it says nothing about, by reason, the most frequent first."""
        return self._applied.reasons

    @property
    def applicable(self) -> int:
        """For how many turns, or dialogues, it says something."""
        return self._applied.applied

    @property
    def applied(self) -> str:
        """That it applied to a part of the turns only, and why; ``""`` = it applied to all."""
        return applied_text(self.name, self.applicable, self.inapplicable, self.unit)

    @cached_property
    def failures(self) -> dict[Failure, int]:
        """How many violations there are of each kind, all kinds named."""
        return {kind: self._failures[kind] for kind in FAILURES}

    @property
    def unjudged(self) -> bool:
        """Whether rewrites were run and the tracker failed on each of them."""
        return bool(self.summary.valid) and not self.summary.answered

    @property
    def over_stability(self) -> float | None:
        """Share of the rewrites that were run at which the state stayed.

        ``None`` where none was answered, and where the state is to stay.
        """
        told = self.follows and self.summary.answered
        return ratio(self.failures["stuck"], self.summary.valid) if told else None

    @cached_property
    def over_stability_interval(self) -> tuple[float, float] | None:
        """Its 95 % interval over dialogues; ``None`` where there are too few, as in `Summary`."""
        known = self.over_stability is not None
        return ratio_interval(self._dialogues.pairs(0, 1)) if known else None

    def ledger_json(self) -> dict[str, Any]:
        """Return its ledger as a report has it."""
        yields = self.yields
        return {
            **self.ledger.to_json(),
            "domains": {name: row.to_json() for name, row in yields.domains.items()},
            "slots": {name: row.to_json() for name, row in yields.slots.items()},
            "vetoes": self.reasons.vetoes,
            "causes": self.reasons.causes,
        }

    def to_json(self) -> dict[str, Any]:
        """Return its entry in the JSON report; floats keep their value."""
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


def outcome_columns(sections: Sequence[Section], *, follows: bool) -> dict[str, list[int]]:
    """Return the columns of a table of relations of one side: what came of their rewrites.

    Errors have one where the tracker failed: what got no answer did not hold.
    """
    kinds: tuple[Failure, ...] = ("stuck", "partial", "other") if follows else ("changed",)
    columns = {"held": [one.summary.held for one in sections]}
    columns |= {kind: [one.failures[kind] for one in sections] for kind in kinds}
    if follows and any(changed := [one.failures["changed"] for one in sections]):
        # Of relations that judge by themselves and do not say how it failed.
        columns["changed"] = changed
    if any(errors := [one.summary.errors for one in sections]):
        columns["errors"] = errors
    return columns
