"""The pizza bot under perturbed orders: ``dst_model`` names the tracker, the rest is one test."""

from __future__ import annotations

import pytest

from tracker import track


@pytest.fixture(scope="session")
def dst_model():
    return track


def test_the_order_survives(dst_turn):
    dst_turn.assert_unchanged()
