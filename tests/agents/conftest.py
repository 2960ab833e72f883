"""The tasks are those of the tests of searches, and Ray is begun as for the tests of scale."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / name) for name in ("search", "scale")]

from tests.search.conftest import tasks  # noqa: E402, F401 - a fixture, from a folder put on the path
