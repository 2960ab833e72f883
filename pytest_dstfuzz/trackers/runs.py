"""What every training run of a tracker does: steps, epochs, averaged weights, resuming."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.neural import EMA, learning_rate, write_tensors
from pytest_dstfuzz.trackers.run_settings import EpochFigures, RunSettings, TrainingRun

#: What a resumed run needs; what is said about the run is in its metadata.
STATE_FILE = "training.safetensors"
_RUN = "dstfuzz.run"


F = TypeVar("F", bound=EpochFigures)
Group = TypeVar("Group")
#: Told a line at a time.
Progress = Callable[[str], None]


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


def labelled_split(settings: RunSettings, split: str) -> DialogueSet:
    """Return a split of the data of a run, cut to as many dialogues as are wanted.

    Raises:
        DataError: it has none, or some turns have no label.
    """
    found = load_dialogues(settings.data, split, layout=settings.layout)
    dialogues = found.dialogues[: settings.max_dialogues]
    if not dialogues or not found.labelled:
        raise DataError(f"{settings.data}: split {split!r} has no labelled dialogues to train on")
    return replace(found, dialogues=dialogues)


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


def best(history: Sequence[F]) -> F:
    """Return the figures of the epoch with the highest accuracy, the first of equal ones."""
    return max(history, key=lambda figures: figures.joint_goal_accuracy)


class ResumableTrainer(ABC, Generic[F, Group]):
    """A training run: model, optimiser, averaged weights, and where it stands between epochs.

    Args:
        settings: of the run.
        model: on its device already.
        optimiser: Adam or AdamW, fused, of the model's weights.

    Attributes:
        history: figures of the epochs so far.
        parts: what each part of the run trained under that another part might change.
    """

    #: Class of the figures of an epoch.
    FIGURES: type[F]
    #: The losses in the figures, and what a group has several of.
    LOSSES: ClassVar[tuple[str, ...]]
    UNIT: ClassVar[str]

    def __init__(
        self, settings: RunSettings, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> None:
        """Begin a fresh run."""
        self._settings, self._module, self._optimiser = settings, model, optimiser
        named = list(model.named_parameters())
        self.parameters = [parameter for _, parameter in named]
        self.average = EMA(self.parameters, settings.average_decay)
        self.state = RunState(settings.output, named, self.average, optimiser)
        self.history: list[F] = []
        self.parts: list[dict[str, Any]] = [self._part()]

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""

    @abstractmethod
    def groups(self, rng: np.random.Generator) -> Sequence[Sequence[Group]]:
        """Return what each step of an epoch trains on."""

    @abstractmethod
    def noise(self, seed: int) -> AbstractContextManager[object]:
        """Let what is drawn while training come from a seed."""

    @abstractmethod
    def losses(self, group: Sequence[Group]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the loss of a step.

        Returns:
            What is minimised; and for each of `LOSSES` a sum, and of how many it is.
        """

    @abstractmethod
    def measure(self) -> dict[str, float]:
        """Return the accuracies of the model as it is, by their names in the figures."""

    @abstractmethod
    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the model as it is, to be used."""

    def impatient(self) -> bool:
        """Whether the run ends for want of progress."""
        return False

    def run(self, progress: Progress) -> TrainingRun:
        """Train until one of the limits, and keep the epoch that is best on validation."""
        if self._settings.resume:
            self.restore()
            progress(f"resumed after epoch {len(self.history)}")
        ended_by = self._train(progress)
        chosen = best(self.history)
        return TrainingRun(
            self._settings.output,
            chosen.epoch,
            chosen.joint_goal_accuracy,
            tuple(self.history),
            ended_by,
        )

    def _train(self, progress: Progress) -> str:
        """Train epochs until one of the limits; returns which."""
        settings = self._settings
        begin, longest = time.monotonic(), 0.0
        while len(self.history) < settings.epochs:
            if self.history and self.impatient():
                return "patience"
            start = time.monotonic()
            most = settings.max_minutes
            if most and longest and start - begin + longest > most * 60:
                return "max_minutes"
            losses = self.epoch(progress)
            with self._averaged():
                accuracies = self.measure()
                seconds = time.monotonic() - start
                longest = max(longest, seconds)
                number = len(self.history) + 1
                figures = self.FIGURES(epoch=number, seconds=seconds, **losses, **accuracies)
                self.history.append(figures)
                progress(figures.line())
                if best(self.history) is figures:
                    self.save_model(self._about(figures))
            self.save()
        return "epochs"

    def epoch(self, progress: Progress) -> dict[str, float]:
        """Train one epoch; returns its mean losses by name."""
        settings, number = self._settings, len(self.history)
        groups = self.groups(stream(settings.seed, "epoch", number))
        # Epochs may differ by a few steps; this one's number stands for all.
        before, total = number * len(groups), settings.epochs * len(groups)
        self._module.train()
        sums = np.zeros(2 * len(self.LOSSES))
        items, start = 0, time.monotonic()
        # Seeded anew each epoch, a resumed run repeats what an uninterrupted one does.
        with self.noise(derive(settings.seed, "noise", number) % 2**63):
            for done, group in enumerate(groups, start=1):
                step = before + done
                sums += self._step(group, step, total)
                items += len(group)
                if done % settings.report_every == 0 or done == len(groups):
                    elapsed = time.monotonic() - start
                    shown = self.FIGURES.LOSSES.format_map(self._means(sums))
                    progress(
                        f"epoch {number + 1}/{settings.epochs} step {done}/{len(groups)} "
                        f"loss {shown} {items / elapsed:.0f} {self.UNIT}/s "
                        f"ETA {(total - step) * elapsed / done / 60:.0f} min"
                    )
        return self._means(sums)

    def _step(self, group: Sequence[Group], step: int, total: int) -> np.ndarray:
        """Make step number ``step`` (from 1) of ``total``; returns sums of losses and counts."""
        settings = self._settings
        loss, sums = self.losses(group)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # theirs has no types
        nn.utils.clip_grad_norm_(self.parameters, settings.gradient_clip)
        rate = learning_rate(step - 1, total, settings.learning_rate, settings.warmup_steps)
        for parameters in self._optimiser.param_groups:
            parameters["lr"] = rate
        self._optimiser.step()
        self.average.update(self.parameters, step)
        return np.array([float(value) for value in sums])

    def _means(self, sums: np.ndarray) -> dict[str, float]:
        pairs = sums.reshape(-1, 2).tolist()
        return {
            name: total / max(count, 1)
            for name, (total, count) in zip(self.LOSSES, pairs, strict=True)
        }

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Let the model have its averaged weights for a while, in evaluation mode."""
        kept = [parameter.detach().clone() for parameter in self.parameters]
        self._take(self.average.values)
        self._module.train(mode=False)
        try:
            yield
        finally:
            self._take(kept)

    def _take(self, values: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)

    def _about(self, figures: F) -> dict[str, Any]:
        return {
            "settings": self._settings.fixed(),
            # The epochs decide the learning rate too, so each part tells its own.
            "parts": self.parts,
            "validation": asdict(figures),
            "history": [asdict(earlier) for earlier in self.history],
            "dialogues": "training split of " + self._settings.data.name,
        }

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
            self.history = [self.FIGURES(**figures) for figures in run["history"]]
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
