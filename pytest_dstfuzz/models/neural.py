"""Common code of all neural trackers: devices, threads, files and averaged weights."""

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

#: Environment variable with the number of pytest-xdist workers.
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"

#: `mallopt` parameters of glibc (malloc.h), `M_TRIM_THRESHOLD`, `M_MMAP_MAX` and `M_ARENA_MAX`,
#: with their values. Each batch allocates and frees some hundred MB in blocks of up to 40 MB. By
#: default, glibc returns them to the system each time. For a campaign on two threads, this causes
#: half a million page faults in 1,000 turns, and takes a tenth or more of the tracker's time.
_KEEP_FREED: Final = ((-1, 1 << 30), (-4, 0), (-8, 1))


def keep_freed_memory() -> None:
    """Let the C library keep up to 1 GB of freed memory for the next batch.

    This affects the whole process until it ends. It has no effect if the library is not glibc.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        for parameter, value in _KEEP_FREED:
            library.mallopt(parameter, value)


def move(network: Network, device: str, name: str) -> Network:
    """Move a network to a device. Error messages call the network ``name``."""
    try:
        if torch.device(device).type == "cpu":
            keep_freed_memory()
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{name} cannot run on the device {device!r}: {reason}") from error


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Set the number of torch threads per operation within this context.

    The context yields the previous number. Threads of one operation wait for each other. If
    matrices are small, or fewer cores are idle than there are threads, a run becomes many times
    slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def fair_threads() -> AbstractContextManager[int]:
    """Limit torch to this worker's share of the threads (pytest-xdist)."""
    workers = max(1, int(os.environ.get(_WORKERS, "1")))
    return threads(max(1, torch.get_num_threads() // workers))


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    half: bool = False,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write tensors as safetensors. If ``half``, floating-point tensors get 16 bits."""
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
    """Base class of batches: dataclasses whose fields are tensors."""

    def to(self, device: str) -> Self:
        """Return the batch with its tensors on ``device``."""
        return type(self)(*(getattr(self, item.name).to(device) for item in fields(self)))


def pad(arrays: Sequence[np.ndarray], value: int, least: int = 0) -> np.ndarray:
    """Stack arrays as rows, padded on the right with ``value``.

    There are ``least`` columns or more.
    """
    width = max(least, *(len(array) for array in arrays))
    result = np.full((len(arrays), width), value, dtype=np.int64)
    for number, array in enumerate(arrays):
        result[number, : len(array)] = array
    return result


def by_length(lengths: Sequence[int], rng: np.random.Generator | None) -> np.ndarray:
    """Return row indices sorted by length. If ``rng`` is given, similar lengths are shuffled."""
    keys = np.asarray(lengths, dtype=np.float64)
    if rng is not None:
        # Some noise, so that batches differ between epochs.
        keys = keys * rng.uniform(0.95, 1.05, len(keys))
    return np.argsort(keys, kind="stable")


class EMA:
    """Exponential moving average of weights. Its decay is smaller at the start."""

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        """Start from the current values of the weights."""
        self.values = [parameter.detach().clone() for parameter in parameters]
        self.decay = decay

    def restart(self, parameters: Sequence[Tensor]) -> None:
        """Restart the average from ``parameters``."""
        for value, parameter in zip(self.values, parameters, strict=True):
            value.copy_(parameter.detach())

    def update(self, parameters: Sequence[Tensor], step: int) -> None:
        """Move the average towards ``parameters`` after optimiser step ``step`` (from 1)."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.values, [p.detach() for p in parameters], weight)


def learning_rate(step: int, total: int, highest: float, warmup_steps: int) -> float:
    """Return the learning rate at ``step`` (from 0) of ``total`` steps.

    The rate rises linearly for ``warmup_steps``, then falls like a cosine.
    """
    warmup = min(warmup_steps, max(1, total // 10))
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
