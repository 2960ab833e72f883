"""What a campaign of all relations that expect a change costs beside the tracker's own time.

Run with ``make bench``. Seconds are those of the processor, so that a busy machine counts the
same as an idle one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz import Campaign, Context, Prediction, Settings, load_dialogues
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.trackers.registry import resolve_tracker

SHARED = Path(os.environ.get("DSTFUZZ_SHARED", Path(__file__).parents[3] / "shared"))
MULTIWOZ = SHARED / "data" / "multiwoz21"
DIALOGUES = 300


class TimedTrade:
    """The shipped TRADE; ``seconds`` adds up what its predictions take."""

    def __init__(self) -> None:
        self.trade = resolve_tracker("trade", normalisation="multiwoz")
        self.seconds, self.contexts = 0.0, 0

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        start = time.process_time()
        try:
            return self.trade.predict(contexts)
        finally:
            self.seconds += time.process_time() - start
            self.contexts += len(contexts)


def test_relations_cost_little_more_than_the_predictions() -> None:
    if not MULTIWOZ.is_dir():
        pytest.skip("needs the MultiWOZ files of ../shared")
    data = load_dialogues(MULTIWOZ, "test")
    data = replace(data, dialogues=data.dialogues[:DIALOGUES])
    every = relations_named("all", data, "state")
    names = [relation.name for relation in every if relation.side == "should-change"]
    tracker = TimedTrade()
    tracker.predict([dialogue.context(0) for dialogue in data.dialogues])
    tracker.seconds, tracker.contexts = 0.0, 0
    campaign = Campaign(tracker, data, Settings.of(turns="all"), relation=names)
    start = time.process_time()
    list(campaign)
    seconds = time.process_time() - start
    ratio = seconds / tracker.seconds
    beside = 1000 * (seconds - tracker.seconds) / tracker.contexts
    print(f"\ncampaign / prediction: {ratio:.3f}; {beside:.2f} ms beside it for each context")
    assert ratio <= 1.25
