"""The relations of a session, each with its results: no figure is ever made of two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pytest_dstfuzz.campaign.applied import AppliedTally
from pytest_dstfuzz.campaign.ledger import Counts, LedgerTally
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, SummaryTally, YieldsTally
from pytest_dstfuzz.gate.baseline import Session
from pytest_dstfuzz.gate.limits import Gates, Kind, Limits, Part
from pytest_dstfuzz.gate.verdict import Gate, LimitFinding
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.printable import listed

#: What a relation that has no table of its own has there.
_NONE: Final = Limits()
#: Relations that a sentence names.
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class Tested:
    """One relation of a session."""

    name: str
    #: Whether the state must change under it.
    must_change: bool
    #: ``None`` = the whole session: it has no other relation.
    part: Part | None
    #: Its own limits, where it has any.
    own: Limits
    summary: Summary
    #: How many results it has, and what of the answers was tested.
    count: int
    kind: AnswerKind
    #: Whether there is a noise model.
    noisy: bool
    _rows: Mapping[Kind, Mapping[str, Counts]]
    #: Whether it makes the edits itself, and no search.
    own_edits: bool = False
    #: To how many turns it applied, and to how many it did not, by reason.
    applied: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    def counts_of(self, part: Part) -> Counts:
        """Return what became of the variants of a domain, slot or transformation."""
        return self._rows[part.kind].get(part.name, Counts())

    def limit(self, whole: float | None, own: float | None) -> tuple[Part | None, float] | None:
        """Return the limit that holds for it of one kind, and what that is a limit of."""
        if own is not None:
            return Part("relation", self.name), own
        return None if self.must_change or whole is None else (self.part, whole)


class RelationsTally:
    """Adds up the figures of the relations of a session, one turn after the other."""

    def __init__(self, session: Session) -> None:
        self._session: Final = session
        self._found: dict[str, _OfRelation] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in a turn."""
        if (one := self._found.get(turn.relation)) is None:
            one = self._found[turn.relation] = _OfRelation(turn)
        one.add(turn)

    def tested(self, gates: Gates) -> list[Tested]:
        """Return the relations in the order in which they were named."""
        session = self._session
        names = dict.fromkeys([*session.relations, *self._found])
        several = len(self._found) > 1
        return [
            Tested(
                name,
                one.must_change,
                Part("relation", name) if several else None,
                gates.parts.get(Part("relation", name), _NONE),
                one.summary.summary if several else session.summary,
                one.count,
                one.kind,
                one.noisy,
                {
                    "domain": one.yields.domains,
                    "slot": one.yields.slots,
                    "transformation": one.ledger.ledger.transformations,
                },
                name in session.own_edits,
                one.applied.applied,
                one.applied.reasons,
            )
            for name in names
            if (one := self._found.get(name))
        ]


class _OfRelation:
    """The figures of one relation."""

    def __init__(self, first: TurnResult) -> None:
        self.must_change = first.side == "should-change"
        self.kind = first.kind
        self.count, self.noisy = 0, False
        self.summary, self.yields, self.ledger = SummaryTally(), YieldsTally(), LedgerTally()
        self.applied = AppliedTally()

    def add(self, turn: TurnResult) -> None:
        self.count += 1
        self.noisy = self.noisy or turn.noise is not None
        for tally in (self.summary, self.yields, self.ledger, self.applied):
            tally.add(turn)


def unapplied(name: str, said: str) -> LimitFinding:
    """Say that a relation applied to no turn: of what it is about nothing is known."""
    return LimitFinding(Part("relation", name), "applies", None, "inconclusive", said)


def own_tables(names: Sequence[str]) -> str:
    """Say in which tables relations have limits of their own.

    >>> own_tables(["negation"])
    'in [tool.dstfuzz.gates.relation.negation]'
    """
    such = "such as " if len(names) > 1 else ""
    return f"{such}in [tool.dstfuzz.gates.relation.{names[0]}]"


def main_of(found: Sequence[Tested]) -> Tested | None:
    """Return the relation of which limits of domains, slots and transformations are.

    It is the first under which nothing may change.
    """
    return next((one for one in found if not one.must_change), next(iter(found), None))


def unjudged(every: Sequence[Tested], gates: Gates, *, compared: bool) -> tuple[str, ...]:
    """Return the names of the relations that none of the limits is about; none without a limit.

    ``compared`` = with a baseline, against which one under which nothing may change is judged.
    """
    if not (gates.of_violations or compared):
        return ()
    main, rise = main_of(every), gates.whole.max_expected_failures
    of_parts = any(part.kind != "relation" for part in gates.parts)
    return tuple(
        one.name
        for one in every
        if one.limit(gates.whole.max_failure_rate, one.own.max_failure_rate) is None
        and not (compared and (one.own.max_regression is not None or not one.must_change))
        and not (one is main and of_parts)
        and not (rise is not None and not one.own_edits)
    )


def idle(gates: Gates, found: Sequence[Tested]) -> LimitFinding:
    """Say that there are limits, and that none of them is about what was tested."""
    of = listed([str(part) for part in gates.parts], _MOST_NAMES)
    names = listed([one.name for one in found], _MOST_NAMES)
    reason = f"no limit judged anything: there are limits of {of}, none of {names}"
    return LimitFinding(None, "max-failure-rate", None, "inconclusive", reason)


def unnamed(gate: Gate, limit: float, found: Sequence[Tested]) -> LimitFinding:
    """Say that a limit was given for the session, and that it holds for none of its relations."""
    names = [one.name for one in found]
    each = names[0] if len(names) == 1 else f"each of {listed(names, _MOST_NAMES)}"
    reason = (
        f"{gate} of the session is a limit of relations under which nothing may change: give "
        f"{each} one of its own, {own_tables(names)}"
    )
    return LimitFinding(None, gate, limit, "inconclusive", reason)
