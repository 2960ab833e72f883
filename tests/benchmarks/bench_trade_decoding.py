"""TRADE's prediction against the same network whose slots are decoded one after the other.

Run with ``python -m pytest tests/benchmarks/bench_trade_decoding.py -s``; not collected by
default. One after the other is what the published code does without ``parallel_decode``:
each slot of each turn runs all its steps, whatever its gate says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState, Context  # noqa: E402
from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: E402
from pytest_dstfuzz.dialogue.normalise import normalise_state  # noqa: E402
from pytest_dstfuzz.models.neural import pad  # noqa: E402
from pytest_dstfuzz.models.trade.network import (  # noqa: E402  # noqa: E402
    GATE_DONTCARE,
    GATE_POINTER,
    EncodedHistories,
    TradeNetwork,
    gini_rows,
    mix,
)
from pytest_dstfuzz.models.trade.tracker import (  # noqa: E402
    TradeTracker,
    load_trade,
)
from pytest_dstfuzz.models.trade.vocabulary import (  # noqa: E402
    END,
    PAD,
    history_words,
)

BATCH = 64
#: Steps that the published code runs for every slot when it predicts.
PUBLISHED_STEPS = 10
ROUNDS = 3


def by_history(contexts: Sequence[Context], limit: int) -> dict[tuple[str, ...], Context]:
    """Return one context of each different history, the shortest first."""
    found = {history_words(context, limit): context for context in contexts}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def predict_sequentially(
    tracker: TradeTracker, contexts: Sequence[Context], stop_early: bool
) -> list[tuple[BeliefState, list[float]]]:
    """Return state and impurities of each different history, one slot decoded after the other.

    Args:
        tracker: whose network and encoder are used.
        contexts: what to predict.
        stop_early: end a slot when all values of the batch have ended.
    """
    vocabulary, network = tracker.vocabulary, tracker.network
    limit = tracker.reading.history_limit
    histories = list(by_history(contexts, limit))
    answers: list[tuple[BeliefState, list[float]]] = []
    for start in range(0, len(histories), BATCH):
        chunk = histories[start : start + BATCH]
        copied = [vocabulary.copy_numbers(history) for history in chunk]
        words = torch.from_numpy(
            pad([np.array(vocabulary.encode(history)) for history in chunk], PAD)
        )
        copies = torch.from_numpy(pad([np.array(numbers) for numbers, _ in copied], -2))
        encoded = network.encode(words, torch.tensor([len(history) for history in chunk]))
        states: list[dict[str, str]] = [{} for _ in chunk]
        impurities = []
        for number, slot in enumerate(vocabulary.slots):
            gates, made, impurity = decode_slot(network, encoded, words, copies, number, stop_early)
            impurities.append(impurity)
            values = zip(states, gates.tolist(), made.tolist(), copied, strict=True)
            for state, gate, value, (_, local) in values:
                if gate == GATE_POINTER:
                    state[slot] = tracker.value(value, local)
                elif gate == GATE_DONTCARE:
                    state[slot] = DONTCARE
        rows = torch.stack(impurities, 1).tolist()
        answers += zip((normalise_state(s, "multiwoz") for s in states), rows, strict=True)
    return answers


def decode_slot(
    network: TradeNetwork,
    encoded: EncodedHistories,
    words: torch.Tensor,
    copies: torch.Tensor,
    slot: int,
    stop_early: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return gates ``[B]``, words ``[B, steps]`` and mean impurities ``[B]`` of one slot."""
    inputs = network.slot_inputs()[slot : slot + 1]
    first = network.first_step(encoded, inputs)
    gates = torch.softmax(first.gate[:, 0], -1)
    hidden, read = first.hidden[:, 0], inputs.expand(len(words), -1)
    attention, context = first.attention[:, 0], first.context[:, 0]
    ended = torch.zeros(len(words), dtype=torch.bool)
    impurity, count = gini_rows(gates), torch.ones(len(words))
    pointer = gates.argmax(-1) == GATE_POINTER
    made = []
    for step in range(PUBLISHED_STEPS):
        if step:
            hidden = network.next_hidden(hidden, read)
            both = network.attend(hidden[:, None], encoded.outputs, encoded.padding)
            attention, context = both[0][:, 0], both[1][:, 0]
        share = network.generate_share(hidden, context, read)
        mixture = mix(network.logits(hidden), share, attention, copies)
        counted = pointer & ~ended
        impurity, count = impurity + gini_rows(mixture) * counted, count + counted
        chosen = mixture.argmax(-1)
        made.append(chosen)
        ended |= chosen == END
        if stop_early and bool(ended.all()):
            break
        place = (copies == chosen[:, None]).int().argmax(1)
        known = chosen < network.shape.outputs
        read = network.embed(torch.where(known, chosen, words.gather(1, place[:, None])[:, 0]))
    return gates.argmax(-1), torch.stack(made, 1), impurity / count


def seconds(work: Callable[[], object]) -> float:
    """Return the least CPU time of some rounds, in seconds; one thread, so it is what counts."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        with torch.inference_mode():
            work()
        times.append(time.process_time() - start)
    return min(times)


def check_equal(tracker: TradeTracker, contexts: Sequence[Context]) -> None:
    """Assert that both ways find the same states and impurities."""
    with torch.inference_mode():
        slow = predict_sequentially(tracker, contexts, stop_early=False)
    different = by_history(contexts, tracker.reading.history_limit)
    fast = tracker.predict(list(different.values()))
    for prediction, (state, impurities) in zip(fast, slow, strict=True):
        assert prediction.state == state
        found = list((prediction.impurities or {}).values())
        assert found == pytest.approx(impurities, abs=1e-4)


@pytest.fixture
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_one_thread")
def test_prediction_is_five_times_as_fast_as_slot_by_slot() -> None:
    tracker = load_trade(batch_size=BATCH)
    data = load_dialogues("sample", "test")
    contexts = [d.context(turn.index) for d in data.dialogues for turn in d.turns][: 4 * BATCH]
    ours = seconds(lambda: tracker.predict(contexts))
    published = seconds(lambda: predict_sequentially(tracker, contexts, stop_early=False))
    stopping = seconds(lambda: predict_sequentially(tracker, contexts, stop_early=True))
    check_equal(tracker, contexts)
    print(
        f"\n{len(contexts)} contexts, batch {BATCH}, one thread: "
        f"{len(contexts) / ours:.0f} turns/s; slot by slot {len(contexts) / published:.0f} "
        f"({published / ours:.1f} times slower), ending early {len(contexts) / stopping:.0f} "
        f"({stopping / ours:.1f} times)"
    )
    assert published / ours >= 5
