"""A trained policy as one small file that is read without torch, and never unpickled.

The file is a safetensors file: the weights of `Policy`, in 16 or 32 bits, and one entry of
metadata, a JSON object with ``format``, ``version``, ``action_space``, ``features`` and
``about`` (`PolicyAbout`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.features import STATE_SIZE
from pytest_dstfuzz.agents.policy import COUNT, PASS_SIZE, SPACE, Policy
from pytest_dstfuzz.config import VALIDITIES
from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.files import is_pickled, write_bytes
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.perturb.engine import ORDERS
from pytest_dstfuzz.transformations import TRANSFORMATIONS

#: Raised when the file, or what a feature means, changes. Version 1 scored sampled candidates.
FORMAT_VERSION: Final = 2
#: What a policy is called in the folder of its training.
POLICY_FILE: Final = "agent.safetensors"

# One entry: safetensors writes several in an order that differs from run to run.
_METADATA: Final = "dstfuzz"
_FORMAT: Final = "dstfuzz-agent"
_PICKLE_NAMES: Final = (".pt", ".pth", ".pkl", ".pickle", ".ckpt")
#: Input and output of the two perceptrons of a policy.
_ENDS: Final = {"parameters": (STATE_SIZE, SPACE.dimension), "critic": (PASS_SIZE, COUNT)}
_DTYPES: Final = ("F16", "F32")

Weights = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class PolicyAbout:
    """How a policy came to be."""

    tracker: str  #: The tracker it was trained against, as its user named it.
    tracker_fingerprint: str  #: Of what that tracker gets right on ``data``.
    data: str  #: Data set and splits of the training dialogues.
    held_out: tuple[str, ...]  #: Ids of the dialogues of ``data`` that it never saw.
    order: str  #: What its position parameters count through, ``reading`` or ``distance``.
    validity: str  #: Validity profile.
    attack: str  #: Attack design.
    reward: str  #: Name of the reward.
    ks: tuple[int, ...]  #: Numbers of associated transformations that it was trained with.
    attempts: int  #: At each turn, in training.
    seed: int  #: Of the training.
    calls: int  #: Contexts that the tracker was asked for, clean ones included.
    version: str = __version__  #: Of the package.


class SavedPolicy(NamedTuple):
    """A policy that was read from a file."""

    policy: Policy  #: Ready to choose.
    about: PolicyAbout  #: How it came to be.
    fingerprint: str  #: The first 12 hexadecimal digits of the file's SHA-256.


def save_policy(path: Path, weights: Weights, about: PolicyAbout) -> None:
    """Write a policy; the file is whole, or as it was before.

    The same arguments give the same bytes. Weights (see `Policy`) are in 16 or 32 bits.
    """
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise UserError(f"{name} holds numbers that are not finite: the training diverged")
    described = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "action_space": _action_space(),
        "features": _features(),
        "about": asdict(about),
    }
    ready = {name: np.ascontiguousarray(weight) for name, weight in weights.items()}
    write_bytes(path, save(ready, {_METADATA: json.dumps(described)}))


def load_policy(path: str | Path) -> SavedPolicy:
    """Read a policy from its file, or from the folder that it was trained into."""
    path = Path(path)
    if path.is_dir():
        path /= POLICY_FILE
    content = _content(path)
    metadata, weights = _tensors(path, content)
    about = _about(path, metadata)
    _check_weights(path, weights)
    policy = Policy({name: weight.astype(np.float32) for name, weight in weights.items()})
    return SavedPolicy(policy, about, hashlib.sha256(content).hexdigest()[:12])


def _action_space() -> dict[str, Any]:
    blocks = {name: SPACE.block(name) for name in TRANSFORMATIONS}
    bounds = {name: [block.start, block.stop] for name, block in blocks.items()}
    return {"dimension": SPACE.dimension, "blocks": bounds}


def _features() -> dict[str, int]:
    return {"state": STATE_SIZE, "pass": PASS_SIZE}


def _bad(path: Path, reason: str) -> UserError:
    return UserError(f"{path} is no policy of the agent: {reason}")


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        siblings = path.parent.iterdir() if path.parent.is_dir() else ()
        guess = nearest(path.name, [item.name for item in siblings])
        hint = f" Did you mean {str(path.with_name(guess))!r}?" if guess else ""
        raise UserError(f"no policy of the agent at {str(path)!r}.{hint}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if is_pickled(content) or path.suffix in _PICKLE_NAMES:
        raise _bad(
            path,
            "a pickle, which is never loaded, as it could run code when it is read; "
            "policies are safetensors files",
        )
    return content


def _tensors(path: Path, content: bytes) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Return metadata and tensors of a safetensors file."""
    try:
        with safe_open(path, "np") as file:
            names = sorted(file.keys())
            for name in names:
                kind = file.get_slice(name).get_dtype()
                if kind not in _DTYPES:
                    raise _bad(path, f"{name} is of the type {kind}, not {' or '.join(_DTYPES)}")
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        reason = "empty" if not content else f"truncated, or no safetensors file ({error})"
        raise _bad(path, reason) from error


