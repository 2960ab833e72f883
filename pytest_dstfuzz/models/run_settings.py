"""Settings and figures that the trainings of all trackers share; no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.errors import UserError


@dataclass(frozen=True)
class RunSettings:
    """How to train a tracker."""

    #: Settings that a resumed run may change: when it ends, and where it computes.
    CHANGEABLE: ClassVar[tuple[str, ...]] = ("epochs", "max_minutes", "device")
    #: Settings that say nothing about the model: where things lie, and what is printed. The
    #: data is compared by what is made of it.
    INCIDENTAL: ClassVar[tuple[str, ...]] = ("data", "output", "layout", "resume", "report_every")
    #: Settings that must be at least 1, less than 1, and no more than 1.
    COUNTS: ClassVar[tuple[str, ...]] = ("epochs",)
    RATES: ClassVar[tuple[str, ...]] = ("dropout", "average_decay")
    SHARES: ClassVar[tuple[str, ...]] = ()

    data: Path  #: MultiWOZ in the TRADE layout, or anything the readers know with labelled splits.
    output: Path  #: Folder for the model and for what a resumed run needs.
    layout: str | None = "trade"  #: Layout to read the data in; ``None`` finds it by looking.
    epochs: int = 10
    learning_rate: float = 1e-3
    #: Steps over which the learning rate rises from 0; then it falls as a cosine to 0.
    warmup_steps: int = 300
    gradient_clip: float = 10.0
    dropout: float = 0.2
    #: Decay of the moving average of the weights, which is what is evaluated and kept.
    average_decay: float = 0.999
    #: No epoch is begun that would probably end later than this; ``None`` = no limit.
    max_minutes: float | None = None
    resume: bool = False  #: Go on from the last epoch found in ``output``.
    #: Only so many dialogues of each split (for tries); ``None`` = all.
    max_dialogues: int | None = None
    seed: int = 0
    device: str = "cpu"
    #: Compute large products in bfloat16 while training; faster on processors with bfloat16
    #: instructions, much slower on others.
    bfloat16: bool = False
    report_every: int = 50  #: Steps between progress lines.

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in self.COUNTS:
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in self.RATES:
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be in [0, 1), not {getattr(self, name)}")
        for name in self.SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.learning_rate <= 0 or self.gradient_clip <= 0:
            raise UserError("learning_rate and gradient_clip must be greater than 0")

    def fixed(self) -> dict[str, Any]:
        """Return the settings that make the model what it is; they hold for a whole run."""
        left_out = {*self.CHANGEABLE, *self.INCIDENTAL}
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def changeable(self) -> dict[str, Any]:
        """Return the settings that may differ between the parts of a run."""
        return {name: getattr(self, name) for name in self.CHANGEABLE}


@dataclass(frozen=True, kw_only=True)
class EpochFigures:
    """What one epoch came to; accuracies in [0, 1] on the whole validation split."""

    #: How a line shows the mean losses, which the figures of each tracker name.
    LOSSES: ClassVar[str]

    epoch: int
    joint_goal_accuracy: float
    slot_accuracy: float | None = None  #: ``None`` where it is not measured.
    seconds: float

    def line(self) -> str:
        """Return the figures as a line of text."""
        slots = self.slot_accuracy
        return (
            f"epoch {self.epoch} loss {self.LOSSES.format_map(asdict(self))} validation: "
            f"joint goal accuracy {percent(self.joint_goal_accuracy)}, "
            + ("" if slots is None else f"slot accuracy {percent(slots)}, ")
            + f"{self.seconds / 60:.1f} min"
        )


@dataclass(frozen=True)
class TrainingRun:
    """Where the best model lies and how training went."""

    model: Path
    best_epoch: int
    joint_goal_accuracy: float
    history: tuple[Any, ...]
    ended_by: str  #: Why it ended: ``epochs``, ``patience`` or ``max_minutes``.
