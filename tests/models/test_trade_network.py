"""The network against slow, plain references."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from trade_data import dialogues  # noqa: E402

from pytest_dstfuzz.models.trade.checkpoint import build_network  # noqa: E402
from pytest_dstfuzz.models.trade.network import (  # noqa: E402  # noqa: E402
    GATE_POINTER,
    TradeNetwork,
    decode,
    mix,
    run_bidirectional,
)
from pytest_dstfuzz.models.trade.training import (  # noqa: E402
    LabelledTurn,
    batch_loss,
    bucket,
    collate,
    make_rows,
)
from pytest_dstfuzz.models.trade.vocabulary import (  # noqa: E402
    END,
    UNKNOWN,
    training_vocabulary,
)


def small_network() -> tuple[TradeNetwork, list[LabelledTurn]]:
    """Return an untrained network in evaluation mode and twenty rows."""
    vocabulary = training_vocabulary(dialogues())
    generator = torch.Generator().manual_seed(1)
    network = build_network(vocabulary, embedding=6, hidden=5, generator=generator).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.empty_like(parameter).uniform_(-1, 1, generator=generator))
    return network.double(), make_rows(dialogues(), vocabulary, 400)


def test_the_encoder_is_torch_s_gru_in_both_directions() -> None:
    generator = torch.Generator().manual_seed(0)
    size, batch, steps = 4, 3, 6
    lengths = torch.tensor([6, 4, 1])
    reference = torch.nn.GRU(5, size, bidirectional=True).double()
    inputs = torch.randn(steps, batch, 5, dtype=torch.float64, generator=generator)
    packed = torch.nn.utils.rnn.pack_padded_sequence(inputs, lengths)
    expected, final = reference(packed)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(expected)
    ends = ("", "_reverse")
    weights = {name: dict(reference.named_parameters())[name] for name in reference.state_dict()}
    table = torch.stack(
        [
            inputs.flatten(0, 1) @ weights[f"weight_ih_l0{end}"].t() + weights[f"bias_ih_l0{end}"]
            for end in ends
        ]
    )
    weight = torch.stack([weights[f"weight_hh_l0{end}"].t() for end in ends])
    bias = torch.stack([weights[f"bias_hh_l0{end}"][None] for end in ends])
    words = torch.arange(steps * batch).view(steps, batch).t()
    # Neither sorted by length nor filling the width.
    turned = torch.tensor([2, 0, 1])
    padded = torch.cat([words, words[:, :1]], 1)[turned]
    sums, last = run_bidirectional(table, padded, lengths[turned], weight, bias)
    for row, number in enumerate(turned.tolist()):
        length = int(lengths[number])
        both = expected[:length, number].view(length, 2, size).sum(1)
        torch.testing.assert_close(sums[row, :length], both)
        torch.testing.assert_close(last[row], final[:, number].sum(0))


def test_the_encoder_s_gradients_are_those_of_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 5, 9), (2, 3, 9), (2, 1, 9))
    words = torch.randint(5, (3, 4), generator=generator)
    lengths = torch.tensor([2, 4, 3])
    real = torch.arange(4) < lengths[:, None]
    tensors = [
        torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()
        for shape in shapes
    ]

    def run(table: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sums, final = run_bidirectional(table, words, lengths, *weights)
        return sums * real[..., None], final

    assert torch.autograd.gradcheck(run, tensors)


def plain_loss(network: TradeNetwork, row: LabelledTurn) -> tuple[float, float]:
    """TRADE's equations for one row, one slot and one word at a time."""
    weights = {name: p.detach().numpy() for name, p in network.named_parameters()}
    size, known = network.shape.hidden, network.shape.outputs

    def cell(x: np.ndarray, h: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        g = h @ weight + bias
        r, z = (1 / (1 + np.exp(-(x + g)[k * size : (k + 1) * size])) for k in (0, 1))
        n = np.tanh(x[2 * size :] + r * g[2 * size :])
        return (1 - z) * n + z * h

    sides = []
    for side in (0, 1):
        part = slice(3 * size * side, 3 * size * (side + 1))
        h, states = np.zeros(size), []
        for word in row.words[:: -1 if side else 1]:
            x = weights["embedding"][word] @ weights["encoder_in"][:, part]
            x = x + weights["encoder_in_bias"][part]
            h = cell(x, h, weights["encoder"][side], weights["encoder_bias"][side, 0])
            states.append(h)
        sides.append(states[:: -1 if side else 1])
    history = np.array(sides[0]) + np.array(sides[1])
    final = sides[0][-1] + sides[1][0]

    def step(x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        projected = x @ weights["decoder_in"] + weights["decoder_in_bias"]
        h = cell(projected, h, weights["decoder"], weights["decoder_bias"])
        scores = np.exp(history @ h)
        attention = scores / scores.sum()
        return h, attention, attention @ history

    gate_loss = value_loss = 0.0
    targets = {slot: (copied, read) for slot, copied, read in row.targets}
    for slot, (domain, name) in enumerate(network.slot_index.tolist()):
        x = weights["domain_embedding"][domain] + weights["name_embedding"][name]
        h, attention, context = step(x, final)
        gate = np.exp(context @ weights["gate"] + weights["gate_bias"])
        gate_loss -= math.log(gate[row.gates[slot]] / gate.sum())
        copied, read = targets.get(slot, ([], []))
        for number, target in enumerate(copied):
            if number:
                x = weights["embedding"][read[number - 1]]
                h, attention, context = step(x, h)
            shared = weights["embedding"][:known]
            scores = np.exp(shared @ (h @ weights["output"]) + weights["output_bias"])
            mixed = np.concatenate([h, context, x]) @ weights["mix"] + weights["mix_bias"][0]
            share = 1 / (1 + math.exp(-mixed))
            p = share * scores[target] / scores.sum() if 0 <= target < known else 0.0
            p += (1 - share) * attention[row.copies == target].sum()
            value_loss -= math.log(p)
    return gate_loss, value_loss


def test_the_loss_is_that_of_a_plain_implementation() -> None:
    network, rows = small_network()
    batch = collate(rows)
    losses = batch_loss(network, batch, batch.words)
    expected = np.mean([plain_loss(network, row) for row in rows], axis=0)
    assert [loss.item() for loss in losses] == pytest.approx(expected, rel=1e-6)


def test_a_word_that_can_only_be_copied_is_copied_by_its_place() -> None:
    vocabulary = training_vocabulary(dialogues())
    numbers, local = vocabulary.copy_numbers(["zebra", "north", "yak", "zebra"])
    assert local == ["zebra", "yak"]
    known = vocabulary.outputs
    assert numbers == [known, vocabulary.numbers["north"], known + 1, known]
    assert vocabulary.encode(["zebra", "north"]) == [UNKNOWN, vocabulary.numbers["north"]]


def test_the_mixture_sums_to_one_and_adds_equal_words() -> None:
    logits = torch.zeros(1, 4)
    attention = torch.tensor([[0.5, 0.25, 0.25, 0.0]])
    copies = torch.tensor([[1, 5, 1, -2]])
    mixture = mix(logits, torch.tensor([0.4]), attention, copies)[0]
    assert mixture.tolist() == pytest.approx([0.1, 0.1 + 0.6 * 0.75, 0.1, 0.1, 0.0, 0.6 * 0.25])


def test_decoding_follows_the_gate_and_ends_every_value() -> None:
    network, rows = small_network()
    batch = collate(rows)
    with torch.inference_mode():
        decoded = decode(network, batch.words, batch.copies, batch.lengths)
    assert decoded.pairs.tolist() == (decoded.gates == GATE_POINTER).nonzero().tolist()
    for words in decoded.words.tolist():
        if END in words:
            assert set(words[words.index(END) :]) == {END}
    assert float(decoded.impurities.min()) >= 0
    assert float(decoded.impurities.max()) < 1


def test_batches_hold_every_row_once_and_near_lengths_together() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 57)
    for rng in (None, np.random.default_rng(1)):
        batches = bucket(lengths.tolist(), 8, rng)
        assert sorted(np.concatenate(batches).tolist()) == list(range(57))
        assert max(np.ptp(lengths[batch]) for batch in batches) < 40
