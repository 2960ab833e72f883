"""What a noise model is made of, as its file has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.errors import DataError, nearest
from pytest_dstfuzz.files import read_versioned
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.noise.letters import LETTER_KINDS

#: Raised whenever the layout of the file changes.
FORMAT: Final = 1
WHAT: Final = "noise model"

#: The kinds of slips of whole words and of what stands between them -> transformation, operator.
WORD_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "blank": ("char_drop", "blank"),
    "misspelling": ("word_replace", "misspelling"),
    "apostrophe": ("char_drop", "apostrophe"),
    "lower_i": ("char_replace", "case"),
    "lower_first": ("char_replace", "case"),
    "full_stop": ("char_drop", "full_stop"),
    "texting": ("word_replace", "texting"),
    "contraction": ("word_replace", "contraction"),
    "doubled": ("word_insert", "repeat"),
    "dropped": ("word_drop", "stop_word"),
    "emoji": ("word_insert", "emoji"),
    "homophone": ("word_replace", "homophone"),
    "filler": ("word_insert", "filler"),
    "restart": ("word_insert", "repeat"),
}
#: All kinds -> transformation and operator, as edits record them.
KINDS: Final[Mapping[str, tuple[str, str]]] = {**LETTER_KINDS, **WORD_KINDS}


@dataclass(frozen=True, slots=True)
class NoiseKind:
    """One kind of slips, and how many of all slips are of it."""

    name: str
    #: Of all slips, in [0, 1]; those of a model have the sum 1.
    share: float
    #: Mean, over the words of the texts that it was fitted to, of what its tables give a word.
    per_word: float

    @property
    def scale(self) -> float:
        """What the tables' value of a slip is multiplied by: slips per word, at slip rate 1."""
        return self.share / self.per_word if self.per_word else 0.0


@dataclass(frozen=True, slots=True)
class Tables:
    """What the kinds look up."""

    #: Letter or digit -> keys around it.
    keyboard: Mapping[str, str] = field(default_factory=dict)
    #: Letter -> letters that are written for it.
    confusions: Mapping[str, str] = field(default_factory=dict)
    #: Kind of slips of letters, or `blank` -> feature -> factor; 1 where there is none.
    factors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Kind of slips of words -> word in lower case, or two -> what is written -> value.
    words: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The content of a file."""

    format: int
    name: str
    #: Expected slips per word, where a run names no other rate.
    slip_rate: float
    #: What it was fitted to and taken from, for people.
    sources: tuple[str, ...]
    kinds: tuple[NoiseKind, ...]
    tables: Tables


def read_model_file(path: Path) -> ModelFile:
    """Read the file of a noise model.

    Raises:
        DataError: it cannot be read, or is no sound noise model; the message says where.
    """
    content = read_versioned(path, WHAT, "format", FORMAT)
    try:
        found = from_json(ModelFile, content)
        _check(found)
    except ValueError as error:
        raise DataError(f"{path} is no {WHAT}: {error}") from None
    return found


def _check(file: ModelFile) -> None:
    """Raise ValueError for what a run could not work with."""
    _between("slip_rate", file.slip_rate, 1.0)
    _check_kinds(file)
    for name, factors in file.tables.factors.items():
        for feature, factor in factors.items():
            _between(f"tables.factors: {feature!r} of {name!r}", factor)
    for name, words in file.tables.words.items():
        for word, forms in words.items():
            for form, value in forms.items():
                _between(f"tables.words: {word!r} -> {form!r} of {name!r}", value)


def _check_kinds(file: ModelFile) -> None:
    names = [kind.name for kind in file.kinds]
    for name in names:
        if name not in KINDS:
            guess = nearest(name, KINDS)
            hint = f"; did you mean {guess!r}?" if guess else ""
            raise ValueError(f"kinds: there is no kind {name!r}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"kinds: {name!r} stands there twice")
    for kind in file.kinds:
        _between(f"kinds: share of {kind.name!r}", kind.share, 1.0)
        _between(f"kinds: per_word of {kind.name!r}", kind.per_word)
    total = math.fsum(kind.share for kind in file.kinds)
    if abs(total - 1.0) > 1e-3:
        raise ValueError(f"kinds: the shares make {total:.3f}, not 1")


def _between(what: str, value: float, most: float = 1e9) -> None:
    if not 0.0 <= value <= most:
        upper = f" and at most {most:g}" if most <= 1.0 else ""
        raise ValueError(f"{what} is {value:g}: a number of at least 0{upper} is expected")


def plain(file: ModelFile) -> dict[str, Any]:
    """Return the content as JSON has it; numbers have four digits."""
    found: dict[str, Any] = _rounded(to_json(file))
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
