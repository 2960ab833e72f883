"""What trackers that are networks share: devices, threads, files, fingerprints, averages."""

from __future__ import annotations

import ctypes
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self, TypeVar

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_bytes

Network = TypeVar("Network", bound=nn.Module)

#: Where a worker of pytest-xdist finds how many there are.
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"

#: `mallopt` of glibc (malloc.h): the parameters `M_TRIM_THRESHOLD`, `M_MMAP_MAX` and
#: `M_ARENA_MAX`, and what is set. Each batch takes and frees some hundred MB in blocks of up to
#: 40: given back to the system and taken again, as by default, they cost a campaign on two threads
#: half a million page faults in 1,000 turns, a tenth and more of the tracker's time.
_KEEP_FREED: Final = ((-1, 1 << 30), (-4, 0), (-8, 1))


def keep_freed_memory() -> None:
    """Let the C library keep up to 1 GB that is freed, for the next batch.

    Of the whole process and until it ends; a library other than glibc is left as it is.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        for parameter, value in _KEEP_FREED:
            library.mallopt(parameter, value)


def move(network: Network, device: str, name: str) -> Network:
    """Return the network on ``device``; ``name`` says what it is, for the message."""
    try:
        if torch.device(device).type == "cpu":
            keep_freed_memory()
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{name} cannot run on the device {device!r}: {reason}") from error


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Let torch share an operation among so many threads; yields how many it was before.

    Threads that share an operation wait for each other: for small products, or with more
    threads than idle cores, a run takes many times as long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def fair_threads() -> AbstractContextManager[int]:
    """Compute in as many threads as one of several workers of pytest-xdist may have."""
    workers = max(1, int(os.environ.get(_WORKERS, "1")))
    return threads(max(1, torch.get_num_threads() // workers))


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    half: bool = False,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write tensors as safetensors, floating ones in 16 bits when ``half``."""
    ready = {
        name: (tensor.half() if half and tensor.is_floating_point() else tensor)
        .detach()
        .cpu()
        .contiguous()
        for name, tensor in tensors.items()
    }
    write_bytes(path, save(ready, dict(about) if about else None))


@dataclass(frozen=True)
class TensorBatch:
    """Base of dataclasses whose fields are tensors."""

    def to(self, device: str) -> Self:
        """Return the batch with its tensors on ``device``."""
        return type(self)(*(getattr(self, item.name).to(device) for item in fields(self)))


def pad(arrays: Sequence[np.ndarray], value: int, least: int = 0) -> np.ndarray:
    """Stack arrays, filled up on the right with ``value`` to at least ``least`` columns."""
    width = max(least, *(len(array) for array in arrays))
    result = np.full((len(arrays), width), value, dtype=np.int64)
    for number, array in enumerate(arrays):
        result[number, : len(array)] = array
    return result


def by_length(lengths: Sequence[int], rng: np.random.Generator | None) -> np.ndarray:
    """Return the places of rows, the shortest first; those of about equal length shuffled."""
    keys = np.asarray(lengths, dtype=np.float64)
    if rng is not None:
        # A little noise changes from epoch to epoch which rows meet in a batch.
        keys = keys * rng.uniform(0.95, 1.05, len(keys))
    return np.argsort(keys, kind="stable")


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
