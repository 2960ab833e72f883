"""The training loss, -log p of the whole belief state, and accuracy on labelled rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pytest_dstfuzz.models.trade.decode import Decoded, decode
from pytest_dstfuzz.models.trade.network import Encoded, FirstStep, TradeNetwork
from pytest_dstfuzz.models.trade.rows import LabelledTurn, TurnBatch, bucket, collate
from pytest_dstfuzz.models.trade.vocabulary import END

#: Keeps the logarithm of a word that can be neither generated nor copied finite.
_TINY = 1e-9


def batch_loss(network: TradeNetwork, batch: TurnBatch, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses of gates and values of ``batch``, its history read as ``words [B, T]``.

    They are sums over slots and words and means over turns: added, ``-log p(state)`` of an
    average turn. Words may be masked.
    """
    encoded = network.encode(words, batch.lengths)
    inputs = network.slot_inputs()
    first = network.first_step(encoded, inputs)
    rows = batch.words.shape[0]
    gate = functional.cross_entropy(
        first.gate.reshape(-1, 3), batch.gates.reshape(-1), reduction="sum"
    )
    if not len(batch.pairs):
        return gate / rows, gate.new_zeros(())
    log_p = _target_log_probability(network, batch, encoded, first, inputs)
    return gate / rows, -log_p.sum() / rows


def _target_log_probability(
    network: TradeNetwork, batch: TurnBatch, encoded: Encoded, first: FirstStep, inputs: Tensor
) -> Tensor:
    """Return ``log p`` of every target word ``[M]`` under the copy mixture."""
    pair, step, row, place = batch.tokens.unbind(1)
    hidden, embedded = _teacher_forced(network, batch, first, inputs)
    hidden, embedded = hidden[pair, step], embedded[pair, step]
    # All words of one turn attend to its history in one product: [B, R, T].
    places = (len(encoded.final), int(place.max()) + 1)
    queries = hidden.new_zeros(*places, hidden.shape[-1]).index_put((row, place), hidden)
    attention, context = network.attend(queries, encoded.outputs, encoded.padding)
    wanted = torch.full(places, -1, device=hidden.device).index_put((row, place), batch.targets)
    match = batch.copies[:, None] == wanted[..., None]
    copied = (attention * match).sum(-1)[row, place]
    share = network.generate_share(hidden, context[row, place], embedded)
    logits = network.logits(hidden)
    target = batch.targets
    inside = (target >= 0) & (target < logits.shape[1])
    score = logits.gather(1, target.clamp(0, logits.shape[1] - 1)[:, None])[:, 0]
    generated = torch.exp(score - torch.logsumexp(logits, -1)) * inside
    return torch.log(share * generated + (1 - share) * copied + _TINY)


def _teacher_forced(
    network: TradeNetwork, batch: TurnBatch, first: FirstStep, inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return states ``[N, L + 1, H]`` and inputs ``[N, L + 1, E]`` of all pointer pairs."""
    row, slot = batch.pairs.unbind(1)
    states = [first.hidden[row, slot]]
    embedded = network.embed(batch.inputs)
    # Sorted by length, longest first, a step runs over the pairs that still have words.
    count = (batch.inputs != 0).sum(1)
    order = torch.argsort(count, descending=True, stable=True)
    state = states[0][order]
    alive = [int((count > step).sum()) for step in range(batch.inputs.shape[1])]
    sorted_embedded = embedded[order]
    steps = []
    for step, number in enumerate(alive):
        state = network.next_hidden(state[:number], sorted_embedded[:number, step])
        steps.append(functional.pad(state, (0, 0, 0, len(order) - number)))
    back = torch.argsort(order)
    later = torch.stack(steps, 1)[back] if steps else states[0][:, None, :][:, :0]
    all_states = torch.cat([states[0][:, None], later], 1)
    return all_states, torch.cat([inputs[slot][:, None], embedded], 1)


def row_accuracy(
    network: TradeNetwork, rows: Sequence[LabelledTurn], batch_size: int, device: str
) -> tuple[float, float]:
    """Return joint goal accuracy and slot accuracy on ``rows``, both in [0, 1]."""
    joint = slots = 0
    with torch.inference_mode():
        for chosen in bucket([len(row.words) for row in rows], batch_size, None):
            part = [rows[number] for number in chosen]
            batch = collate(part).to(device)
            decoded = decode(network, batch.words, batch.copies, batch.lengths)
            for wrong in _wrong_slots(decoded, part):
                joint += not wrong
                slots += len(part[0].gates) - wrong
    return joint / len(rows), slots / (len(rows) * len(rows[0].gates))


def _wrong_slots(decoded: Decoded, rows: Sequence[LabelledTurn]) -> list[int]:
    """Return for each row the number of slots whose value is wrong."""
    gates = decoded.gates.cpu().numpy()
    values: dict[tuple[int, int], list[int]] = {}
    for (row, slot), words in zip(decoded.pairs.tolist(), decoded.words.tolist(), strict=True):
        values[row, slot] = words[: words.index(END) + 1] if END in words else words
    wrong = []
    for number, row in enumerate(rows):
        count = int((gates[number] != row.gates).sum())
        for slot, target, _ in row.targets:
            found = values.get((number, slot))
            count += found is not None and found != target
        wrong.append(count)
    return wrong
