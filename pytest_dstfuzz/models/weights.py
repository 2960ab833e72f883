"""Files with trained weights. They are small, and reading them needs neither torch nor pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.files import is_pickled, write_bytes

#: The only metadata key, because safetensors writes several keys in random order.
_METADATA: Final = "dstfuzz"
_PICKLE_NAMES: Final = (".pt", ".pth", ".pkl", ".pickle", ".ckpt")
_DTYPES: Final = ("F16", "F32")


class WeightsFile(NamedTuple):
    """The content of a safetensors file that this package wrote."""

    kind: str  #: Its name in messages, such as ``policy of the agent``.
    path: Path
    content: bytes
    described: dict[str, Any]  #: Its metadata.
    tensors: dict[str, npt.NDArray[Any]]

    def bad(self, reason: str) -> UserError:
        """Return the error for an invalid file."""
        return _bad(self.kind, self.path, reason)

    def rows(self, name: str) -> int:
        """Return the number of rows of a tensor.

        Raises:
            UserError: the tensor is missing.
        """
        if name not in self.tensors:
            raise self.bad(f"the tensor {name!r} is missing")
        return len(self.tensors[name]) if self.tensors[name].ndim else 0


def write_weights(
    path: Path, tensors: Mapping[str, npt.NDArray[Any]], described: Mapping[str, Any]
) -> None:
    """Write tensors and metadata atomically.

    The same arguments give the same bytes.

    Raises:
        UserError: a tensor has values that are not finite.
    """
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise UserError(f"{name} has values that are not finite: the training diverged")
    ready = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    write_bytes(path, save(ready, {_METADATA: json.dumps(described)}))


def read_weights(kind: str, path: Path, form: str, version: int, command: str) -> WeightsFile:
    """Read a file with weights, of the format ``form`` in this version.

    Error messages name ``command``, which trains new weights.

    Raises:
        UserError: the file is missing, damaged, or has another format or version.
    """
    content = _content(kind, path)
    metadata, tensors = _tensors(kind, path, content)
    try:
        described = json.loads(metadata.get(_METADATA, "null"))
    except ValueError as error:
        raise _bad(kind, path, f"its metadata is not valid JSON ({error})") from error
    if not isinstance(described, dict) or described.get("format") != form:
        raise _bad(kind, path, f"its metadata does not have the format {form!r}")
    if described.get("version") != version:
        raise _bad(
            kind,
            path,
            f"it has the format version {described.get('version')!r}, but this release reads "
            f"{version}: train it again with {command!r}",
        )
    return WeightsFile(kind, path, content, described, tensors)


def _bad(kind: str, path: Path, reason: str) -> UserError:
    return UserError(f"{path} is not a {kind}: {reason}")


def _content(kind: str, path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        siblings = path.parent.iterdir() if path.parent.is_dir() else ()
        guess = nearest(path.name, [item.name for item in siblings])
        hint = f" Did you mean {str(path.with_name(guess))!r}?" if guess else ""
        raise UserError(f"no {kind} at {str(path)!r}.{hint}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if is_pickled(content) or path.suffix in _PICKLE_NAMES:
        raise _bad(
            kind,
            path,
            "it is a pickle, which is never loaded because reading it may run code; save it as a "
            "safetensors file",
        )
    return content


def _tensors(
    kind: str, path: Path, content: bytes
) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Return the metadata and the tensors of a safetensors file."""
    try:
        with safe_open(path, "np") as file:
            names = sorted(file.keys())
            for name in names:
                dtype = file.get_slice(name).get_dtype()
                if dtype not in _DTYPES:
                    raise _bad(
                        kind, path, f"{name} has the type {dtype}, not {' or '.join(_DTYPES)}"
                    )
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        reason = (
            "it is empty" if not content else f"it is truncated or not a safetensors file ({error})"
        )
        raise _bad(kind, path, reason) from error


def check_shapes(file: WeightsFile, shapes: dict[str, tuple[int, ...]]) -> None:
    """Check the names, shapes and values of all tensors.

    Raises:
        UserError: a tensor is missing, unknown, of another shape, or not finite.
    """
    for name, shape in shapes.items():
        file.rows(name)
        found = list(file.tensors[name].shape)
        if found != list(shape):
            raise file.bad(f"{name!r} has the shape {found}, not {list(shape)}")
        if not np.isfinite(file.tensors[name]).all():
            raise file.bad(f"{name!r} has values that are not finite")
    if extra := sorted(set(file.tensors) - set(shapes)):
        raise file.bad(f"it has unknown tensors {', '.join(map(repr, extra))}")
