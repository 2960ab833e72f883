"""A bot that rewords its replies: what is reported of it beside what was planted into it."""

from __future__ import annotations

import pytest
from reply_wobble_table import Row, row

#: A table of 20 seeds is printed by reply_wobble_table.py; these are a few of its runs.
SEEDS, DIALOGUES = range(3), 15


def rows(name: str | None, wobble: float, planted: int) -> list[Row]:
    return [row(seed, name, wobble, planted, DIALOGUES) for seed in SEEDS]


@pytest.mark.parametrize("planted", [0, 5])
def test_the_interval_holds_what_was_planted_though_each_wording_counts(planted: int) -> None:
    found = rows("exact", 0.2, planted)
    assert all(one.holds for one in found), found
    assert sum(one.reported - one.hits for one in found) <= 2
    assert sum(one.hits for one in found) >= 0.9 * sum(one.true for one in found)


def test_by_meaning_a_bot_that_rewords_its_replies_is_as_one_that_does_not() -> None:
    for one in rows(None, 0.2, 5):
        assert one.reported == one.true == one.hits
        assert one.low <= one.true <= one.high <= one.true + 1
        assert one.unstable == 0
