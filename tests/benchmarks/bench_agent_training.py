"""What a training step of the agent costs beside the tracker's own prediction.

Run with ``make bench``. Seconds are those of the processor, so that a busy machine counts
the same as an idle one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz.agents.training.train_agent import AgentRun, train_agent
from pytest_dstfuzz.agents.training.trainer import TrainingConfig
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker


class Timed:
    """Adds up what a tracker's predictions take.

    Attributes:
        seconds: of the processor.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.seconds = 0.0

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        start = time.process_time()
        try:
            return self._tracker.predict(contexts)
        finally:
            self.seconds += time.process_time() - start


def test_agent_and_environment_take_five_milliseconds_a_step(tmp_path: Path) -> None:
    tracker = Timed(resolve_tracker("trade", normalisation="multiwoz"))
    marks: list[tuple[float, float]] = []

    def say(_: str) -> None:
        marks.append((time.process_time(), tracker.seconds))

    # Of the shipped dialogues 21 are right throughout; updates begin after 500 steps.
    training = TrainingConfig(calls=4000)
    run = AgentRun("trade", "sample", tmp_path, splits=("test",), training=training)
    history = train_agent(run, say, tracker).history
    rounds = len(history)
    # One line is said at the end of every round; the first two rounds warm up.
    (begin, asked), (end, asked_so_far) = marks[-rounds + 1], marks[-1]
    steps = sum(item.attempts for item in history[2:])
    beside = (end - begin) - (asked_so_far - asked)
    print(
        f"\n{1000 * beside / steps:.2f} ms a step beside the prediction, "
        f"{1000 * (asked_so_far - asked) / steps:.2f} ms for it; {steps} steps"
    )
    assert history[1].critic_loss > 0
    assert beside / steps <= 0.005
