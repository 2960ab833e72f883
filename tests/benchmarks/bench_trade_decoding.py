"""TRADE's prediction against the same network whose slots are decoded one after the other.

Run with ``python -m pytest tests/benchmarks/bench_trade_decoding.py -s``; not collected by
default. One after the other is what the published code does without ``parallel_decode``:
each slot of each turn runs all its steps, whatever its gate says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: E402
from pytest_dstfuzz.dialogue.types import Context  # noqa: E402
from pytest_dstfuzz.trackers.trade.decode import mix  # noqa: E402
from pytest_dstfuzz.trackers.trade.encode import history_words  # noqa: E402
from pytest_dstfuzz.trackers.trade.load import load_trade  # noqa: E402
from pytest_dstfuzz.trackers.trade.network import Encoded, TradeNetwork  # noqa: E402
from pytest_dstfuzz.trackers.trade.rows import pad  # noqa: E402
from pytest_dstfuzz.trackers.trade.tracker import TradeTracker  # noqa: E402
from pytest_dstfuzz.trackers.trade.vocabulary import END, PAD  # noqa: E402

BATCH = 64
#: Steps that the published code runs for every slot when it predicts.
PUBLISHED_STEPS = 10
ROUNDS = 3


def predict_sequentially(
    tracker: TradeTracker, contexts: Sequence[Context], stop_early: bool
) -> tuple[int, int]:
    """Decode one slot after the other, in batches of like length; returns steps and words.

    Args:
        tracker: whose network and encoder are used.
        contexts: what to predict.
        stop_early: end a slot when all values of the batch have ended.
    """
    vocabulary, network = tracker.vocabulary, tracker.network
    histories = sorted(
        {history_words(context, tracker.reading.history_limit) for context in contexts}, key=len
    )
    steps = words = 0
    for start in range(0, len(histories), BATCH):
        chunk = histories[start : start + BATCH]
        numbers = pad([np.array(vocabulary.encode(history)) for history in chunk], PAD)
        copies = pad([np.array(vocabulary.copy_numbers(history)[0]) for history in chunk], -2)
        tensor, copied = torch.from_numpy(numbers), torch.from_numpy(copies)
        encoded = network.encode(tensor, torch.tensor([len(history) for history in chunk]))
        for slot in range(len(vocabulary.slots)):
            made = decode_slot(network, encoded, tensor, copied, slot, stop_early)
            steps += made.shape[1]
            words += int((made != END).sum())
    return steps, words


def decode_slot(
    network: TradeNetwork,
    encoded: Encoded,
    words: torch.Tensor,
    copies: torch.Tensor,
    slot: int,
    stop_early: bool,
) -> torch.Tensor:
    """Return the words of one slot for all rows, ``[B, steps]``."""
    inputs = network.slot_inputs()[slot : slot + 1]
    first = network.first_step(encoded, inputs)
    torch.softmax(first.gate, -1)
    hidden, read = first.hidden[:, 0], inputs.expand(len(words), -1)
    attention, context = first.attention[:, 0], first.context[:, 0]
    ended = torch.zeros(len(words), dtype=torch.bool)
    made = []
    for step in range(PUBLISHED_STEPS):
        if step:
            hidden = network.next_hidden(hidden, read)
            both = network.attend(hidden[:, None], encoded.outputs, encoded.padding)
            attention, context = both[0][:, 0], both[1][:, 0]
        share = network.generate_share(hidden, context, read)
        chosen = mix(network.logits(hidden), share, attention, copies).argmax(-1)
        made.append(chosen)
        ended |= chosen == END
        if stop_early and bool(ended.all()):
            break
        place = (copies == chosen[:, None]).int().argmax(1)
        known = chosen < network.shape.outputs
        read = network.embed(torch.where(known, chosen, words.gather(1, place[:, None])[:, 0]))
    return torch.stack(made, 1)


def seconds(work: Callable[[], object]) -> float:
    """Return the least wall time of some rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with torch.inference_mode():
            work()
        times.append(time.perf_counter() - start)
    return min(times)


def test_prediction_is_five_times_as_fast_as_slot_by_slot() -> None:
    tracker = load_trade(batch_size=BATCH)
    data = load_dialogues("sample", "test")
    contexts = [d.context(turn.index) for d in data.dialogues for turn in d.turns][: 4 * BATCH]
    ours = seconds(lambda: tracker.predict(contexts))
    published = seconds(lambda: predict_sequentially(tracker, contexts, stop_early=False))
    stopping = seconds(lambda: predict_sequentially(tracker, contexts, stop_early=True))
    print(
        f"\n{len(contexts)} contexts, batch {BATCH}, {torch.get_num_threads()} threads: "
        f"{len(contexts) / ours:.0f} turns/s; slot by slot {len(contexts) / published:.0f} "
        f"({published / ours:.1f} times slower), ending early {len(contexts) / stopping:.0f} "
        f"({stopping / ours:.1f} times)"
    )
    assert published / ours >= 5
