"""Random streams with names. The same names give the same numbers in every process."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["derive", "stream"]


def derive(seed: int, *names: str | int) -> int:
    """Return a 128-bit seed for the stream ``names`` under ``seed``.

    The value depends only on the arguments, so each worker can compute any stream. Neither hash
    randomisation nor the order of calls matters.
    """
    text = "\x1f".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:16], "big")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of the stream ``names`` under ``seed``."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))
