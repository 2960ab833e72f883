"""Weights of a model as a safetensors file, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from pytest_dstfuzz.files import write_bytes


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
