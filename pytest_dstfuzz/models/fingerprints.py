"""What tells a model from every other one by its files; no library of networks is loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_dstfuzz.files import digest_of

#: The tokeniser that the trackers share.
TOKENISER: Final = Path(__file__).with_name("tokenise.py")


def files_fingerprint(files: Iterable[Path], code: Path, *more: str) -> str:
    """Return the SHA-256 of all that the answers of a tracker depend on, as 64 digits.

    That is the files of the model, the folder of the Python files that read and run it, and
    whatever else may change an answer in its last digits, such as the version of a library.
    """
    # The words of a text depend on the shared tokeniser too.
    digest = digest_of((*sorted(files), *sorted(code.glob("*.py")), TOKENISER))
    return hashlib.sha256("\0".join((digest, *more)).encode("utf-8")).hexdigest()
