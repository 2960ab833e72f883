"""Files that are either written whole or left as they were."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path

from pytest_dstfuzz.errors import UserError

#: Characters of a name that its draft has: of four bytes each they leave room for the rest.
_NAME = 50
_SURROGATE = re.compile("[\ud800-\udfff]")


def write_text(path: Path, text: str) -> None:
    r"""Write ``text`` as UTF-8, atomically; folders that are missing are made.

    The text goes to a new file in the same folder, which then takes the place of
    ``path``: whatever fails, a file that was there keeps its content. A lone surrogate,
    which UTF-8 does not have, is written as ``\udXXX``, as JSON spells it.

    Raises:
        UserError: the path cannot be written.
    """
    target = _target(path)
    data = _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode("utf-8")
    draft = _draft(target.parent, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Not tempfile: its files are readable by their owner alone, whatever the umask.
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def check_apart(written: Mapping[str, Path], read: Mapping[str, Path]) -> None:
    """Refuse to write a file that is read, or that is written for something else too.

    Links of either kind are followed: what counts is the file.

    Args:
        written: what is going to be written, by what it is called in a message.
        read: likewise what is read.

    Raises:
        UserError: two of them are one file, and one of the two is going to be written.
    """
    names = list(written)
    for number, name in enumerate(names):
        others = {**{other: written[other] for other in names[:number]}, **read}
        for other, path in others.items():
            if _same(written[name], path):
                raise UserError(
                    f"{name} and {other} are one file, {path}: what is in it would be lost; give "
                    "one of them another path"
                )


def _same(one: Path, other: Path) -> bool:
    try:
        if one.expanduser().resolve() == other.expanduser().resolve():
            return True
        return one.expanduser().samefile(other.expanduser())
    except (OSError, RuntimeError, ValueError):  # One of them is not there, a loop of links, ...
        return False


def check_writable(path: Path) -> None:
    """Find out before a long run whether its report can be written; leaves no trace.

    Raises:
        UserError: the path cannot be written.
    """
    target = _target(path)
    folder = next(parent for parent in target.parents if parent.exists())
    draft = _draft(folder, target)
    try:
        draft.open("xb").close()
        draft.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _draft(folder: Path, target: Path) -> Path:
    """Return a name that no run has used.

    One that was killed may have left its draft; its process number comes again, in a container
    in every run. The end of a long name is left out: a name has a limit.
    """
    return folder / f".{target.name[:_NAME]}.{uuid.uuid4().hex}.tmp"


def _target(path: Path) -> Path:
    """Return the file itself where ``path`` is a link, so that the link stays."""
    try:
        target = path.expanduser().resolve()
        if target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "no regular file"
            raise UserError(f"cannot write {path}: it is {kind}")
    except (OSError, RuntimeError, ValueError) as error:  # A loop of links, a NUL, ...
        raise _unwritable(path, error) from None
    return target


def _unwritable(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(f"cannot write {path}: {reason}")
