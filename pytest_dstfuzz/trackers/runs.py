"""What every training run of a tracker needs: its rate, averaged weights, a way to resume."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.neural import write_tensors
from pytest_dstfuzz.trackers.run_settings import RunSettings

#: What a resumed run needs; what is said about the run is in its metadata.
STATE_FILE = "training.safetensors"
_RUN = "dstfuzz.run"


class EMA:
    """Exponential moving average of weights; young averages forget faster."""

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        """Start from the present values."""
        self.values = [parameter.detach().clone() for parameter in parameters]
        self.decay = decay

    def restart(self, parameters: Sequence[Tensor]) -> None:
        """Forget what was, and start from ``parameters``."""
        for value, parameter in zip(self.values, parameters, strict=True):
            value.copy_(parameter.detach())

    def update(self, parameters: Sequence[Tensor], step: int) -> None:
        """Move towards ``parameters`` after optimiser step number ``step`` (from 1)."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.values, [p.detach() for p in parameters], weight)


def learning_rate(step: int, total: int, highest: float, warmup_steps: int) -> float:
    """Return the rate of step number ``step`` (from 0) of ``total``: linear rise, cosine fall."""
    warmup = min(warmup_steps, max(1, total // 10))
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def check_output(folder: Path, *, resume: bool) -> None:
    """Make the output folder; refuse to write over an earlier run by accident.

    Raises:
        UserError: it holds a run that is not to be resumed, or cannot be written to.
    """
    if not resume and (folder / STATE_FILE).exists():
        raise UserError(
            f"{folder} holds a training run already: resume it, or choose another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from error


@dataclass(frozen=True)
class RunState:
    """Weights, their average and the state of Adam, to a file and back.

    Attributes:
        folder: where the file lies.
        parameters: name and weights, in the order of the optimiser.
        average: of the same weights.
        optimiser: Adam or AdamW, fused.
    """

    folder: Path
    parameters: Sequence[tuple[str, Tensor]]
    average: EMA
    optimiser: torch.optim.Optimizer

    def save(self, run: Mapping[str, Any]) -> None:
        """Write all that a resumed run needs, as one file: it is whole or not there.

        Args:
            run: what is said about it; ``identity`` is what must not change.
        """
        tensors: dict[str, Tensor] = {}
        for (name, parameter), mean in zip(self.parameters, self.average.values, strict=True):
            state = self.optimiser.state[parameter]
            tensors[f"weight.{name}"], tensors[f"average.{name}"] = parameter, mean
            tensors[f"first.{name}"], tensors[f"second.{name}"] = (
                state["exp_avg"],
                state["exp_avg_sq"],
            )
            tensors["step"] = state["step"]
        write_tensors(self.folder / STATE_FILE, tensors, about={_RUN: json.dumps(run)})

    def restore(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Go back to what was saved last, and return what was said about it.

        Args:
            identity: of the run that is to go on.

        Raises:
            UserError: there is no such file, it is damaged, or the run is another one.
        """
        run, tensors = self._read()
        earlier = run.get("identity")
        if not isinstance(earlier, dict):
            raise self.cannot_resume(f"{STATE_FILE} is damaged (no identity)")
        for name, value in identity.items():
            if name not in earlier:
                raise self.cannot_resume(f"{STATE_FILE} does not say what {name} was")
            if earlier[name] != value:
                raise self.cannot_resume(f"{name} was {earlier[name]!r}, is now {value!r}")
        self._fill(tensors)
        return run

    def cannot_resume(self, reason: str) -> UserError:
        """Return the error for a run that cannot go on."""
        return UserError(f"cannot resume from {self.folder}: {reason}")

    def _read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what the file of an earlier part says about its run, and its tensors."""
        try:
            with safe_open(self.folder / STATE_FILE, "pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            run = json.loads(about.get(_RUN, "null"))
        except (OSError, ValueError, SafetensorError) as error:
            raise self.cannot_resume(str(error)) from error
        if not isinstance(run, dict):
            raise self.cannot_resume(
                f"{STATE_FILE} does not say what run it is of; an earlier version wrote it"
            )
        return run, tensors

    def _fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy weights, their average and the optimiser's state."""
        kinds = ("weight", "average", "first", "second")
        shapes = {
            f"{kind}.{name}": parameter.shape
            for name, parameter in self.parameters
            for kind in kinds
        }
        for name, shape in {**shapes, "step": torch.Size([])}.items():
            if name not in tensors:
                raise self.cannot_resume(f"{STATE_FILE} has no tensor {name!r}")
            if tensors[name].shape != shape:
                raise self.cannot_resume(
                    f"{name!r} has the shape {list(tensors[name].shape)}, not {list(shape)}"
                )
        with torch.no_grad():
            for number, (name, parameter) in enumerate(self.parameters):
                parameter.copy_(tensors[f"weight.{name}"])
                self.average.values[number].copy_(tensors[f"average.{name}"])
                self.optimiser.state[parameter] = {
                    # The fused optimiser wants its count where the weights are.
                    "step": tensors["step"].clone().to(parameter.device),
                    "exp_avg": tensors[f"first.{name}"].to(parameter.device),
                    "exp_avg_sq": tensors[f"second.{name}"].to(parameter.device),
                }


class Figures(Protocol):
    """What one epoch came to, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def joint_goal_accuracy(self) -> float:
        """On the validation split, in [0, 1]."""
        ...


F = TypeVar("F", bound=Figures)


def best(history: Sequence[F]) -> F:
    """Return the figures of the epoch with the highest accuracy, the first of equal ones."""
    return max(history, key=lambda figures: figures.joint_goal_accuracy)


class ResumableTrainer(ABC, Generic[F]):
    """Where a training run stands between epochs.

    Attributes:
        history: figures of the epochs so far.
        parts: what each part of the run trained under that another part might change.
    """

    def __init__(self, settings: RunSettings, figures: type[F], state: RunState) -> None:
        """Begin a fresh run; ``figures`` is the class of the figures of an epoch."""
        self.history: list[F] = []
        self.state = state
        self._settings = settings
        self._figures = figures
        self.parts: list[dict[str, Any]] = [self._part()]

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""

    def save(self) -> None:
        """Write all that a resumed run needs."""
        self.state.save(
            {
                "identity": self.identity(),
                "parts": self.parts,
                "history": [asdict(figures) for figures in self.history],
            }
        )

    def restore(self) -> None:
        """Go back to the end of the last epoch that was saved.

        Raises:
            UserError: there is no such file, it is damaged, or the run is another one.
        """
        run = self.state.restore(self.identity())
        try:
            parts = [dict(part) for part in run["parts"]]
            self.history = [self._figures(**figures) for figures in run["history"]]
        except (KeyError, TypeError, ValueError) as error:
            raise self.state.cannot_resume(f"{STATE_FILE} is damaged ({error!r})") from error
        now = self._part()
        if not parts or any(
            parts[-1].get(name) != now[name] for name in self._settings.changeable()
        ):
            parts.append(now)
        self.parts = parts

    def _part(self) -> dict[str, Any]:
        return {"from_epoch": len(self.history), **self._settings.changeable()}
