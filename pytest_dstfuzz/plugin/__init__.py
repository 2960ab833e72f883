"""The entry point of the plugin, which every pytest run of an environment loads.

pytest rewrites the asserts of all modules of a plugin's distribution, so that they explain
themselves. Where it may keep nothing (PYTHONDONTWRITEBYTECODE) it parses and compiles each of
them anew in every run. The few asserts of this package are for the type checker and explain
nothing, so only this small file goes that way; what it holds, and all that a robustness test
loads, is imported from the ordinary files of bytecode.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_OURS = f"{__name__.partition('.')[0]}."


class PlainImports(MetaPathFinder):
    """Finds the modules of this package as Python does, before pytest's finder is asked.

    It knows no other modules. It is in ``sys.meta_path`` while the hooks below are loaded, and
    from then on only in runs in which the plugin is used, until their end.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of this package is, and nothing of any other."""
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None

    def add(self) -> None:
        """Let it be asked first."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Let it be asked no more; a nested run may have put the list back as it was."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


_imports = PlainImports()
_imports.add()
try:
    from pytest_dstfuzz.plugin.entry import *  # noqa: F403 - hooks and fixtures, see __all__
finally:
    _imports.remove()
