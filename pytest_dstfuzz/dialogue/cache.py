"""Where fetched data sets are kept on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

#: Set it to keep fetched data sets in a folder of your own.
CACHE_VARIABLE = "DSTFUZZ_CACHE"

#: Data sets that ``dstfuzz fetch`` knows.
DATASET_NAMES = ("multiwoz20", "multiwoz21", "multiwoz22", "multiwoz23", "multiwoz24")


def cache_folder(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Return the folder of fetched data sets; it need not exist.

    ``DSTFUZZ_CACHE``, else ``dstfuzz`` in the user's cache folder: ``LOCALAPPDATA`` on
    Windows, elsewhere ``XDG_CACHE_HOME`` or ``~/.cache``.

    Args:
        environ: environment variables; by default those of the process.
        platform: as ``sys.platform``.
    """
    environ = os.environ if environ is None else environ
    if environ.get(CACHE_VARIABLE):
        return Path(environ[CACHE_VARIABLE]).expanduser()
    variable = "LOCALAPPDATA" if platform == "win32" else "XDG_CACHE_HOME"
    base = environ.get(variable)
    return (Path(base) if base else Path("~/.cache").expanduser()) / "dstfuzz"
