"""The service on loopback is that of the tests of chat models."""

from __future__ import annotations

import sys
from pathlib import Path

# Loaded before any inner run: such a run forgets the modules that it was the first to load.
import pytest_dstfuzz.trackers.chat.tracker  # noqa: F401

sys.path += [str(Path(__file__).parents[1] / "trackers" / name) for name in ("web", "chat")]
