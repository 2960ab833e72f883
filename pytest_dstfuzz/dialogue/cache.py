"""Where fetched data sets are kept on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: Set it to keep fetched data sets in a folder of your own.
CACHE_VARIABLE: Final = "DSTFUZZ_CACHE"


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
