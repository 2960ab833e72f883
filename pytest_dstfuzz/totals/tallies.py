"""Small tallies of results: reasons, rates by group, spread of replies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.figures import (
    Counts,
    DialogueNumbers,
    DialogueSums,
    LastByTurn,
    column,
    ratio_interval,
)
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import YieldsTally
from pytest_dstfuzz.kinds.kind import AnswerKind

Interval = tuple[float, float]

_NO_REASON: Final = "no reason given"
#: Marks an unknown value, because counts and distances are not negative.
UNKNOWN: Final = -1.0

#: Upper ends of the ranges of edit rates. There is one more range for larger rates.
_EDIT_RATE_ENDS = (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
_IN_PERCENT = [f"{100 * end:g}" for end in _EDIT_RATE_ENDS]
#: Names of the ranges, in order. Each range includes its upper end.
EDIT_RATE_RANGES = (
    "none",
    *(f"{low} to {high} %" for low, high in pairwise(_IN_PERCENT)),
    f"over {_IN_PERCENT[-1]} %",
)


#: Maximum number of domains and of names of slots in a `HeatMap`.
_MOST_DOMAINS, _MOST_NAMES = 60, 300


@dataclass(frozen=True, slots=True)
class RateRow:
    """Counts of a group of variants, and the 95 % intervals of its rates."""

    name: str
    counts: Counts
    valid_interval: Interval | None
    failure_interval: Interval | None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Counts by slot, as a table of slot names by domains.

    Attributes:
        domains: the columns; ``""`` has slots without a domain.
        totals: counts of each domain; ``None`` for the column without domain.
        rows: name of a slot with its counts in each domain (``None`` = the domain has no such
            slot). For tools, the name is that of an argument; ``""`` = the call itself.
        between: separator of domain and name in the full name of a slot.
        left_out: number of slots with fewer violations, for which the table has no room.
    """

    domains: tuple[str, ...]
    totals: tuple[Counts | None, ...]
    rows: tuple[tuple[str, tuple[Counts | None, ...]], ...]
    between: str = "-"
    left_out: int = 0

    def slot(self, domain: str, name: str) -> str:
        """Return the full name of a slot."""
        return self.between.join(filter(None, (domain, name)))


class RatesTally:
    """Computes the rates of transformations and of ranges of edit rates.

    A variant counts once for each of its transformations. As in a `Ledger`, a violation counts only
    if the variant's own edits caused it. Ranges of edit rates count only valid variants.
    """

    def __init__(self, numbers: DialogueNumbers | None = None) -> None:
        numbers = DialogueNumbers() if numbers is None else numbers
        self._groups: defaultdict[tuple[str, str], _RateSums] = defaultdict(
            lambda: _RateSums(numbers)
        )

    def add(self, turn: TurnResult) -> None:
        """Count the variants of a turn."""
        for variant in turn.variants:
            credited = column(variant, credit=True)
            groups = {("", edit.transformation) for edit in variant.edits}
            if variant.valid:
                groups.add(("words", edit_rate_range(variant.edit_w)))
                groups.add(("characters", edit_rate_range(variant.edit_c)))
            for group in groups:
                self._groups[group].add(turn.dialogue_id, credited)

    @property
    def transformations(self) -> list[RateRow]:
        """The rates of each transformation, by name."""
        return [self._groups[key].row(key[1]) for key in sorted(self._groups) if not key[0]]

    @property
    def edit_rates(self) -> dict[str, dict[str, RateRow]]:
        """The rates by range of the edit rate, in words and in characters."""
        return {
            kind: {
                name: self._groups[kind, name].row(name)
                for name in EDIT_RATE_RANGES
                if (kind, name) in self._groups
            }
            for kind in ("words", "characters")
        }


class _RateSums:
    """Counts of a group of variants, with sums by dialogue for the intervals."""

    def __init__(self, numbers: DialogueNumbers) -> None:
        self._counts: Counter[str] = Counter()
        #: Violations, valid and generated variants.
        self._dialogues = DialogueSums(3, numbers)

    def add(self, dialogue: str, credited: str) -> None:
        self._counts[credited] += 1
        one = Counts(**{credited: 1})
        self._dialogues.add(dialogue, one.violations, one.valid, 1)

    def row(self, name: str) -> RateRow:
        counts = Counts(**self._counts)
        failed = ratio_interval(self._dialogues.pairs(0, 1)) if counts.answered else None
        return RateRow(name, counts, ratio_interval(self._dialogues.pairs(1, 2)), failed)


def edit_rate_range(rate: float) -> str:
    """Return the name of the range of an edit rate. The rate is first rounded as in reports."""
    shown = round(rate, 4)
    place = next((n for n, end in enumerate(_EDIT_RATE_ENDS) if shown <= end), -1)
    return EDIT_RATE_RANGES[place]


