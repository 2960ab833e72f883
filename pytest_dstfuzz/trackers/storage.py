"""Files of a model: safetensors and JSON, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` never holds a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


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
    write_whole(path, save(ready, dict(about) if about else None))


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    write_whole(path, (text + "\n").encode())
