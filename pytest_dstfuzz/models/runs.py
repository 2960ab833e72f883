"""Runs the training of trackers: steps, epochs, averaged weights and resuming."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import wraps
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
)

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import digest_of, lock_file
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.models.neural import EMA, learning_rate, write_tensors
from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings, TrainingRun
from pytest_dstfuzz.seeding import derive, stream

#: State for resuming. The description of the run is in its metadata.
STATE_FILE = "training.safetensors"
_RUN = "dstfuzz.run"
#: A hash in the description of a run. Messages do not show it.
_DIGEST = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b")

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R", bound="_Run")
F = TypeVar("F", bound=EpochFigures)
Group = TypeVar("Group")
#: Reports progress, one line at a time.
Progress = Callable[[str], None]


class _Run(Protocol):
    @property
    def output(self) -> Path: ...


def locks_output(
    train: Callable[Concatenate[R, P], T],
) -> Callable[Concatenate[R, P], T]:
    """Decorate a training whose first argument has the output folder, which it locks.

    Otherwise, two runs at once would each report the files that the other one wrote last.

    Raises:
        UserError: another process trains into the folder.
    """

    @wraps(train)
    def train_alone(run: R, /, *args: P.args, **more: P.kwargs) -> T:
        existed = run.output.exists()
        make_folder(run.output)
        try:
            with lock_file(run.output / STATE_FILE, wait=0.0):
                return train(run, *args, **more)
        finally:
            if not existed:
                # A training that is refused before its start leaves no folder.
                with suppress(OSError):
                    run.output.rmdir()

    return train_alone


def check_output(folder: Path, *, resume: bool) -> None:
    """Raise an error if the output folder has a run and ``resume`` is false."""
    if not resume and (folder / STATE_FILE).exists():
        raise UserError(
            f"{folder} already has a training run: continue it with --resume, or name another "
            "folder"
        )


def describe_run(config: Any, changeable: Collection[str]) -> dict[str, str]:
    """Return the settings that must stay the same when a run is resumed; files by their content.

    Args:
        config: a dataclass with the settings.
        changeable: the names of the settings that may change.
    """
    found = {name: value for name, value in vars(config).items() if name not in changeable}
    return {
        name: _content_of(value) if isinstance(value, Path) else str(value)
        for name, value in found.items()
    }


def _content_of(path: Path) -> str:
    """Return the digest of a file, or of the texts in a folder, which may also have the output."""
    return digest_of(sorted(path.glob("*.txt")) if path.is_dir() else [path])


def make_folder(folder: Path) -> None:
    """Create the output folder of a training, if it does not exist.

    Raises:
        UserError: the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from error


def begin(settings: RunSettings) -> tuple[DialogueSet, DialogueSet]:
    """Create the output folder, and return the dialogues for training and for validation."""
    check_output(settings.output, resume=settings.resume)

    def labelled(split: str) -> DialogueSet:
        found = load_dialogues(settings.data, split, layout=settings.layout)
        dialogues = found.dialogues[: settings.max_dialogues]
        if not dialogues or not found.labelled:
            name = f"{settings.data}: split {split!r}"
            raise DataError(f"{name} has no labelled dialogues to train on")
        return replace(found, dialogues=dialogues)

    return labelled("train"), labelled("val")


