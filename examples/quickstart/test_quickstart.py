"""The smallest suite: one item for each sampled turn of the dialogues."""

import pytest


@pytest.mark.dst(transformations=2)
def test_belief_state_survives(dst_turn):
    dst_turn.assert_unchanged()
