"""Figures of a training run for TensorBoard."""

from __future__ import annotations

from pathlib import Path

from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.training.trainer import Round


class TensorBoardLogger:
    """Writes an event for every figure of a round, at the number of calls so far.

    Args:
        folder: for the events.

    Raises:
        UserError: TensorBoard is not installed, or the folder cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        with needs_extra("--tensorboard", "tensorboard", "torch", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra
        try:
            self._writer = SummaryWriter(str(folder))
        except OSError as error:
            raise UserError(f"cannot write events to {folder}: {error.strerror}") from error

    def add(self, item: Round, broken_per_1000_calls: float) -> None:
        """Write the figures of a round and the running yield."""
        figures = {
            "turns broken per 1,000 calls": broken_per_1000_calls,
            "turns broken": item.broken,
            "attempts": item.attempts,
            "epsilon": item.epsilon,
            "loss/critic": item.critic_loss,
            "loss/actor": item.actor_loss,
        }
        for name, value in figures.items():
            self._writer.add_scalar(name, value, item.calls_so_far)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
