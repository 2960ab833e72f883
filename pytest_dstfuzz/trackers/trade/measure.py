"""Accuracy of a network on labelled rows, without leaving numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pytest_dstfuzz.trackers.trade.decode import Decoded, decode
from pytest_dstfuzz.trackers.trade.network import TradeNetwork
from pytest_dstfuzz.trackers.trade.rows import LabelledTurn, bucket, collate
from pytest_dstfuzz.trackers.trade.vocabulary import END


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
