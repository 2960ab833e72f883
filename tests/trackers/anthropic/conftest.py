"""What the tests of Anthropic's API share: the service on loopback is that of the web tests."""

from __future__ import annotations

import sys
from pathlib import Path

# Loaded before any inner run: such a run forgets the modules that it was the first to load,
# and the classes of errors must not be there twice.
import pytest_dstfuzz.plugin.hooks
import pytest_dstfuzz.trackers.anthropic.tracker  # noqa: F401

sys.path += [str(Path(__file__).parents[1] / name) for name in ("web", "chat")]
