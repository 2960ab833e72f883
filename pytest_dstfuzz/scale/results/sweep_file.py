"""The file of a sweep: what every cell has, and the axes along which cells differ."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config import OPTIONS, Settings, default_search, names_of, settings_json
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.files import read_table

#: Parts of the settings that a cell may have.
_PARTS: Final = ("tracker", "data", "variant", "reply", "budget")
_ALLOWED: Final = tuple(
    item.name
    for item in OPTIONS
    if item.part in _PARTS and item.name not in ("suite", "cache", "cache_size")
)
_PATHS: Final = frozenset(names_of("path"))
_PLACES: Final = frozenset(names_of("place"))
#: Characters of a value in the name of a folder.
_SHOWN: Final = 24


@dataclass(frozen=True)
class SweepCell:
    """One campaign of a sweep."""

    #: Of its folder: its values, and a digest of all that decides its results.
    name: str
    values: Mapping[str, str]
    settings: Settings


@dataclass(frozen=True)
class SweepPlan:
    """All campaigns of a sweep, in the order of the axes, the last of which changes first."""

    axes: Mapping[str, tuple[str, ...]]
    cells: tuple[SweepCell, ...]


def read_sweep(path: Path) -> SweepPlan:
    """Read a file with the tables ``[axes]`` and ``[settings]``, by the names of options.

    Paths are relative to the file. Whatever axis there is, ``model`` must be given.

    Raises:
        UserError: a name, a value or a combination of values that there is not.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}: a sweep is a TOML file with [axes], [settings]")
    content = read_table(path, "[]")
    if unknown := [name for name in content if name not in ("axes", "settings")]:
        raise UserError(f"{path}: {unknown_name('table', unknown[0], ('axes', 'settings'))}")
    axes, fixed = _tables(content, path)
    texts = {name: tuple(map(_text, values)) for name, values in axes.items()}
    for name, found in texts.items():
        if twice := [text for text in found if found.count(text) > 1]:
            raise UserError(f"{path}, [axes] {name}: {twice[0]!r} stands there twice")
    base = {name: _placed(name, value, path) for name, value in fixed.items()}
    cells = []
    for values in product(*axes.values()):
        own = {name: _placed(name, v, path) for name, v in zip(axes, values, strict=True)}
        shown = dict(zip(axes, map(_text, values), strict=True))
        cells.append(_cell(shown, {**base, **own}, path))
    return SweepPlan(texts, tuple(cells))


def _tables(content: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes, and what all cells have."""
    axes = {_named(name, path, "axes"): value for name, value in _table(content, "axes", path)}
    fixed = {_named(name, path, "settings"): v for name, v in _table(content, "settings", path)}
    if twice := [name for name in axes if name in fixed]:
        raise UserError(f"{path}: {twice[0]!r} is in [axes] and in [settings]: leave one out")
    if not axes:
        raise UserError(f'{path} has no axis: [axes] with lists, such as search = ["random"]')
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"{path}, [axes] {name}: a list of values is expected, as an axis is")
    if "model" not in {**axes, **fixed}:
        raise UserError(f"{path} names no tracker: model, in [axes] or in [settings]")
    return axes, fixed


def _table(content: Mapping[str, Any], name: str, path: Path) -> Sequence[tuple[str, Any]]:
    table = content.get(name, {})
    if not isinstance(table, Mapping):
        raise UserError(f"{path}: [{name}] is a table, {name} = ... is none")
    return tuple(table.items())


def _named(name: str, path: Path, table: str) -> str:
    spelled = name.replace("-", "_")
    if spelled not in _ALLOWED:
        raise UserError(f"{path}, [{table}]: {unknown_name('option', spelled, _ALLOWED)}")
    return spelled


def _placed(name: str, value: Any, path: Path) -> Any:
    """Return a value, and of a path that is there beside the file the one that is there."""
    if name in _PATHS and isinstance(value, str):
        beside = path.parent / value
        return str(beside) if beside.exists() else value
    return value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _cell(shown: Mapping[str, str], given: Mapping[str, Any], path: Path) -> SweepCell:
    try:
        settings = Settings.of(**given)
    except UserError as error:
        of = ", ".join(f"{name} = {value}" for name, value in shown.items())
        raise UserError(f"{path}: {error} (in the cell {of})") from None
    if "search" not in given:
        settings = settings.replace_options(search=default_search(settings))
    plain = {name: one for name, one in settings_json(settings).items() if name not in _PLACES}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    words = [
        re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.")[-_SHOWN:] for value in shown.values()
    ]
    return SweepCell("_".join([*filter(None, words), digest]), shown, settings)
