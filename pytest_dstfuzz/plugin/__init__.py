"""Internal: the entry point of the plugin, which every pytest run of an environment loads.

pytest rewrites the asserts of all modules of a plugin's distribution, so that they explain
themselves. Where it may keep nothing (PYTHONDONTWRITEBYTECODE) it parses and compiles each of
them anew in every run. The few asserts of this package are for the type checker and explain
nothing, so only this file goes that way; what it holds is loaded from its file of bytecode.
PYTEST_DONT_REWRITE is for pytest.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_spec = PathFinder.find_spec(f"{__name__}.entry", __path__)
if _spec is not None and _spec.loader is not None and _spec.name not in sys.modules:
    sys.modules[_spec.name] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_spec.name])

from pytest_dstfuzz.plugin.entry import *  # noqa: E402, F403 - hooks and fixtures, see __all__