def write_run(
    folder: Path, key: str, about: Mapping[str, Any], tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write the state for resuming a run, atomically and as one file.

    ``about`` describes the run, and is stored in the metadata as JSON under ``key``.
    """
    write_tensors(folder / STATE_FILE, dict(tensors), about={key: json.dumps(about)})


@dataclass(frozen=True)
class SavedRun:
    """The content of a file from `write_run`. Errors are raised as `UserError`."""

    folder: Path
    about: dict[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def read(cls, folder: Path, key: str) -> Self:
        """Read the state of the earlier part of a run from its folder."""
        try:
            with safe_open(folder / STATE_FILE, "pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            found = cls(folder, json.loads(metadata.get(key, "null")), tensors)
        except FileNotFoundError:
            reason = f"it has no {STATE_FILE}, so it is not the folder of a training run"
            raise _cannot_resume(folder, reason) from None
        except (OSError, ValueError, SafetensorError) as error:
            raise _cannot_resume(folder, f"{STATE_FILE} is damaged ({error})") from error
        if not isinstance(found.about, dict):
            raise found.refused(
                f"an earlier version wrote {STATE_FILE}, which therefore does not describe its run"
            )
        return found

    @classmethod
    def resumed(
        cls,
        folder: Path,
        key: str,
        identity: Mapping[str, Any],
        places: Iterable[tuple[str, Tensor]],
    ) -> Self:
        """Read the state of a run with this identity, and copy its tensors into ``places``."""
        found = cls.read(folder, key)
        found.check(found.about.get("identity", {}), identity)
        found.fill(places)
        return found

    def history(self, kind: type[T]) -> list[T]:
        """Return the results of each epoch or round so far."""
        return [self.built(kind, item) for item in self.about["history"]]

    def refused(self, reason: str) -> UserError:
        """Return the error for a run that cannot be resumed."""
        return _cannot_resume(self.folder, reason)

    def built(self, kind: type[T], data: object) -> T:
        """Build a dataclass from part of the run's description."""
        try:
            return from_json(kind, data)
        except ValueError as error:
            raise self.refused(f"{STATE_FILE} is damaged ({error})") from None

    def check(self, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Raise an error unless every setting in ``now`` has its earlier value."""
        for name, value in now.items():
            if name not in earlier:
                raise self.refused(f"{STATE_FILE} does not contain the setting {name}")
            if earlier[name] != value:
                if _DIGEST.search(f"{earlier[name]} {value}"):
                    raise self.refused(f"changed since the earlier run: {name}")
                raise self.refused(f"{name} was {earlier[name]!r} and is now {value!r}")

    def fill(self, places: Iterable[tuple[str, Tensor]]) -> None:
        """Copy the stored tensors into ``places`` by name."""
        with torch.no_grad():
            for name, place in places:
                if name not in self.tensors:
                    raise self.refused(f"{STATE_FILE} lacks the tensor {name!r}")
                found = self.tensors[name]
                if found.shape != place.shape:
                    raise self.refused(
                        f"{name!r} has the shape {list(found.shape)}, not {list(place.shape)}"
                    )
                place.copy_(found)


def _cannot_resume(folder: Path, reason: str) -> UserError:
    return UserError(f"cannot resume from {folder}: {reason}")


def moments(optimiser: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """Return the state of fused Adam for a weight. Create it before the first step."""
    state: dict[str, Tensor] = optimiser.state[parameter]
    if not state:
        # Fused Adam needs the step count on the device of the weights.
        state["step"] = torch.zeros((), device=parameter.device)
        state["exp_avg"], state["exp_avg_sq"] = (torch.zeros_like(parameter) for _ in range(2))
    return state


@dataclass(frozen=True)
class _About:
    """The stored description of a tracker's run."""

    identity: dict[str, Any]
    parts: list[dict[str, Any]]
    history: list[Any]


class ResumableTrainer(ABC, Generic[F, Group]):
    """A training run: the model, the optimiser, averaged weights, and the state between epochs.

    The model must be on its device. The optimiser must be fused Adam or AdamW. The run writes its
    state after each epoch. It also writes the model if the epoch is the best so far on validation.
    """

    FIGURES: type[F]  #: Class of an epoch's results.
    #: Names of the losses in the results, and the unit of a group's items.
    LOSSES: ClassVar[tuple[str, ...]]
    UNIT: ClassVar[str]

    def __init__(
        self, settings: RunSettings, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> None:
        """Begin a new run with a model and its optimiser."""
        self._settings, self._module, self._optimiser = settings, model, optimiser
        self.parameters = list(model.parameters())
        self.average = EMA(self.parameters, settings.average_decay)
        #: Results of the epochs so far.
        self.history: list[F] = []
        #: Changeable settings of each part of the run.
        self.parts: list[dict[str, Any]] = [self._part()]

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed."""

    @abstractmethod
    def groups(self, rng: np.random.Generator) -> Sequence[Sequence[Group]]:
        """Return the training data of one epoch, as a list of groups per step."""

    @abstractmethod
    def noise(self, seed: int) -> AbstractContextManager[object]:
        """Return a context in which the training's random numbers come from ``seed``."""

    @abstractmethod
    def losses(self, group: Sequence[Group]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the loss to minimise, and for each of `LOSSES` its sum and count."""

    @abstractmethod
    def measure(self) -> dict[str, float]:
        """Return the accuracies of the model on validation, by the names of the results' fields."""

    @abstractmethod
    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the model and its description."""

    def best(self) -> F:
        """Return the best epoch, whose model is kept. It is the first with the highest accuracy."""
        return max(self.history, key=lambda figures: figures.joint_goal_accuracy)

    def impatient(self) -> bool:
        """Return whether to end the run because the accuracy has stopped rising."""
        return False

    def run(self, progress: Progress) -> TrainingRun:
        """Train until a limit is reached. Keep the model of the best epoch on validation."""
        if self._settings.resume:
            self.restore()
            progress(f"resumed after epoch {len(self.history)}")
        ended_by = self._train(progress)
        chosen = self.best()
        return TrainingRun(
            self._settings.output,
            chosen.epoch,
            chosen.joint_goal_accuracy,
            tuple(self.history),
            ended_by,
        )

    def _train(self, progress: Progress) -> str:
        """Train epochs until a limit is reached. Return the name of the limit."""
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
            with self.using(self.kept_weights()):
                accuracies = self.measure()
                seconds = time.monotonic() - start
                longest = max(longest, seconds)
                number = len(self.history) + 1
                figures = self.FIGURES(epoch=number, seconds=seconds, **losses, **accuracies)
                self.history.append(figures)
                progress(figures.line())
                if self.best() is figures:
                    self.save_model(self._about(figures))
            self.save()
        return "epochs"

    def epoch(self, progress: Progress) -> dict[str, float]:
        """Train one epoch, and return its mean losses, each with its name."""
        settings, number = self._settings, len(self.history)
        groups = self.groups(stream(settings.seed, "epoch", number))
        # Epochs may differ by a few steps. The number of this one stands for all.
        before, total = number * len(groups), settings.epochs * len(groups)
        self._module.train()
        sums = np.zeros(2 * len(self.LOSSES))
        items, start = 0, time.monotonic()
        # Seed every epoch, so that a resumed run repeats an uninterrupted one.
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
        """Make step ``step`` (from 1) of ``total``. Return the sums and counts of the losses."""
        settings = self._settings
        loss, sums = self.losses(group)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # untyped
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

    def kept_weights(self) -> Sequence[Tensor]:
        """Return the averaged weights, which are measured and saved."""
        return self.average.values

    @contextmanager
    def using(self, weights: Sequence[Tensor]) -> Iterator[None]:
        """Use other weights in evaluation mode within this context."""
        own = [parameter.detach().clone() for parameter in self.parameters]
        self._take(weights)
        self._module.train(mode=False)
        try:
            yield
        finally:
            self._take(own)

    def _take(self, values: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)

    def _about(self, figures: F) -> dict[str, Any]:
        return {
            "settings": self._settings.fixed(),
            # The learning rate depends on the number of epochs, so each part is recorded.
            "parts": self.parts,
            "validation": asdict(figures),
            "history": [asdict(earlier) for earlier in self.history],
            "dialogues": "training split of " + self._settings.data.name,
        }

    def save(self) -> None:
        """Write the state for resuming the run."""
        about = _About(self.identity(), self.parts, self.history)
        write_run(self._settings.output, _RUN, asdict(about), self._tensors())

    def restore(self) -> None:
        """Restore the state after the last saved epoch."""
        saved = SavedRun.read(self._settings.output, _RUN)
        about = saved.built(_About, saved.about)
        saved.check(about.identity, self.identity())
        self.history = [saved.built(self.FIGURES, figures) for figures in about.history]
        saved.fill(self._tensors())
        self.parts, now = about.parts, self._settings.changeable()
        if not self.parts or any(self.parts[-1].get(name) != now[name] for name in now):
            self.parts.append(self._part())

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield weights, averages and the optimiser's state, to save or to restore them."""
        named = self._module.named_parameters()
        for (name, parameter), mean in zip(named, self.average.values, strict=True):
            state = moments(self._optimiser, parameter)
            yield f"weight.{name}", parameter
            yield f"average.{name}", mean
            yield f"first.{name}", state["exp_avg"]
            yield f"second.{name}", state["exp_avg_sq"]
            # A weight skips a step without a gradient, as when no turn of a batch has a value.
            yield f"step.{name}", state["step"]

    def _part(self) -> dict[str, Any]:
        return {"from_epoch": len(self.history), **self._settings.changeable()}
