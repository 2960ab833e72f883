"""Duplicate, restart: what they ask, and when they do not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dstfuzz.relations.relation import UNCHANGED, Move
from pytest_dstfuzz.relations.rounds import Duplicate, Restart

if TYPE_CHECKING:
    from conftest import Begin

TWO = [
    ("", "A pizza with olives.", {"topping": "olives"}),
    ("Which size?", "Large, thanks.", {"size": "large"}),
]


def test_a_round_said_twice_is_compared_with_it_said_once(begin: Begin):
    first, second = begin(Duplicate(), TWO)
    assert [e.user for e in first.seen.exchanges] == [TWO[0][1]] * 2
    assert [e.user for e in first.reference.exchanges] == [TWO[0][1]]
    assert second.seen.exchanges[-1] == second.seen.exchanges[-2] == ("Which size?", TWO[1][1])
    assert second.moves == (Move("repeat", 1, 1),)
    assert second.about == "round 2 is said twice"
    assert first.expected == second.expected == UNCHANGED


def test_a_round_that_counts_is_not_said_twice(begin: Begin):
    more = ("Anything else?", "Another one with ham.", {"topping": "ham"})
    assert [rewrite.about for rewrite in begin(Duplicate(), [*TWO, more])] == [
        "round 1 is said twice",
        "round 2 is said twice",
    ]
    assert begin(Duplicate(), [more]) == Duplicate.reasons[0]


def test_restart_asks_for_each_context_again(begin: Begin):
    found = begin(Restart(), TWO)
    assert [rewrite.moves for rewrite in found] == [(Move("again", 0),), (Move("again", 1),)]
    assert all(rewrite.seen == rewrite.reference for rewrite in found)
    assert {rewrite.expected for rewrite in found} == {UNCHANGED}
