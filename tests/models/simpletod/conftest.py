"""The hand-made dialogues are those of the TRADE tests; one thread computes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Small products are slower on two threads than on one, and very slow on a busy machine."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
