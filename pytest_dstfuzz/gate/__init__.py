"""Internal: The verdict on a session: limits, baselines, and what tells chance from a regression.

Importing this package imports neither numpy nor scipy; comparing two builds does.
"""

from __future__ import annotations

from importlib.util import find_spec

from pytest_dstfuzz.errors import MissingExtraError


def require_statistics() -> None:
    """Make sure that two builds can be compared; loads nothing."""
    if find_spec("scipy") is None:
        raise MissingExtraError("comparing with a baseline", "report", "scipy")
