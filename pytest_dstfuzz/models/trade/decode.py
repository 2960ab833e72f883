"""Greedy decoding of belief states: first step for all slots, more only where a value is due."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pytest_dstfuzz.models.trade.gru import LEAST_ROWS
from pytest_dstfuzz.models.trade.network import (
    GATE_POINTER,
    Encoded,
    FirstStep,
    TradeNetwork,
    at_least,
)
from pytest_dstfuzz.models.trade.vocabulary import END

#: No value of the training split has more words, the end mark included.
MAX_STEPS = 12


@dataclass(frozen=True)
class Decoded:
    """What a batch of ``B`` histories was decoded to, for ``S`` slots."""

    gates: Tensor  #: Class of each slot, ``[B, S]``.
    pairs: Tensor  #: Row and slot of each generated value, ``[N, 2]``, sorted.
    words: Tensor  #: Its words' numbers for copying, ``[N, MAX_STEPS]``, ``END`` after the last.
    impurities: Tensor  #: Mean Gini impurity of a slot's gate and word distributions, ``[B, S]``.


def decode(network: TradeNetwork, words: Tensor, copies: Tensor, lengths: Tensor) -> Decoded:
    """Decode histories ``words [B, T]`` with ``copies [B, T]`` of ``lengths [B]``."""
    encoded = network.encode(words, lengths)
    inputs = network.slot_inputs()
    first = network.first_step(encoded, inputs)
    probabilities = torch.softmax(first.gate, -1)
    gates = probabilities.argmax(-1)
    impurity_sum = gini_rows(probabilities)
    pairs = (gates == GATE_POINTER).nonzero()
    if not len(pairs):
        empty = pairs.new_zeros(0, MAX_STEPS)
        return Decoded(gates, pairs, empty, impurity_sum)
    generated, sums, counts = _generate(network, encoded, first, inputs, pairs, words, copies)
    row, slot = pairs.unbind(1)
    impurity_sum[row, slot] = (impurity_sum[row, slot] + sums) / (1 + counts)
    return Decoded(gates, pairs, generated, impurity_sum)


def _generate(
    network: TradeNetwork,
    encoded: Encoded,
    first: FirstStep,
    inputs: Tensor,
    pairs: Tensor,
    words: Tensor,
    copies: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate the values of all pairs at once; a pair leaves when its value ends.

    Returns words ``[N, MAX_STEPS]``, summed impurities ``[N]`` and number of steps ``[N]``.
    """
    row, slot = pairs.unbind(1)
    generated = pairs.new_full((len(pairs), MAX_STEPS), END)
    sums = first.gate.new_zeros(len(pairs), dtype=torch.float64)
    counts = torch.zeros_like(sums)
    alive = torch.arange(len(pairs), device=pairs.device)
    hidden, read = first.hidden[row, slot], inputs[slot]
    attention, context = first.attention[row, slot], first.context[row, slot]
    known = network.shape.outputs
    for step in range(MAX_STEPS):
        share = network.generate_share(hidden, context, read)
        logits = network.logits(at_least(hidden))[: len(alive)]
        mixture = mix(logits, share, attention, copies[row[alive]])
        sums[alive] += gini_rows(mixture)
        counts[alive] += 1
        chosen = mixture.argmax(-1)
        generated[alive, step] = chosen
        going = (chosen != END).nonzero()[:, 0]
        if not len(going) or step + 1 == MAX_STEPS:
            break
        alive, chosen = alive[going], chosen[going]
        # Copied words are looked up in the history.
        place = (copies[row[alive]] == chosen[:, None]).int().argmax(1)
        read = network.embed(torch.where(chosen < known, chosen, words[row[alive], place]))
        hidden = network.next_hidden(at_least(hidden[going]), at_least(read))[: len(going)]
        attention, context = _attend(network, encoded, hidden, row[alive])
    return generated, sums, counts


def mix(logits: Tensor, share: Tensor, attention: Tensor, copies: Tensor) -> Tensor:
    """Return the final distributions over generated and copied words.

    That is ``[N, max(V, largest number + 1)]``, from ``logits [N, V]``, the weight ``share [N]`` of
    generating, ``attention [N, T]``, 0 at padding, and ``copies [N, T]``, negative there.
    """
    width = max(logits.shape[1], int(copies.max()) + 1)
    mixture = logits.new_zeros(len(logits), width)
    mixture[:, : logits.shape[1]] = torch.softmax(logits, -1) * share[:, None]
    return mixture.scatter_add_(1, copies.clamp_min(0), attention * (1 - share)[:, None])


def gini_rows(distributions: Tensor) -> Tensor:
    """Return the Gini impurity ``1 - sum p^2`` over the last dimension, not below 0."""
    # In 64 bits, since the order of a sum depends on the width of the batch.
    return (1 - distributions.square().sum(-1, dtype=torch.float64)).clamp_min(0)


def _attend(
    network: TradeNetwork, encoded: Encoded, hidden: Tensor, row: Tensor
) -> tuple[Tensor, Tensor]:
    """Attend with states ``[N, H]`` of sorted rows; one product for all states of a row."""
    starts = torch.searchsorted(row, row)
    place = torch.arange(len(row), device=row.device) - starts
    present, compact = torch.unique_consecutive(row, return_inverse=True)
    width = max(LEAST_ROWS, int(place.max()) + 1)
    queries = hidden.new_zeros(len(present), width, hidden.shape[-1])
    queries[compact, place] = hidden
    outputs, padding = encoded.outputs, encoded.padding
    if len(present) < len(outputs):
        outputs, padding = outputs[present], padding[present]
    attention, context = network.attend(queries, outputs, padding)
    return attention[compact, place], context[compact, place]
