"""TRADE, a tracker that generates values word by word (arXiv 1905.08743).

Importing this package does not import torch; making a tracker does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.errors import needs_extra

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.trade.tracker import TradeTracker


def create(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> TradeTracker:
    """Return the TRADE tracker; what ``--dst-model=trade`` calls.

    Args:
        checkpoint: see ``tracker.load_trade``; ``None`` is the shipped model.
        device: where to compute.
        batch_size: contexts that are computed together.

    Raises:
        MissingExtraError: torch or safetensors is not installed.
        UserError: the checkpoint or the device is not usable.
    """
    with needs_extra("the tracker 'trade'", "trade", "torch", "safetensors"):
        from pytest_dstfuzz.trackers.trade.tracker import load_trade  # noqa: PLC0415 - needs torch
    return load_trade(checkpoint, device, batch_size)
