"""The pizza bot under perturbed orders: ``dst_model`` names the tracker, the rest is one test."""

from __future__ import annotations

from typing import Any

import pytest
from tracker import track


@pytest.fixture(scope="session")
def dst_model() -> Any:
    return track


def test_the_order_survives(dst_turn: Any) -> None:
    dst_turn.assert_unchanged()
