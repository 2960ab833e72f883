"""What tells a tracker that is read from files from every other one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def files_fingerprint(files: Iterable[Path], code: Path, *more: str) -> str:
    """Return the SHA-256 of all that the answers of a tracker depend on, as 64 digits.

    Args:
        files: of the model.
        code: folder of the Python files that read and run it.
        more: whatever else may change an answer in its last digits, such as the version of
            a library.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in (*sorted(files), *sorted(code.glob("*.py"))):
        digest.update(path.name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for text in more:
        digest.update(text.encode("utf-8") + b"\0")
    return digest.hexdigest()
