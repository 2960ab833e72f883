"""What became of every generated variant: counts that add up, in all and by operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.sums import tallied

__all__ = ["Counts", "count", "ratio"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Variants by what became of them.

    ``generated == vacuous + duplicate + vetoed + over_rate + unstable + valid`` and
    ``valid == held + violations + uncredited + carried + improved + errors``, always.
    """

    vacuous: int = 0
    duplicate: int = 0
    vetoed: int = 0
    over_rate: int = 0
    held: int = 0
    violations: int = 0
    #: In rows of a transformation or operator: violations that its edits are not to
    #: blame for, because the perturbed context alone breaks the relation (or the budget
    #: ended before that was known). In the total, where every violation counts, 0.
    uncredited: int = 0
    carried: int = 0
    improved: int = 0
    errors: int = 0
    #: Run, and answered now so and now so: a sequential test decided nothing.
    unstable: int = 0

    @property
    def valid(self) -> int:
        """Variants that were run, and are not unstable."""
        broken = self.violations + self.uncredited + self.carried
        return self.held + broken + self.improved + self.errors

    @property
    def answered(self) -> int:
        """Variants that were run and got an answer: the tracker did not fail on them."""
        return self.valid - self.errors

    @property
    def generated(self) -> int:
        """All variants."""
        not_run = self.vacuous + self.duplicate + self.vetoed + self.over_rate
        return not_run + self.unstable + self.valid

    @property
    def valid_rate(self) -> float | None:
        """Valid / generated; ``None`` when nothing was generated."""
        return ratio(self.valid, self.generated)

    @property
    def failure_rate(self) -> float | None:
        """Violations / valid; ``None`` where no valid variant was answered."""
        return ratio(self.violations, self.valid) if self.answered else None

    @property
    def yield_rate(self) -> float | None:
        """The yield, violations / generated; ``None`` when nothing was generated."""
        return ratio(self.violations, self.generated)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(Counts))
        )

    def to_json(self) -> dict[str, Any]:
        """Return counts and rates as a plain dictionary, sums and rates included."""
        return {
            "generated": self.generated,
            **{item.name: getattr(self, item.name) for item in fields(self)},
            "valid": self.valid,
            "valid_rate": self.valid_rate,
            "failure_rate": self.failure_rate,
            "yield": self.yield_rate,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts of a campaign."""

    total: Counts
    #: By transformation; a variant with edits of several is counted in each row.
    transformations: dict[str, Counts]
    #: By (transformation, operator), likewise.
    operators: dict[tuple[str, str], Counts]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "total": self.total.to_json(),
            "transformations": {
                name: counts.to_json() for name, counts in self.transformations.items()
            },
            "operators": [
                {"transformation": transformation, "operator": operator, **counts.to_json()}
                for (transformation, operator), counts in self.operators.items()
            ],
        }


#: Outcome of a variant -> field of `Counts`, where the names differ.
_COLUMNS = {"violation": "violations", "error": "errors"}


def column(variant: VariantResult, *, credit: bool) -> str:
    """Return the field of `Counts` in which a variant is counted.

    With ``credit`` a violation is one only where the variant's own edits caused it, alone or with
    the context.
    """
    if credit and variant.outcome == "violation" and variant.cause not in ("turn", "both"):
        return "uncredited"
    return _COLUMNS.get(variant.outcome, variant.outcome)


def count(variants: Iterable[VariantResult], *, credit: bool = False) -> Counts:
    """Count variants by what became of them; see `column`."""
    return Counts(**Counter(column(variant, credit=credit) for variant in variants))


class LedgerTally:
    """Counts the variants of results, one turn after the other."""

    def __init__(self) -> None:
        self._total: Counter[str] = Counter()
        self._rows: dict[tuple[str, ...], Counter[str]] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in what became of the variants of a turn."""
        for variant in turn.variants:
            self._total[column(variant, credit=False)] += 1
            credited = column(variant, credit=True)
            keys: set[tuple[str, ...]] = {(edit.transformation,) for edit in variant.edits}
            keys.update((edit.transformation, edit.operator) for edit in variant.edits)
            for key in keys:
                self._rows.setdefault(key, Counter())[credited] += 1

    @property
    def ledger(self) -> Ledger:
        """The ledger of what was taken in, its rows sorted by name."""
        counts = {key: Counts(**row) for key, row in sorted(self._rows.items())}
        return Ledger(
            total=Counts(**self._total),
            transformations={key[0]: row for key, row in counts.items() if len(key) == 1},
            operators={(key[0], key[1]): row for key, row in counts.items() if len(key) == 2},
        )


def ledger(results: Iterable[TurnResult]) -> Ledger:
    """Return the ledger of a campaign."""
    return tallied(LedgerTally(), results).ledger


def ratio(part: int, whole: int) -> float | None:
    """Return a share; ``None`` of nothing."""
    return part / whole if whole else None
