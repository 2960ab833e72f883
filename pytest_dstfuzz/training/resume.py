"""The state of a training run between two rounds, as one file.

Networks, their copies, both optimisers, the memory and the counters. A run that goes on
from it does what the uninterrupted one does, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor, nn

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_bytes
from pytest_dstfuzz.training.multi_pdqn import MultiPDQN
from pytest_dstfuzz.training.trainer import AgentTrainer, Round

#: What a resumed run needs.
STATE_FILE: Final = "training.safetensors"

_METADATA: Final = "dstfuzz"
_NETWORKS: Final = ("actor", "critic", "actor_target", "critic_target")
_OPTIMISERS: Final = ("actor_optimiser", "critic_optimiser")
_COUNTERS: Final = ("calls_before", "dialogues_begun", "steps", "updates")

Arrays = dict[str, npt.NDArray[Any]]


def save_state(folder: Path, trainer: AgentTrainer, run: Mapping[str, Any]) -> None:
    """Write the state of a run; the file is whole, or as it was before.

    Raises:
        UserError: it cannot be written.
    """
    arrays: Arrays = {name: tensor.cpu().numpy() for name, tensor in _tensors(trainer.learner)}
    for optimiser in _OPTIMISERS:
        for name, tensor in _moments(trainer.learner, optimiser):
            arrays[name] = tensor.cpu().numpy()
    for column, values in trainer.replay.columns.items():
        arrays[f"replay.{column}"] = values[: len(trainer.replay)]
    described = {
        "run": dict(run),
        "counters": {
            **{name: getattr(trainer, name) for name in _COUNTERS},
            "replay_added": trainer.replay.added,
        },
        "history": [item._asdict() for item in trainer.history],
    }
    write_bytes(folder / STATE_FILE, save(arrays, {_METADATA: json.dumps(described)}))


def read_run(folder: Path) -> dict[str, Any]:
    """Return what `save_state` was told about the run.

    Raises:
        UserError: there is no state, or it is damaged.
    """
    run = _read(folder)[0].get("run")
    if not isinstance(run, dict):
        raise cannot_resume(folder, f"{STATE_FILE} does not say what run it is of")
    return run


def restore_state(folder: Path, trainer: AgentTrainer) -> None:
    """Bring a fresh trainer to where the run was when its state was written.

    Raises:
        UserError: there is no state, or it is damaged or of networks of other sizes.
    """
    described, arrays = _read(folder)
    try:
        counters = {name: int(value) for name, value in described["counters"].items()}
        history = [Round(**item) for item in described["history"]]
        added = counters.pop("replay_added")
        for name in _COUNTERS:
            setattr(trainer, name, counters[name])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise cannot_resume(folder, f"{STATE_FILE} is damaged ({error!r})") from error
    trainer.history = history
    with torch.no_grad():
        for name, tensor in _tensors(trainer.learner):
            tensor.copy_(torch.from_numpy(_taken(folder, arrays, name, tuple(tensor.shape))))
    for optimiser in _OPTIMISERS:
        _restore_optimiser(folder, arrays, trainer.learner, optimiser)
    trainer.replay.added = added
    for column, values in trainer.replay.columns.items():
        shape = (len(trainer.replay), *values.shape[1:])
        values[: len(trainer.replay)] = _taken(folder, arrays, f"replay.{column}", shape)


def cannot_resume(folder: Path, reason: str) -> UserError:
    """Return the error for a run that cannot go on."""
    return UserError(f"cannot resume from {folder}: {reason}")


def _tensors(learner: MultiPDQN) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of all networks, to be read or written in place."""
    for network in _NETWORKS:
        module: nn.Module = getattr(learner, network)
        for name, tensor in module.state_dict().items():
            yield f"{network}.{name}", tensor


def _parameters(learner: MultiPDQN, optimiser: str) -> list[Tensor]:
    made: torch.optim.Optimizer = getattr(learner, optimiser)
    return [parameter for group in made.param_groups for parameter in group["params"]]


def _moments(learner: MultiPDQN, optimiser: str) -> Iterator[tuple[str, Tensor]]:
    """Yield what an optimiser has gathered about each parameter; nothing before its first step."""
    made: torch.optim.Optimizer = getattr(learner, optimiser)
    for number, parameter in enumerate(_parameters(learner, optimiser)):
        for name, tensor in made.state.get(parameter, {}).items():
            yield f"{optimiser}.{number}.{name}", tensor


def _restore_optimiser(folder: Path, arrays: Arrays, learner: MultiPDQN, optimiser: str) -> None:
    made: torch.optim.Optimizer = getattr(learner, optimiser)
    if not any(name.startswith(f"{optimiser}.") for name in arrays):
        return
    for number, parameter in enumerate(_parameters(learner, optimiser)):
        shape = tuple(parameter.shape)
        state = {}
        for name, wanted in (("step", ()), ("exp_avg", shape), ("exp_avg_sq", shape)):
            array = _taken(folder, arrays, f"{optimiser}.{number}.{name}", wanted)
            # Adam keeps its count of steps on the CPU, wherever the weights are.
            device = torch.device("cpu") if name == "step" else parameter.device
            state[name] = torch.from_numpy(array).to(device)
        made.state[parameter] = state


def _taken(folder: Path, arrays: Arrays, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if name not in arrays:
        raise cannot_resume(folder, f"{STATE_FILE} has no tensor {name!r}")
    if arrays[name].shape != shape:
        found = list(arrays[name].shape)
        raise cannot_resume(folder, f"{name!r} has the shape {found}, not {list(shape)}")
    return arrays[name].copy()


def _read(folder: Path) -> tuple[dict[str, Any], Arrays]:
    try:
        with safe_open(folder / STATE_FILE, "np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        described = json.loads(metadata.get(_METADATA, "null"))
    except FileNotFoundError:
        raise cannot_resume(folder, f"it has no {STATE_FILE}, so no run was begun in it") from None
    except (OSError, ValueError, SafetensorError) as error:
        raise cannot_resume(folder, f"{STATE_FILE} is damaged ({error})") from error
    if not isinstance(described, dict):
        raise cannot_resume(folder, f"{STATE_FILE} does not say what run it is of")
    return described, arrays
