"""Settings of a SimpleTOD training. Imports no torch, so that command lines can use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings

#: Maximum number of belief tokens. The longest in MultiWOZ 2.1's training split has about 110.
LONGEST_BELIEF = 128


@dataclass(frozen=True)
class SimpleTodTrainingConfig(RunSettings):
    """The settings of a SimpleTOD training. The shipped checkpoint used the defaults."""

    COUNTS = ("epochs", "batch_tokens", "vocabulary", "hidden", "layers", "heads")
    RATES = ("dropout", "weight_decay", "average_decay")
    SHARES = ("context_weight", "exchange")

    epochs: int = 8
    gradient_clip: float = 1.0
    dropout: float = 0.0  #: Ignored if there is a ``base``, which has its own rate.
    average_decay: float = 0.998
    #: Causal language model to start from: a folder, or a name on the hub. ``None`` starts from
    #: random weights and a subword vocabulary learnt from the training split.
    base: str | None = None
    batch_tokens: int = 4096  #: Tokens per step. A sequence is a whole dialogue.
    vocabulary: int = 5000  #: Number of subwords. Ignored if there is a ``base``.
    hidden: int = 256  #: Width, layers and attention heads. Ignored if there is a ``base``.
    layers: int = 5
    heads: int = 4
    positions: int = 640  #: Tokens of context and belief. Ignored if there is a ``base``.
    weight_decay: float = 0.05
    #: Weight of context tokens in the loss. Belief tokens have weight 1.
    context_weight: float = 0.3
    #: Share of dialogues in which values are replaced by others of their slots, so that the model
    #: learns to copy values instead of memorising them.
    exchange: float = 0.5

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        super().__post_init__()
        if self.hidden % self.heads:
            raise UserError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if self.positions < 2 * LONGEST_BELIEF:
            raise UserError(f"positions must be at least {2 * LONGEST_BELIEF}")


@dataclass(frozen=True, kw_only=True)
class SimpleTodEpoch(EpochFigures):
    """The results of one epoch. The losses are mean negative log-likelihoods per token."""

    LOSSES: ClassVar[str] = "{belief_loss:.3f} (context {context_loss:.3f})"

    belief_loss: float
    context_loss: float
