"""A trained policy as one small file that is read without torch, and never unpickled.

The file is a safetensors file: the weights of `Policy`, in 16 or 32 bits, and one entry of
metadata, a JSON object with ``format``, ``version``, ``action_space``, ``features`` and
``about`` (`PolicyAbout`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.features import STATE_SIZE
from pytest_dstfuzz.agents.policy import COUNT, PASS_SIZE, SPACE, Policy
from pytest_dstfuzz.config import VALIDITIES
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.models.weights import WeightsFile, check_shapes, read_weights, write_weights
from pytest_dstfuzz.perturb.engine import ORDERS
from pytest_dstfuzz.transformations import TRANSFORMATIONS

#: Raised when the file, or what a feature means, changes. Version 1 scored sampled candidates.
FORMAT_VERSION: Final = 2
#: What a policy is called in the folder of its training.
POLICY_FILE: Final = "agent.safetensors"

_FORMAT: Final = "dstfuzz-agent"
#: Input and output of the two perceptrons of a policy.
_ENDS: Final = {"parameters": (STATE_SIZE, SPACE.dimension), "critic": (PASS_SIZE, COUNT)}
_KIND: Final = "policy of the agent"

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
    described = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "action_space": _action_space(),
        "features": _features(),
        "about": asdict(about),
    }
    write_weights(path, weights, described)


def load_policy(path: str | Path) -> SavedPolicy:
    """Read a policy from its file, or from the folder that it was trained into."""
    path = Path(path)
    if path.is_dir():
        path /= POLICY_FILE
    file = read_weights(_KIND, path, _FORMAT, FORMAT_VERSION, "dstfuzz train-agent")
    about = _about(file)
    _check_weights(file)
    policy = Policy({name: weight.astype(np.float32) for name, weight in file.tensors.items()})
    return SavedPolicy(policy, about, hashlib.sha256(file.content).hexdigest()[:12])


def _action_space() -> dict[str, Any]:
    blocks = {name: SPACE.block(name) for name in TRANSFORMATIONS}
    bounds = {name: [block.start, block.stop] for name, block in blocks.items()}
    return {"dimension": SPACE.dimension, "blocks": bounds}


def _features() -> dict[str, int]:
    return {"state": STATE_SIZE, "pass": PASS_SIZE}


def _about(file: WeightsFile) -> PolicyAbout:
    """Check what the file says about itself."""
    described = file.described
    for name, ours in (("action_space", _action_space()), ("features", _features())):
        theirs = described.get(name)
        if theirs == ours:
            continue
        if not isinstance(theirs, dict):
            raise file.bad(f"its metadata lacks {name!r}")
        wrong = next(part for part, value in ours.items() if theirs.get(part) != value)
        raise file.bad(
            f"{wrong} of its {name.replace('_', ' ')} is {theirs.get(wrong)}, in this release "
            f"it is {ours[wrong]}: train it again",
        )
    try:
        about = from_json(PolicyAbout, described.get("about", {}))
    except ValueError as error:
        raise file.bad(f"its metadata is damaged: {error}") from None
    for name, valid in (("order", ORDERS), ("validity", VALIDITIES)):
        if (given := getattr(about, name)) not in valid:
            raise file.bad(f"its {name} is {given!r}, not one of {', '.join(valid)}")
    return about


def _check_weights(file: WeightsFile) -> None:
    """Refuse weights that are no two perceptrons from our features to our action space."""
    expected: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in _ENDS.items():
        layers, size = 0, inputs
        while not layers or f"{name}.{layers}.weight" in file.tensors:
            matrix, bias = f"{name}.{layers}.weight", f"{name}.{layers}.bias"
            rows = file.rows(matrix)
            expected |= {matrix: (rows, size), bias: (rows,)}
            layers, size = layers + 1, rows
        if size != outputs:
            raise file.bad(f"{name} has {size} outputs, not {outputs}")
    check_shapes(file, expected)
