"""To how many turns a relation applied: the others say nothing of the tracker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.campaign.results import TurnResult

_NO_REASON: Final = "no reason given"


class AppliedTally:
    """Counts the turns to which a relation applied, and why it did not apply to the others."""

    def __init__(self) -> None:
        self.applied = 0
        self._reasons: Counter[str] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Take in a turn."""
        if turn.outcome == "inapplicable":
            self._reasons[turn.reason or _NO_REASON] += 1
        elif turn.outcome != "skipped" and turn.clean_state is not None:
            self.applied += 1

    @property
    def reasons(self) -> dict[str, int]:
        """The turns to which it did not apply, by reason, the most frequent first."""
        return dict(sorted(self._reasons.items(), key=lambda item: (-item[1], item[0])))


def applied_text(name: str, applied: int, reasons: Mapping[str, int], unit: str) -> str:
    """Say that a relation applied to a part of the turns only; ``""`` = to all of them.

    Args:
        name: of the relation.
        applied: to how many it applied.
        reasons: to how many it did not, by reason, the most frequent first.
        unit: what it has a result for, as a word.

    >>> applied_text("repair", 12, {"too long": 20, "said twice": 8}, "turn")
    'repair applied to 12 of 40 turns; of the others 20 because: too long'
    >>> applied_text("repair", 12, {}, "turn")
    ''
    """
    if not reasons:
        return ""
    asked, (reason, count) = applied + sum(reasons.values()), next(iter(reasons.items()))
    units = unit if asked == 1 else f"{unit}s"
    share = f"{applied:,} of {asked:,} {units}" if applied else f"none of {asked:,} {units}"
    others = f"of the others {count:,} because" if applied else f"{count:,} because"
    return f"{name} applied to {share}; {others}: {reason}"
