"""A trained scorer as one small file: its weights, and how they came to be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.features import Floats
from pytest_dstfuzz.agents.scorer import HIDDEN, Scorer, shapes
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.models.weights import check_shapes, read_weights, write_weights

#: Raised when the file, or what a feature means, changes.
FORMAT_VERSION: Final = 1
#: What a scorer is called in the folder of its training.
SCORER_FILE: Final = "bandit.safetensors"
_FORMAT: Final = "dstfuzz-scorer"
_KIND: Final = "scorer of the search bandit"


@dataclass(frozen=True, slots=True)
class ScorerAbout:
    """How a scorer came to be."""

    tracker: str  #: The tracker it was trained against, as its user named it.
    data: str  #: Data set and splits of the training dialogues.
    dialogues: int  #: How many of them were played.
    validity: str  #: Validity profile.
    seed: int  #: Of the training.
    attempts: int  #: Variants that it learned from.
    calls: int  #: Contexts that the tracker was asked for, clean ones included.
    version: str = __version__  #: Of the package.


class SavedScorer(NamedTuple):
    """A scorer that was read from a file."""

    scorer: Scorer
    about: ScorerAbout  #: How it came to be.
    fingerprint: str  #: The first 12 hexadecimal digits of the file's SHA-256.


def save_scorer(path: Path, weights: Mapping[str, Floats], about: ScorerAbout) -> None:
    """Write a scorer in 16 bits; the file is whole, or as it was before.

    The same arguments give the same bytes.

    Raises:
        UserError: a weight is no number, or too large for 16 bits.
    """
    with np.errstate(over="ignore"):  # What is too large becomes infinite, and is refused.
        halves = {name: weight.astype(np.float16) for name, weight in weights.items()}
    described = {"format": _FORMAT, "version": FORMAT_VERSION, "about": asdict(about)}
    write_weights(path, halves, described)


def load_scorer(path: str | Path) -> SavedScorer:
    """Read a scorer from its file, or from the folder that it was trained into.

    Raises:
        UserError: there is none, or it is broken.
    """
    path = Path(path)
    if path.is_dir():
        path /= SCORER_FILE
    file = read_weights(_KIND, path, _FORMAT, FORMAT_VERSION, "dstfuzz train-bandit")
    check_shapes(file, shapes(*(file.rows(name) for name in HIDDEN)))
    try:
        about = from_json(ScorerAbout, file.described.get("about", {}))
    except ValueError as error:
        raise file.bad(f"its metadata is damaged: {error}") from None
    weights = {name: tensor.astype(np.float32) for name, tensor in file.tensors.items()}
    return SavedScorer(Scorer(weights), about, hashlib.sha256(file.content).hexdigest()[:12])
