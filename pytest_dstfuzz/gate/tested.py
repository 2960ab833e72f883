"""The relations of a session, each with its results: no figure is ever made of two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.campaign.ledger import Counts
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.gate.baseline import Session
from pytest_dstfuzz.gate.limits import Gates, Limits, Part
from pytest_dstfuzz.gate.verdict import LimitFinding
from pytest_dstfuzz.printable import listed
from pytest_dstfuzz.totals.totals import RelationTotals

#: What a relation that has no table of its own has there.
_NONE: Final = Limits()
#: Relations that a sentence names.
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class Tested:
    """One relation of a session, and the limits that are its own."""

    totals: RelationTotals
    #: ``None`` = the whole session: it has no other relation.
    part: Part | None
    #: Its own limits, where it has any.
    own: Limits

    @property
    def name(self) -> str:
        """Its name."""
        return self.totals.name

    @property
    def must_change(self) -> bool:
        """Whether the state must change under it."""
        return self.totals.follows

    @property
    def own_edits(self) -> bool:
        """Whether it makes the edits itself, and no search."""
        return self.totals.facts.edits == "own"

    @property
    def summary(self) -> Summary:
        """Its figures."""
        return self.totals.summary

    def counts_of(self, part: Part) -> Counts:
        """Return what became of the variants of a domain, slot or transformation."""
        rows: Mapping[str, Mapping[str, Counts]] = {
            "domain": self.totals.yields.domains,
            "slot": self.totals.yields.slots,
            "transformation": self.totals.ledger.transformations,
        }
        return rows[part.kind].get(part.name, Counts())

    def limit(self, whole: float | None, own: float | None) -> tuple[Part | None, float] | None:
        """Return the limit that holds for it of one kind, and what that is a limit of."""
        if own is not None:
            return Part("relation", self.name), own
        return None if self.must_change or whole is None else (self.part, whole)


def tested_relations(session: Session, gates: Gates) -> list[Tested]:
    """Return the relations of a session in the order in which they were named."""
    found = session.totals.in_order
    return [
        Tested(
            one,
            Part("relation", one.name) if len(found) > 1 else None,
            gates.parts.get(Part("relation", one.name), _NONE),
        )
        for one in found
    ]


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
    main, rise = main_of(every), gates.whole.get("max_expected_failures")
    of_parts = any(part.kind != "relation" for part in gates.parts)
    return tuple(
        one.name
        for one in every
        if one.limit(gates.whole.get("max_failure_rate"), one.own.get("max_failure_rate")) is None
        and not (compared and (one.own.get("max_regression") is not None or not one.must_change))
        and not (one is main and of_parts)
        and not (rise is not None and not one.own_edits)
    )


def idle(gates: Gates, found: Sequence[Tested]) -> LimitFinding:
    """Say that there are limits, and that none of them is about what was tested."""
    of = listed([str(part) for part in gates.parts], _MOST_NAMES)
    names = listed([one.name for one in found], _MOST_NAMES)
    reason = f"no limit judged anything: there are limits of {of}, none of {names}"
    return LimitFinding(None, "max-failure-rate", None, "inconclusive", reason)


def unnamed(gate: str, limit: float, found: Sequence[Tested]) -> LimitFinding:
    """Say that a limit was given for the session, and that it holds for none of its relations."""
    names = [one.name for one in found]
    each = names[0] if len(names) == 1 else f"each of {listed(names, _MOST_NAMES)}"
    reason = (
        f"{gate} of the session is a limit of relations under which nothing may change: give "
        f"{each} one of its own, {own_tables(names)}"
    )
    return LimitFinding(None, gate, limit, "inconclusive", reason)
