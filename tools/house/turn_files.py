"""A plugin of pytest that records which files of the package a session uses.

A file counts if one of its functions is called between the end of collection and the end of the
session, in any thread. Bodies of modules and classes do not count, and neither do functions that
they call while they are loaded. ``DSTFUZZ_TURN_FILES`` names the file that the paths are written
to.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

import pytest_dstfuzz

_PACKAGE = str(Path(str(pytest_dstfuzz.__file__)).parent) + os.sep
_found: set[str] = set()


def _watch(frame: FrameType, event: str, _: object) -> None:
    path = frame.f_code.co_filename
    if event != "call" or path in _found or not path.startswith(_PACKAGE):
        return
    # The body of a class or module has no fast locals, a function has.
    is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if is_function and not _is_loading(frame):
        _found.add(path)


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(_PACKAGE):
            return True
        frame = frame.f_back
    return False


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Begin to record."""
    threading.setprofile(_watch)
    sys.setprofile(_watch)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Write the recorded files."""
    sys.setprofile(None)
    threading.setprofile(None)
    Path(os.environ["DSTFUZZ_TURN_FILES"]).write_text("\n".join(sorted(_found)), encoding="utf-8")
