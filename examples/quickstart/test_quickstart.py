"""The smallest suite: one item for each sampled turn of the dialogues."""


def test_belief_state_survives(dst_turn):
    dst_turn.assert_unchanged()
