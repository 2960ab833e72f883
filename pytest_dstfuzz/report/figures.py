"""Figures that pages show beside the summary: rates by group with intervals, the heat map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Counts, column
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import yields_by_domain, yields_by_slot
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS

Interval = tuple[float, float]

#: Upper ends of the ranges of edit rates; what is over the last has a range of its own.
_EDIT_RATE_ENDS = (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
_IN_PERCENT = [f"{100 * end:g}" for end in _EDIT_RATE_ENDS]
#: Names of the ranges, in order; each range holds its upper end.
EDIT_RATE_RANGES = (
    "none",
    *(f"{low} to {high} %" for low, high in pairwise(_IN_PERCENT)),
    f"over {_IN_PERCENT[-1]} %",
)


@dataclass(frozen=True, slots=True)
class RateRow:
    """Counts of a group of variants, and the intervals of its rates (95 %, over dialogues)."""

    name: str
    counts: Counts
    valid_interval: Interval | None
    failure_interval: Interval | None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Counts by slot, as a table of slot names by domains.

    Attributes:
        domains: the columns; ``""`` holds slots without a domain.
        totals: of each domain; ``None`` for the column without one.
        rows: name of a slot, and its counts in each domain (``None`` = there is no such slot); of
            tools the name of an argument, ``""`` = the call itself.
        between: what parts domain and name in the name of a slot.
    """

    domains: tuple[str, ...]
    totals: tuple[Counts | None, ...]
    rows: tuple[tuple[str, tuple[Counts | None, ...]], ...]
    between: str = "-"

    def slot(self, domain: str, name: str) -> str:
        """Return the whole name of a slot."""
        return self.between.join(filter(None, (domain, name)))


def by_transformation(turns: Sequence[TurnResult]) -> list[RateRow]:
    """Return the rates of each transformation, by name.

    A variant is counted once for each transformation that edited it; its violation only
    where its own edits caused it, as in the ledger.
    """
    rows = _rates(turns, lambda variant: {edit.transformation for edit in variant.edits})
    return sorted(rows, key=lambda row: row.name)


def by_edit_rate(turns: Sequence[TurnResult]) -> dict[str, dict[str, RateRow]]:
    """Return the rates of valid variants by range of their edit rate in words and in characters.

    Violations are credited as in `by_transformation`, since a rate is that of the own edits.
    """
    return {
        "words": _by_range(turns, lambda variant: variant.edit_w),
        "characters": _by_range(turns, lambda variant: variant.edit_c),
    }


def _by_range(
    turns: Sequence[TurnResult], rate: Callable[[VariantResult], float]
) -> dict[str, RateRow]:
    rows = _rates(turns, lambda one: [edit_rate_range(rate(one))] if one.valid else [])
    return {row.name: row for row in sorted(rows, key=lambda row: EDIT_RATE_RANGES.index(row.name))}


def edit_rate_range(rate: float) -> str:
    """Return the name of the range that an edit rate lies in."""
    place = next((n for n, end in enumerate(_EDIT_RATE_ENDS) if rate <= end), -1)
    return EDIT_RATE_RANGES[place]


def heat_map(turns: Sequence[TurnResult]) -> HeatMap:
    """Return the counts of slots and domains; see `campaign.summary.yields_by_slot`."""
    totals = yields_by_domain(turns)
    calls = any(turn.outcome_kind == TOOL_CALLS for turn in turns)
    cells: dict[tuple[str, str], Counts] = {}
    for slot, counts in yields_by_slot(turns).items():
        domain, dash, name = slot.partition("-")
        if calls:
            # Of tools whose names begin alike the longest one is it.
            domain = max((tool for tool in totals if _is_of(slot, tool)), key=len, default="")
            cells[domain, slot.removeprefix(domain).removeprefix(".")] = counts
        else:
            cells[(domain, name) if dash else ("", slot)] = counts
    domains = sorted({domain for domain, _ in cells})
    names = sorted({name for _, name in cells})
    return HeatMap(
        domains=tuple(domains),
        totals=tuple(totals.get(domain) for domain in domains),
        rows=tuple(
            (name, tuple(cells.get((domain, name)) for domain in domains)) for name in names
        ),
        between="." if calls else "-",
    )


def _is_of(slot: str, tool: str) -> bool:
    return slot == tool or slot.startswith(f"{tool}.")


def _rates(
    turns: Sequence[TurnResult],
    groups: Callable[[VariantResult], Iterable[str]],
) -> list[RateRow]:
    """Return a row for each group that ``groups`` puts a variant in."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for turn in turns:
        for variant in turn.variants:
            credited = column(variant, credit=True)
            for name in groups(variant):
                dialogues = found.setdefault(name, {})
                dialogues.setdefault(turn.dialogue_id, Counter())[credited] += 1
    rows = []
    for name, dialogues in found.items():
        parts = [Counts(**counts) for counts in dialogues.values()]
        valid = [(part.valid, part.generated) for part in parts]
        total = sum(parts, Counts())
        failed = [(part.violations, part.valid) for part in parts if total.answered]
        intervals = (ratio_interval(valid), ratio_interval(failed))
        rows.append(RateRow(name, total, *intervals))
    return rows
