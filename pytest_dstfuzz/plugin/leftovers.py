"""Folders that the workers of one run share, and those that killed runs left behind.

What a tracker said is in them. A run removes its own at its end; one that is killed cannot, so
the next one does. Each worker holds a lock on the folder that it uses, which goes with the
process: a folder that nobody holds is one that nobody uses.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None


def hold_folder(folder: Path) -> Callable[[], None]:
    """Make a folder that nobody else may read, or put a link in the place of; hold it.

    Returns:
        What lets go of it.
    """
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        if fcntl is None:
            return lambda: None
        held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            if folder.exists() and os.path.samestat(os.fstat(held), folder.stat()):
                return lambda: os.close(held)
        except BaseException:
            os.close(held)
            raise
        # Another run took it for a leftover before it was held.
        os.close(held)


def remove_leftovers(place: Path, pattern: str) -> None:
    """Remove the folders of this user that killed runs left behind.

    Without locks (Windows) it cannot be known that nobody uses them: they stay.

    Args:
        place: the folder that they are in.
        pattern: of their names, as of `Path.glob`.
    """
    if fcntl is None:
        return
    for folder in place.glob(pattern):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:  # A link, no folder, not ours to read, or gone meanwhile.
            continue
        try:
            if os.fstat(held).st_uid == os.getuid():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # A run that goes on holds it.
            continue
        finally:
            os.close(held)
