"""Settings and results of the trainings of all trackers. Imports no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.errors import UserError


@dataclass(frozen=True)
class RunSettings:
    """The settings of a training."""

    #: Settings that may differ when a run is resumed.
    CHANGEABLE: ClassVar[tuple[str, ...]] = ("epochs", "max_minutes", "device")
    #: Settings that do not affect the model, such as paths and output. The data is compared by its
    #: contents instead.
    INCIDENTAL: ClassVar[tuple[str, ...]] = ("data", "output", "layout", "resume", "report_every")
    #: Settings that must be at least 1, in [0, 1), and in [0, 1].
    COUNTS: ClassVar[tuple[str, ...]] = ("epochs",)
    RATES: ClassVar[tuple[str, ...]] = ("dropout", "average_decay")
    SHARES: ClassVar[tuple[str, ...]] = ()

    data: Path  #: MultiWOZ in the TRADE layout, or other data with labelled splits.
    output: Path  #: Folder for the model and the state for resuming.
    layout: str | None = "trade"  #: Layout of the data. Detected if ``None``.
    epochs: int = 10
    learning_rate: float = 1e-3
    #: Steps of linear warm-up. Then the learning rate follows a cosine to 0.
    warmup_steps: int = 300
    gradient_clip: float = 10.0
    dropout: float = 0.2
    #: Decay of the moving average of the weights. The averaged weights are evaluated and saved.
    average_decay: float = 0.999
    #: No epoch begins that would probably end later. ``None`` means no limit.
    max_minutes: float | None = None
    resume: bool = False  #: Resume after the last epoch in ``output``.
    #: Maximum number of dialogues per split, for experiments. ``None`` means all.
    max_dialogues: int | None = None
    seed: int = 0
    device: str = "cpu"
    #: Use bfloat16 for large products in training. This is faster if the processor has bfloat16
    #: instructions, and much slower otherwise.
    bfloat16: bool = False
    report_every: int = 50  #: Steps between progress lines.

    def __post_init__(self) -> None:
        """Reject invalid settings."""
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
        """Return the settings that determine the model.

        They must stay the same in a resumed run.
        """
        left_out = {*self.CHANGEABLE, *self.INCIDENTAL}
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def changeable(self) -> dict[str, Any]:
        """Return the settings that may change when a run is resumed."""
        return {name: getattr(self, name) for name in self.CHANGEABLE}


@dataclass(frozen=True, kw_only=True)
class EpochFigures:
    """The results of one epoch. Accuracies are in [0, 1], over the whole validation split."""

    #: Format of the mean losses in a line. Subclasses define the losses.
    LOSSES: ClassVar[str]

    epoch: int
    joint_goal_accuracy: float
    slot_accuracy: float | None = None  #: ``None`` if it is not measured.
    seconds: float

    def line(self) -> str:
        """Return the results as a line of text."""
        slots = self.slot_accuracy
        return (
            f"epoch {self.epoch} loss {self.LOSSES.format_map(asdict(self))} validation: "
            f"joint goal accuracy {percent(self.joint_goal_accuracy)}, "
            + ("" if slots is None else f"slot accuracy {percent(slots)}, ")
            + f"{self.seconds / 60:.1f} min"
        )


@dataclass(frozen=True)
class TrainingRun:
    """The best model and the history of a training."""

    model: Path
    best_epoch: int
    joint_goal_accuracy: float
    history: tuple[Any, ...]
    ended_by: str  #: Why it ended: ``epochs``, ``patience`` or ``max_minutes``.
