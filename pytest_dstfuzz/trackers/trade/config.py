"""Settings of a TRADE training run; no torch, so that a command line can import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.run_settings import RunSettings


@dataclass(frozen=True)
class TradeTrainingConfig(RunSettings):
    """How to train TRADE; with these defaults the checkpoint that ships was made.

    (Its model card tells where that run departed from them.)
    """

    CHANGEABLE = ("epochs", "patience", "max_minutes", "device")

    #: MultiWOZ in the TRADE layout, or anything the readers know with labelled splits.
    data: Path
    #: Folder for the model and for what a resumed run needs.
    output: Path
    #: Layout to read the data in; ``None`` finds it by looking.
    layout: str | None = "trade"
    epochs: int = 10
    batch_size: int = 32
    hidden: int = 256
    embedding: int = 300
    learning_rate: float = 1e-3
    #: Steps over which the learning rate rises from 0; then it falls as a cosine to 0.
    warmup_steps: int = 300
    gradient_clip: float = 10.0
    dropout: float = 0.2
    #: Share of the history's words that are read as unknown.
    word_mask: float = 0.15
    #: Decay of the moving average of the weights, which is what is evaluated and kept.
    average_decay: float = 0.999
    #: Words of history that are read; older ones are cut.
    history_limit: int = 400
    #: Epochs without a better validation accuracy before the run ends.
    patience: int = 5
    #: Start from word vectors learnt from the training utterances (needs gensim).
    pretrained_vectors: bool = True
    #: No epoch is begun that would probably end later than this; ``None`` = no limit.
    max_minutes: float | None = None
    #: Go on from the last epoch found in ``output``.
    resume: bool = False
    #: Only so many dialogues of each split (for tries); ``None`` = all.
    max_dialogues: int | None = None
    seed: int = 0
    device: str = "cpu"
    #: Compute the encoder's large products in bfloat16 while training; faster on
    #: processors with bfloat16 instructions, much slower on others.
    bfloat16: bool = False
    #: Steps between progress lines.
    report_every: int = 50

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in ("epochs", "batch_size", "hidden", "embedding", "history_limit", "patience"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("dropout", "word_mask", "average_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be in [0, 1), not {getattr(self, name)}")
        if self.learning_rate <= 0 or self.gradient_clip <= 0:
            raise UserError("learning_rate and gradient_clip must be greater than 0")


@dataclass(frozen=True)
class TradeEpoch:
    """What one epoch came to; accuracies in [0, 1] on the whole validation split."""

    epoch: int
    gate_loss: float
    value_loss: float
    joint_goal_accuracy: float
    slot_accuracy: float
    seconds: float

    def line(self) -> str:
        """Return the figures as a line of text."""
        return (
            f"epoch {self.epoch} loss {self.gate_loss:.3f} + {self.value_loss:.3f} validation: "
            f"joint goal accuracy {100 * self.joint_goal_accuracy:.2f} %, "
            f"slot accuracy {100 * self.slot_accuracy:.2f} %, {self.seconds / 60:.1f} min"
        )


@dataclass(frozen=True)
class TradeResult:
    """Where the best model lies and how training went."""

    model: Path
    best_epoch: int
    joint_goal_accuracy: float
    history: tuple[TradeEpoch, ...]
    #: Why it ended: ``epochs``, ``patience`` or ``max_minutes``.
    ended_by: str