def _about(path: Path, metadata: dict[str, str]) -> PolicyAbout:
    """Check what the file says about itself."""
    try:
        described = json.loads(metadata.get(_METADATA, "null"))
    except ValueError as error:
        raise _bad(path, f"its metadata is not valid JSON ({error})") from error
    if not isinstance(described, dict) or described.get("format") != _FORMAT:
        raise _bad(path, f"its metadata does not say {_FORMAT!r}")
    if described.get("version") != FORMAT_VERSION:
        raise _bad(
            path,
            f"it has the format version {described.get('version')!r}, this release reads "
            f"{FORMAT_VERSION}: train it again with 'dstfuzz train-agent'",
        )
    for name, ours in (("action_space", _action_space()), ("features", _features())):
        theirs = described.get(name)
        if theirs == ours:
            continue
        if not isinstance(theirs, dict):
            raise _bad(path, f"its metadata lacks {name!r}")
        wrong = next(part for part, value in ours.items() if theirs.get(part) != value)
        raise _bad(
            path,
            f"{wrong} of its {name.replace('_', ' ')} is {theirs.get(wrong)}, in this release "
            f"it is {ours[wrong]}: train it again",
        )
    try:
        about = from_json(PolicyAbout, described.get("about", {}))
    except ValueError as error:
        raise _bad(path, f"its metadata is damaged: {error}") from None
    for name, valid in (("order", ORDERS), ("validity", VALIDITIES)):
        if (given := getattr(about, name)) not in valid:
            raise _bad(path, f"its {name} is {given!r}, not one of {', '.join(valid)}")
    return about


def _check_weights(path: Path, weights: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse weights that are no two perceptrons from our features to our action space."""
    expected: set[str] = set()
    for name, (inputs, outputs) in _ENDS.items():
        layers, size = 0, inputs
        while not layers or f"{name}.{layers}.weight" in weights:
            matrix, bias = f"{name}.{layers}.weight", f"{name}.{layers}.bias"
            for part in (matrix, bias):
                if part not in weights:
                    raise _bad(path, f"the tensor {part!r} is missing")
            rows = len(weights[matrix]) if weights[matrix].ndim else 0
            for part, shape in ((matrix, (rows, size)), (bias, (rows,))):
                found = list(weights[part].shape)
                if found != list(shape):
                    raise _bad(path, f"{part!r} has the shape {found}, not {list(shape)}")
                if not np.isfinite(weights[part]).all():
                    raise _bad(path, f"{part!r} holds numbers that are not finite")
            expected |= {matrix, bias}
            layers, size = layers + 1, rows
        if size != outputs:
            raise _bad(path, f"{name} has {size} outputs, not {outputs}")
    if extra := sorted(set(weights) - expected):
        raise _bad(path, f"unknown tensors {', '.join(map(repr, extra))}")
