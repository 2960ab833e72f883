"""The results of each relation by itself: figures of two sides that are never added up.

A tracker that changes its mind too easily breaks relations under which the state is to stay; one
that never changes it breaks those under which it is to follow. One number for both would let
either fault hide the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import ledger, ratio
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import (
    Summary,
    summarise,
    yields_by_domain,
    yields_by_slot,
)
from pytest_dstfuzz.relations.rewrite import Failure, Side, Unit
from pytest_dstfuzz.report.tally import causes, vetoes

FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)
_NO_REASON: Final = "no reason given"


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


@dataclass(frozen=True)
class Section:
    """What was found under one relation."""

    name: str
    side: Side
    facts: RelationFacts
    results: tuple[TurnResult, ...]

    @cached_property
    def summary(self) -> Summary:
        """The figures of its results."""
        return summarise(self.results)

    @property
    def follows(self) -> bool:
        """Whether the state is to follow what was edited."""
        return self.side == "should-change"

    @property
    def unit(self) -> str:
        """What it has one result for, as a word."""
        return self.facts.unit

    @cached_property
    def applicable(self) -> int:
        """For how many turns, or dialogues, it says something."""
        return sum(
            turn.outcome not in ("inapplicable", "skipped") and turn.clean_state is not None
            for turn in self.results
        )

    @cached_property
    def inapplicable(self) -> dict[str, int]:
        """How many it says nothing about, by reason, the most frequent first."""
        found = Counter(
            turn.reason or _NO_REASON for turn in self.results if turn.outcome == "inapplicable"
        )
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def failures(self) -> dict[Failure, int]:
        """How many violations there are of each kind, all kinds named."""
        found = Counter(
            variant.failure or "changed" for turn in self.results for variant in turn.violations
        )
        return {kind: found[kind] for kind in FAILURES}

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
        sums: dict[str, tuple[int, int]] = {}
        for turn in self.results if self.over_stability is not None else ():
            stuck, run = sums.get(turn.dialogue_id, (0, 0))
            stuck += sum(variant.failure == "stuck" for variant in turn.violations)
            run += sum(variant.valid for variant in turn.variants)
            sums[turn.dialogue_id] = stuck, run
        return ratio_interval(list(sums.values()))

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
            "failures": dict(self.failures),
            "over_stability": self.over_stability,
            "over_stability_interval": None if interval is None else list(interval),
            "summary": self.summary.to_json(),
            "ledger": ledger_json(self.results),
        }


def sections_of(
    results: Iterable[TurnResult],
    named: str,
    facts: Mapping[str, RelationFacts] | None = None,
) -> tuple[Section, ...]:
    """Return a section for each relation that has results.

    Those that ``named`` lists, with commas between them, come first and in its order.
    """
    found: dict[str, list[TurnResult]] = {}
    for turn in results:
        found.setdefault(turn.relation, []).append(turn)
    asked = [name for name in named.split(",") if name in found]
    known = facts or {}
    return tuple(
        Section(name, turns[0].side, known.get(name, RelationFacts()), tuple(turns))
        for name in dict.fromkeys([*asked, *sorted(found)])
        if (turns := found[name])
    )


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


def first_of(results: Sequence[TurnResult], named: str) -> Sequence[TurnResult]:
    """Return the results of the first relation: what a report of one relation is about."""
    sections = sections_of(results, named)
    return sections[0].results if sections else results


def ledger_json(results: Sequence[TurnResult]) -> dict[str, Any]:
    """Return the ledger of some results as a report has it."""
    return {
        **ledger(results).to_json(),
        "domains": {name: row.to_json() for name, row in yields_by_domain(results).items()},
        "slots": {name: row.to_json() for name, row in yields_by_slot(results).items()},
        "vetoes": vetoes(results),
        "causes": causes(results),
    }
