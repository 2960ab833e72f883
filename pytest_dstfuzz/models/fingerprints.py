"""Fingerprints that identify a model by its files, without loading a deep-learning library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_dstfuzz.files import digest_of

#: The tokeniser shared by the trackers.
TOKENISER: Final = Path(__file__).with_name("tokenise.py")


def files_fingerprint(files: Iterable[Path], code: Path, *more: str) -> str:
    """Return a SHA-256, as 64 digits, of everything that a tracker's answers depend on.

    This includes the model files and the Python files in the folder ``code`` that run the model.
    ``more`` names other things, such as the version of a library.
    """
    # The words of a text also depend on the shared tokeniser.
    digest = digest_of((*sorted(files), *sorted(code.glob("*.py")), TOKENISER))
    return hashlib.sha256("\0".join((digest, *more)).encode("utf-8")).hexdigest()
