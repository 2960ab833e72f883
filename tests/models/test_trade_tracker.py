"""Prediction in batches and threads: exactly the same whatever is computed together."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from trade_data import dialogues  # noqa: E402

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange  # noqa: E402
from pytest_dstfuzz.models.trade.checkpoint import TradeReading, build_network  # noqa: E402
from pytest_dstfuzz.models.trade.tracker import TradeTracker  # noqa: E402
from pytest_dstfuzz.models.trade.vocabulary import training_vocabulary  # noqa: E402


def tracker(batch_size: int) -> TradeTracker:
    """Return an untrained tracker whose gates open for some slots."""
    vocabulary = training_vocabulary(dialogues())
    generator = torch.Generator().manual_seed(3)
    network = build_network(vocabulary, embedding=32, hidden=48, generator=generator)
    with torch.no_grad():
        network.gate.mul_(20)
        network.encoder.mul_(3)
    return TradeTracker(network, vocabulary, TradeReading(300, "multiwoz"), batch_size=batch_size)


def contexts() -> list[Context]:
    """Return histories from nothing at all to ones that are cut."""
    made = [d.context(turn.index) for d in dialogues() for turn in d.turns]
    made += [Context((Exchange("", "north hotel " * count),)) for count in range(0, 200, 7)]
    return [*made, Context((Exchange("", ""),)), Context((Exchange("a", "b"),) * 90)]


@pytest.mark.parametrize("batch_size", [1, 3, 16, 1000])
def test_predictions_are_equal_to_the_last_digit_in_any_batch(batch_size: int) -> None:
    expected = tracker(8).predict(contexts())
    assert tracker(batch_size).predict(contexts()) == expected
    assert tracker(batch_size).predict(contexts()[::-1]) == expected[::-1]
    assert any(prediction.state for prediction in expected)


def test_threads_change_nothing_and_are_given_back() -> None:
    before = torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            answers.append(tracker(16).predict(contexts()))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert answers[0] == answers[1]
