"""What trackers that are networks share: devices, threads, files and fingerprints."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import torch
from safetensors.torch import save
from torch import Tensor, nn

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_bytes

Network = TypeVar("Network", bound=nn.Module)

#: Where a worker of pytest-xdist finds how many there are.
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"


def move(network: Network, device: str, name: str) -> Network:
    """Return the network on ``device``; ``name`` says what it is, for the message.

    Raises:
        UserError: torch knows no such device, or cannot use it.
    """
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{name} cannot run on the device {device!r}: {reason}") from error


@contextmanager
def fair_threads() -> Iterator[None]:
    """Compute in as many threads as one of several workers of pytest-xdist may have.

    Each would take all cores otherwise, and threads that share an operation wait for each
    other: with more threads than cores a run takes many times as long.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // max(1, int(os.environ.get(_WORKERS, "1")))))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    half: bool = False,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write tensors as safetensors, floating ones in 16 bits when ``half``.

    Args:
        path: the file.
        tensors: by name.
        half: whether to write floating ones in 16 bits.
        about: the file's metadata.
    """
    ready = {
        name: (tensor.half() if half and tensor.is_floating_point() else tensor)
        .detach()
        .cpu()
        .contiguous()
        for name, tensor in tensors.items()
    }
    write_bytes(path, save(ready, dict(about) if about else None))


def files_fingerprint(files: Iterable[Path], code: Path, *more: str) -> str:
    """Return the SHA-256 of all that the answers of a tracker depend on, as 64 digits.

    Args:
        files: of the model.
        code: folder of the Python files that read and run it.
        more: whatever else may change an answer in its last digits, such as the version of
            a library.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in (*sorted(files), *sorted(code.glob("*.py"))):
        digest.update(path.name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for text in more:
        digest.update(text.encode("utf-8") + b"\0")
    return digest.hexdigest()
