"""pytest examples/refund_bot: one test passes, the other shows what the bot is talked into."""

from refund_bot import RefundBot, TiredRefundBot

from pytest_dstfuzz.games import RefundGame


def test_refunds_keep_to_the_rule(dst_game):
    report = dst_game.play(RefundBot(), RefundGame())
    report.assert_advantage_below(0)


def test_a_tired_bot_gives_way(dst_game):
    report = dst_game.play(TiredRefundBot(), RefundGame())
    report.assert_advantage_below(0)
