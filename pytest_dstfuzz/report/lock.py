"""A lock between processes, for files that several of them read, change and write again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final

from pytest_dstfuzz.errors import UserError

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

#: Seconds between two attempts.
_PAUSE: Final = 0.02


@contextmanager
def locked(path: Path, wait: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file while it is read, changed and written.

    The folder is what is locked, since the file itself is replaced when it is written, and
    nothing is left behind, also by a process that is killed. Where folders cannot be locked
    (Windows, some network file systems) a file ``.NAME.lock`` beside it stands for the lock.

    Args:
        path: the file; its folder is made where it is missing.
        wait: seconds to wait for another process.

    Raises:
        UserError: another process holds it all that time, or the folder cannot be written.
    """
    target = path.expanduser().resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        held = _lock_folder(path, target.parent, wait)
        mark = None if held is not None else target.with_name(f".{target.name}.lock")
        if mark is not None:
            held = _make_mark(path, mark, wait)
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror or error}") from None
    try:
        yield
    finally:
        if held is not None:
            os.close(held)
        if mark is not None:
            mark.unlink(missing_ok=True)


def _lock_folder(path: Path, folder: Path, wait: float) -> int | None:
    """Return what holds the lock; ``None`` where a folder cannot be locked."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(held)
                raise UserError(
                    f"another process has been changing {path} for {wait:.0f} seconds: "
                    "try again when it is done"
                ) from None
            time.sleep(_PAUSE)
        except OSError:
            os.close(held)
            return None
        except BaseException:
            os.close(held)
            raise
        else:
            return held


def _make_mark(path: Path, mark: Path, wait: float) -> int:
    """Make the file that stands for the lock; Windows removes it also when a process is killed."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
    end = time.monotonic() + wait
    while True:
        # Windows refuses permission while another process is removing it.
        with suppress(FileExistsError, *([PermissionError] if os.name == "nt" else [])):
            return os.open(mark, flags, 0o600)
        if time.monotonic() > end:
            raise UserError(
                f"another process has been changing {path} for {wait:.0f} seconds; if there is "
                f"none, remove {mark}"
            )
        time.sleep(_PAUSE)
