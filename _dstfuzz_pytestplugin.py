"""The entry point of the plugin, which every pytest run of an environment loads.

pytest rewrites the asserts of all modules of a plugin's distribution, so that they explain
themselves. Where it may keep nothing (PYTHONDONTWRITEBYTECODE) it parses and compiles each of
them anew in every run. The few asserts of the package are for the type checker and explain
nothing, so only this file goes that way, and it stands outside of the package, since whoever
imports a module imports the packages above it. PYTEST_DONT_REWRITE is for pytest.
"""

import sys
from importlib.machinery import PathFinder

# Before pytest's finder: what is found here is loaded from its file of bytecode.
sys.meta_path.insert(0, PathFinder)
try:
    from pytest_dstfuzz.plugin.entry import *  # noqa: F403 - hooks and fixtures, see its __all__
finally:
    sys.meta_path.remove(PathFinder)
