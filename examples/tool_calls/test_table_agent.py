def test_calls_survive(dst_turn):
    dst_turn.assert_unchanged()
