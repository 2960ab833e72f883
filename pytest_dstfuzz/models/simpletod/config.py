"""Settings of a SimpleTOD training run; no torch, so that a command line can import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings

#: Tokens that a belief may take; the longest of MultiWOZ 2.1's training split takes about 110.
LONGEST_BELIEF = 128


@dataclass(frozen=True)
class SimpleTodTrainingConfig(RunSettings):
    """How to train SimpleTOD; the checkpoint that ships was made with these defaults."""

    COUNTS = ("epochs", "batch_tokens", "vocabulary", "hidden", "layers", "heads")
    RATES = ("dropout", "weight_decay", "average_decay")
    SHARES = ("context_weight", "exchange")

    epochs: int = 8
    gradient_clip: float = 1.0
    dropout: float = 0.0  #: Without a ``base``, whose own settings say how much is dropped.
    average_decay: float = 0.998
    #: A causal language model to start from: a folder, or a name on the hub. ``None`` starts
    #: from random weights and a subword vocabulary learnt from the training split.
    base: str | None = None
    batch_tokens: int = 4096  #: Tokens of one step; a sequence is a whole dialogue.
    vocabulary: int = 5000  #: Subwords, without a ``base``.
    hidden: int = 256  #: Width, layers and attention heads, without a ``base``.
    layers: int = 5
    heads: int = 4
    positions: int = 640  #: Positions, without a ``base``: tokens of context and belief together.
    weight_decay: float = 0.05
    #: Weight of the tokens of the context in the loss; those of a belief weigh 1.
    context_weight: float = 0.3
    #: Share of dialogues in which values are exchanged for others of their slots, wherever
    #: they are said, so that values are copied and not remembered.
    exchange: float = 0.5

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        super().__post_init__()
        if self.hidden % self.heads:
            raise UserError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if self.positions < 2 * LONGEST_BELIEF:
            raise UserError(f"positions must be at least {2 * LONGEST_BELIEF}")


@dataclass(frozen=True, kw_only=True)
class SimpleTodEpoch(EpochFigures):
    """Of one epoch: mean negative log-likelihood of a token of beliefs, and of contexts."""

    LOSSES: ClassVar[str] = "{belief_loss:.3f} (context {context_loss:.3f})"

    belief_loss: float
    context_loss: float
