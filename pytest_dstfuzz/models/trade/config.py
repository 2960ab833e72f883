"""Settings of a TRADE training run; no torch, so that a command line can import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings


@dataclass(frozen=True)
class TradeTrainingConfig(RunSettings):
    """How to train TRADE; with these defaults the checkpoint that ships was made.

    (Its model card tells where that run departed from them.)
    """

    CHANGEABLE = ("epochs", "patience", "max_minutes", "device")
    COUNTS = ("epochs", "batch_size", "hidden", "embedding", "history_limit", "patience")
    RATES = ("dropout", "word_mask", "average_decay")

    batch_size: int = 32  #: Turns of one step.
    hidden: int = 256
    embedding: int = 300
    word_mask: float = 0.15  #: Share of the history's words that are read as unknown.
    history_limit: int = 400  #: Words of history that are read; older ones are cut.
    patience: int = 5  #: Epochs without a better validation accuracy before the run ends.
    #: Start from word vectors learnt from the training utterances (needs gensim).
    pretrained_vectors: bool = True


@dataclass(frozen=True, kw_only=True)
class TradeEpoch(EpochFigures):
    """Of one epoch: the losses of an average turn."""

    LOSSES: ClassVar[str] = "{gate_loss:.3f} + {value_loss:.3f}"

    gate_loss: float
    value_loss: float
