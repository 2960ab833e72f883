"""What a tracker answered to the clean turns: how often nothing, and how often right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pytest_dstfuzz.campaign.ledger import count
from pytest_dstfuzz.campaign.results import TurnResult


class CleanAnswers(NamedTuple):
    """The clean answers of a campaign."""

    #: Turns with an answer, and those whose answer is a state without a slot.
    answered: int
    empty: int
    #: Turns with a label, and those of them whose answer is the label. A turn at which the
    #: tracker failed is wrong, as in `trackers.evaluate`.
    labelled: int
    right: int
    #: Violations / valid, over the turns whose answer is not empty: most variants of the others
    #: have nothing that they could change. ``None`` without a valid variant.
    failure_rate: float | None

    @property
    def empty_share(self) -> float | None:
        """Share of the answers that are empty; ``None`` without an answer."""
        return self.empty / self.answered if self.answered else None

    @property
    def accuracy(self) -> float | None:
        """Joint goal accuracy of the answers; ``None`` without a label."""
        return self.right / self.labelled if self.labelled else None


def clean_answers(results: Iterable[TurnResult]) -> CleanAnswers:
    """Count the clean answers of a campaign, those of turns that it did not come to left out.

    Labels and answers went through the same normalisation before they came here.
    """
    turns = [turn for turn in results if turn.outcome != "skipped"]
    known = [turn for turn in turns if turn.clean_state is not None]
    labelled = [turn for turn in turns if turn.label is not None]
    telling = count(variant for turn in known if turn.clean_state for variant in turn.variants)
    return CleanAnswers(
        answered=len(known),
        empty=sum(not turn.clean_state for turn in known),
        labelled=len(labelled),
        right=sum(turn.clean_state == turn.label for turn in labelled),
        failure_rate=telling.failure_rate,
    )
