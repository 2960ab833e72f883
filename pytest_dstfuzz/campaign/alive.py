"""Whether another process of the machine still lives: it holds the lock on a file of its own.

The system gives the lock back when the process ends, however it ends; a process number would say
less, as it comes again. Where a file system knows no locks, nothing is known of anybody.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_SUFFIX: Final = "alive"


class Alive:
    """The file that shows others that this process lives."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = _file_of(path, owner)
        self._held: int | None = None
        with suppress(OSError):
            self._held = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if not _lock(self._held):
                self.end()

    def end(self) -> None:
        """Give the lock back, and take the file away."""
        if self._held is not None:
            self.leave()
            with suppress(OSError):
                self._path.unlink()

    def leave(self) -> None:
        """Let go of the file; where it was forked, the lock stays with the parent."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


def is_dead(path: Path, owner: str) -> bool:
    """Whether a process is known to have ended without saying so."""
    file = _file_of(path, owner)
    try:
        found = os.open(file, os.O_RDWR)
    except OSError:
        # It shows nothing: perhaps it never could.
        return False
    dead = _lock(found)
    os.close(found)
    if dead:
        with suppress(OSError):
            file.unlink()
    return dead


def _file_of(path: Path, owner: str) -> Path:
    return path.with_name(f"{path.name}.{owner}.{_SUFFIX}")


def _lock(file: int) -> bool:
    """Lock an open file without waiting; return whether that could be done."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
