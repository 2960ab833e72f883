"""A small SimpleTOD: two layers, and the hand-made dialogues of the TRADE tests."""

from __future__ import annotations

from pathlib import Path

from pytest_dstfuzz.models.simpletod.config import SimpleTodTrainingConfig


def small_config(folder: Path, output: Path, **changes: object) -> SimpleTodTrainingConfig:
    """Return settings for a model that trains in seconds."""
    settings: dict[str, object] = {
        "epochs": 2,
        "batch_tokens": 100,
        "vocabulary": 400,
        "hidden": 64,
        "layers": 2,
        "heads": 2,
        "positions": 256,
        "learning_rate": 0.01,
        "warmup_steps": 5,
        "average_decay": 0.9,
        "weight_decay": 0.0,
        "context_weight": 0.1,
        "exchange": 0.0,
        "report_every": 2,
    }
    return SimpleTodTrainingConfig(folder, output, **(settings | changes))  # type: ignore[arg-type]  # Any
