"""New randomness: whether a build disagrees with itself more often than the one before it.

A vote hides it: the majority may well be what it was. So of each clean turn that was asked several
times in both builds, the share of the answers that are not the usual one is compared, with the
dialogue as unit, by the interval of `gate.statistics`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pytest_dstfuzz.config.rates import over, percent
from pytest_dstfuzz.gate.own_answers import OwnAnswers
from pytest_dstfuzz.gate.statistics import LEVEL, Paired, fewest_dialogues, interval
from pytest_dstfuzz.gate.verdict import LimitFinding, Verdict

#: The most dialogues with answers that vary anew that may be chance.
_FEW: Final = 1


class OwnAnswersTally:
    """Takes in the clean turns that both builds were asked several times."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[float, float, int]] = {}

    def add(self, dialogue: str, before: OwnAnswers | None, after: OwnAnswers | None) -> None:
        """Take in a turn."""
        if before is None or after is None:
            return
        was, now, turns = self._rows.get(dialogue, (0.0, 0.0, 0))
        self._rows[dialogue] = (was + before.share, now + after.share, turns + 1)

    def finding(self, limit: float, rng: np.random.Generator) -> LimitFinding | None:
        """Judge by how much the share may rise; ``None`` = it did not, or nothing is known."""
        rows = [row for _, row in sorted(self._rows.items())]
        grown = sum(now > was for was, now, _ in rows)
        if not rows or grown <= _FEW:
            return None
        paired = Paired.of_rows(rows)
        if not over(paired.difference, limit):
            return None
        turns = int(paired.variants.sum())
        was, now = (float(side.sum()) / turns for side in (paired.before, paired.after))
        reason = (
            f"{percent(now)} of the answers to the very same turns are not the usual one, "
            f"{percent(was)} in the baseline ({turns:,} turns in {len(rows):,} dialogues), and "
            f"{percent(limit)} more are allowed: it answers differently from call to call"
        )
        bounds = interval(paired, rng, LEVEL)
        verdict: Verdict = "inconclusive"
        if bounds is None:
            reason += f"; it takes {fewest_dialogues(LEVEL)} dialogues to tell that from chance"
        elif not over(bounds[0], limit):
            reason += "; that may be chance"
        else:
            verdict = "drift"
        return LimitFinding(
            None, "max-clean-drift", limit, verdict, reason, paired.difference, bounds
        )
