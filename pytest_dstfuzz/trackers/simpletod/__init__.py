"""SimpleTOD, a causal language model that writes the belief state (arXiv 2005.00796).

Importing this package imports neither torch nor transformers; making a tracker does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.errors import needs_extra

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.simpletod.tracker import SimpleTodTracker


def create(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> SimpleTodTracker:
    """Return the SimpleTOD tracker; what ``--dst-model=simpletod`` calls.

    Args:
        checkpoint: see ``tracker.load_simpletod``; ``None`` is the shipped model.
        device: where to compute.
        batch_size: contexts that are computed together.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        UserError: the checkpoint or the device is not usable.
    """
    needed = ("torch", "transformers", "tokenizers", "safetensors")
    with needs_extra("the tracker 'simpletod'", "simpletod", *needed):
        from pytest_dstfuzz.trackers.simpletod.tracker import (  # noqa: PLC0415 - needs torch
            load_simpletod,
        )
    return load_simpletod(checkpoint, device, batch_size)
