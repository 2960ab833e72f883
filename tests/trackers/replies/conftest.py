"""What the tests of systems that reply share: the service on loopback is that of the web tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Loaded before any inner run: such a run forgets the modules that it was the first to load,
# and the classes of errors must not be there twice.
import pytest_dstfuzz.plugin.hooks
import pytest_dstfuzz.trackers.web.tracker  # noqa: F401

sys.path.append(str(Path(__file__).parents[1] / "web"))


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the terminal so wide that what is looked for stands in one line."""
    monkeypatch.setenv("COLUMNS", "160")
