"""How the answers of one build to one clean turn agree, as a baseline keeps it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult


class OwnAnswers(NamedTuple):
    """How often a clean turn was answered, and how many answers were not the usual one."""

    asked: int
    others: int

    @classmethod
    def of(cls, turn: TurnResult) -> OwnAnswers | None:
        """Count those of a turn; ``None`` = it was asked once, so nothing is known."""
        kinds = turn.clean_votes
        if len(kinds) < 2:
            return None
        return cls(len(kinds), len(kinds) - max(Counter(kinds).values()))

    @property
    def share(self) -> float:
        """Of the answers those that are not the usual one."""
        return self.others / self.asked
