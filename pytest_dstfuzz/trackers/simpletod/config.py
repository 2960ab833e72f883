"""Settings of a SimpleTOD training run; no torch, so that a command line can import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.run_settings import RunSettings


@dataclass(frozen=True)
class SimpleTodTrainingConfig(RunSettings):
    """How to train SimpleTOD; the checkpoint that ships was made with these defaults."""

    #: MultiWOZ in the TRADE layout, or anything the readers know with labelled splits.
    data: Path
    #: Folder for the model and for what a resumed run needs.
    output: Path
    #: Layout to read the data in; ``None`` finds it by looking.
    layout: str | None = "trade"
    #: A causal language model to start from: a folder, or a name on the hub. ``None`` starts
    #: from random weights and a subword vocabulary learnt from the training split.
    base: str | None = None
    epochs: int = 8
    #: Tokens of one step; a sequence is a whole dialogue.
    batch_tokens: int = 4096
    #: Subwords, without a ``base``.
    vocabulary: int = 5000
    #: Width, layers and attention heads, without a ``base``.
    hidden: int = 256
    layers: int = 5
    heads: int = 4
    #: Positions, without a ``base``: tokens of context and belief together.
    positions: int = 640
    learning_rate: float = 1e-3
    #: Steps over which the learning rate rises from 0; then it falls as a cosine to 0.
    warmup_steps: int = 300
    weight_decay: float = 0.05
    #: Decay of the moving average of the weights, which is what is evaluated and kept.
    average_decay: float = 0.998
    gradient_clip: float = 1.0
    #: Without a ``base``, whose own settings say how much is dropped.
    dropout: float = 0.0
    #: Weight of the tokens of the context in the loss; those of a belief weigh 1.
    context_weight: float = 0.3
    #: Share of dialogues in which values are exchanged for others of their slots, wherever
    #: they are said, so that values are copied and not remembered.
    exchange: float = 0.5
    #: No epoch is begun that would probably end later than this; ``None`` = no limit.
    max_minutes: float | None = None
    #: Go on from the last epoch found in ``output``.
    resume: bool = False
    #: Only so many dialogues of each split (for tries); ``None`` = all.
    max_dialogues: int | None = None
    seed: int = 0
    device: str = "cpu"
    #: Compute large products in bfloat16 while training; faster on processors with
    #: bfloat16 instructions, much slower on others.
    bfloat16: bool = False
    #: Steps between progress lines.
    report_every: int = 50

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in ("epochs", "batch_tokens", "vocabulary", "hidden", "layers", "heads"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("dropout", "weight_decay", "average_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be in [0, 1), not {getattr(self, name)}")
        for name in ("context_weight", "exchange"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.learning_rate <= 0 or self.gradient_clip <= 0:
            raise UserError("learning_rate and gradient_clip must be greater than 0")
        if self.hidden % self.heads:
            raise UserError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if self.positions < 2 * LONGEST_BELIEF:
            raise UserError(f"positions must be at least {2 * LONGEST_BELIEF}")


#: Tokens that a belief may take; the longest of MultiWOZ 2.1's training split takes about 110.
LONGEST_BELIEF = 128


@dataclass(frozen=True)
class SimpleTodEpoch:
    """What one epoch came to; the accuracy in [0, 1] on the whole validation split."""

    epoch: int
    #: Mean negative log-likelihood of a token: of beliefs, and of contexts.
    belief_loss: float
    context_loss: float
    joint_goal_accuracy: float
    seconds: float

    def line(self) -> str:
        """Return the figures as a line of text."""
        return (
            f"epoch {self.epoch} loss {self.belief_loss:.3f} (context {self.context_loss:.3f}) "
            f"validation: joint goal accuracy {100 * self.joint_goal_accuracy:.2f} %, "
            f"{self.seconds / 60:.1f} min"
        )


@dataclass(frozen=True)
class SimpleTodResult:
    """Where the best model lies and how training went."""

    model: Path
    best_epoch: int
    joint_goal_accuracy: float
    history: tuple[SimpleTodEpoch, ...]
    #: Why it ended: ``epochs`` or ``max_minutes``.
    ended_by: str
