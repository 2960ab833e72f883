"""What runs of pytest within tests read and search once a process instead of once a run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from _pytest.fixtures import FixtureManager
from packaging.version import Version

from pytest_dstfuzz.dialogue import load
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.dialogue.readers.corpora import OriginalMultiwoz
from pytest_dstfuzz.dialogue.readers.source import ReadOptions, SourceFile

_SHIPPED = Path(load.__file__).parents[1] / "resources"
_INSTALLED = tuple(sys.path)
#: The modules and classes of plugins -> whether they have fixtures.
_HAS_FIXTURES: WeakKeyDictionary[object, bool] = WeakKeyDictionary()

_read_original = OriginalMultiwoz.read
_register = FixtureManager.pytest_plugin_registered


def do_once() -> None:
    """Read the shipped dialogues and the installed packages once, and search plugins once."""
    OriginalMultiwoz.read = _read_once  # type: ignore[method-assign]
    for name in ("entry_points", "files", "metadata"):
        # A class of Python has properties of other types.
        setattr(metadata.Distribution, name, _read_of_installed(name))
    # In earlier versions, a fixture is a function.
    if Version(pytest.__version__) >= Version("8.4"):
        FixtureManager.pytest_plugin_registered = _search_once  # type: ignore[method-assign]


@functools.cache
def _shipped(file: SourceFile, normalisation: str) -> tuple[Dialogue, ...]:
    return tuple(_read_original(OriginalMultiwoz(), file, ReadOptions(normalisation)))


def _read_once(self: OriginalMultiwoz, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
    """Read the shipped dialogues once a process: many hundreds of runs within tests do."""
    if file.path.is_relative_to(_SHIPPED):
        return iter(_shipped(file, how.normalisation))
    return _read_original(self, file, how)


def _read_of_installed(name: str) -> property:
    """Read what an installed package says of itself once: each run of pytest asks several times.

    A package that a test puts on the path of imports itself is read each time.
    """
    known: dict[Path, Any] = {}
    read: Callable[[metadata.Distribution], Any] = getattr(metadata.Distribution, name).fget

    def once(self: metadata.Distribution) -> Any:
        at = getattr(self, "_path", None)
        if not isinstance(at, Path) or str(at.parent) not in _INSTALLED:
            return read(self)
        if at not in known:
            known[at] = read(self)
        return known[at]

    return property(once)


def _search_once(self: FixtureManager, plugin: object, plugin_name: str) -> None:
    """Search a plugin for fixtures once: each run of pytest asks all of its fifty plugins."""
    holder = plugin if isinstance(plugin, ModuleType) else type(plugin)
    if holder not in _HAS_FIXTURES:
        _HAS_FIXTURES[holder] = any(
            "fixture" in type(getattr(holder, name, None)).__name__.lower() for name in dir(holder)
        )
    if _HAS_FIXTURES[holder]:
        _register(self, plugin, plugin_name)