def heat_map(yields: YieldsTally, kind: AnswerKind) -> HeatMap:
    """Return the counts by slot and domain for a kind of answer."""
    totals, calls = yields.domains, kind.has_tools
    cells: dict[tuple[str, str], Counts] = {}
    for slot, counts in yields.slots.items():
        domain, dash, name = slot.partition("-")
        if calls:
            # If several tool names are prefixes, the longest one is the tool.
            domain = max((tool for tool in totals if _is_of(slot, tool)), key=len, default="")
            cells[domain, slot.removeprefix(domain).removeprefix(".")] = counts
        else:
            cells[(domain, name) if dash else ("", slot)] = counts
    domains = _pick_most_violated(
        ((domain, one) for (domain, _), one in cells.items()), _MOST_DOMAINS
    )
    shown = {place: one for place, one in cells.items() if place[0] in domains}
    names = _pick_most_violated(((name, one) for (_, name), one in shown.items()), _MOST_NAMES)
    return HeatMap(
        domains=tuple(domains),
        totals=tuple(totals.get(domain) for domain in domains),
        rows=tuple(
            (name, tuple(cells.get((domain, name)) for domain in domains)) for name in names
        ),
        between="." if calls else "-",
        left_out=sum(domain not in domains or name not in names for domain, name in cells),
    )


def _pick_most_violated(counts: Iterable[tuple[str, Counts]], most: int) -> dict[str, None]:
    """Return the names with the most violations, and then the most variants, sorted by name."""
    ranks: dict[str, tuple[int, int]] = {}
    for name, one in counts:
        violations, valid = ranks.get(name, (0, 0))
        ranks[name] = violations - one.violations, valid - one.valid
    first = sorted(ranks, key=lambda name: (ranks[name], name))[:most]
    return dict.fromkeys(sorted(first))


def _is_of(slot: str, tool: str) -> bool:
    return slot == tool or slot.startswith(f"{tool}.")


class ReasonsTally:
    """Counts forbidden variants by lock, violations by cause, and errors by reason."""

    def __init__(self) -> None:
        self._vetoes: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._sizes: Counter[int] = Counter()
        self._errors: Counter[str] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Count a turn."""
        unanswered = turn.outcome == "error" and turn.clean_state is None
        if unanswered:
            self._errors[turn.reason] += 1
        for variant in turn.variants:
            if variant.outcome == "vetoed":
                # The text before the first colon names the lock.
                self._vetoes[variant.reason.partition(":")[0].strip() or "unnamed"] += 1
            elif variant.outcome == "violation":
                self._causes[variant.cause or "unknown"] += 1
                if variant.minimal is not None:
                    self._sizes[variant.minimal.size] += 1
            elif variant.outcome == "error" and not unanswered:
                self._errors[variant.reason] += 1

    @property
    def vetoes(self) -> dict[str, int]:
        """Number of vetoes by each lock, the highest first."""
        return rank_counts(self._vetoes)

    @property
    def causes(self) -> dict[str, int]:
        """The violations by cause; ``unknown`` if the cause was not determined."""
        return rank_counts(self._causes)

    @property
    def sizes(self) -> dict[int, int]:
        """The violations by number of edits in their minimal versions."""
        return dict(sorted(self._sizes.items()))

    @property
    def errors(self) -> dict[str, int]:
        """Reasons of errors and their counts, the most frequent first."""
        return rank_counts(self._errors)


class AppliedTally:
    """Counts the turns that a relation applied to, and the reasons if it did not."""

    def __init__(self) -> None:
        self.applied = 0
        self._reasons: Counter[str] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Count a turn."""
        if turn.outcome == "inapplicable":
            self._reasons[turn.reason or _NO_REASON] += 1
        elif turn.outcome != "skipped" and turn.clean_state is not None:
            self.applied += 1

    @property
    def reasons(self) -> dict[str, int]:
        """The numbers of turns it did not apply to, by reason, the most frequent first."""
        return rank_counts(self._reasons)


def describe_applied(name: str, applied: int, reasons: Mapping[str, int], unit: str) -> str:
    """Return a sentence if a relation did not apply to all turns, otherwise ``""``.

    Args:
        name: the name of the relation.
        applied: number of turns to which it applied.
        reasons: number of turns to which it did not apply, by reason, the most frequent first.
        unit: ``turn`` or ``dialogue``: the unit of the relation's results.

    >>> describe_applied("repair", 12, {"too long": 20, "said twice": 8}, "turn")
    'repair applied to 12 of 40 turns; main reason for the others (20): too long'
    >>> describe_applied("repair", 12, {}, "turn")
    ''
    """
    if not reasons:
        return ""
    asked, (reason, count) = applied + sum(reasons.values()), next(iter(reasons.items()))
    units = unit if asked == 1 else f"{unit}s"
    share = f"{applied:,} of {asked:,} {units}" if applied else f"none of {asked:,} {units}"
    others = f"for the others ({count:,})" if applied else f"({count:,})"
    return f"{name} applied to {share}; main reason {others}: {reason}"


class SpreadTally:
    """Measures how much a bot's replies to one clean turn differ. Ignores other answers.

    A turn counts once, even if several relations test it.
    """

    def __init__(self) -> None:
        #: For each turn: whether it has a reply, whether it is unstable, the number of answers, the
        #: number of kinds of answers, and the largest distance.
        self._turns = LastByTurn(5)

    def add(self, turn: TurnResult) -> None:
        """Count a turn."""
        if turn.kind.words.values:
            return
        own, largest = turn.own, None if turn.own is None else turn.own.largest
        self._turns.add(
            turn.id,
            turn.clean_state is not None,
            turn.reason == UNSTABLE,
            *(UNKNOWN, UNKNOWN) if own is None else (own.answers, own.kinds),
            UNKNOWN if largest is None else largest,
        )

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of every turn, with `UNKNOWN` for missing numbers."""
        return self._turns.rows()


def rank_counts(counts: Counter[str]) -> dict[str, int]:
    """Return counts by name, the highest first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
