"""What the tests of services share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from loopback import Asked, Says, Service, serving

# Loaded before any inner run: such a run forgets the modules that it was the first to load,
# and the classes of errors must not be there twice.
import pytest_dstfuzz.plugin.hooks
import pytest_dstfuzz.trackers.web.tracker  # noqa: F401


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Asked], Says]], Service]]:
    """Start services; each ends with the test."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(serving(answer))
