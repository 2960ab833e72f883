"""Rounds of a dialogue moved, said twice and left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Exchange, Turn
from pytest_dstfuzz.relations.relation import Move
from pytest_dstfuzz.relations.rounds import context_after, order_rounds, rounds_after

ORDERS = st.integers(0, 9).flatmap(lambda count: st.permutations(range(count)))


@given(ORDERS)
def test_moves_bring_rounds_into_any_order(order: list[int]):
    assert rounds_after(len(order), order_rounds(order)) == tuple(order)


@given(ORDERS)
def test_rounds_in_their_order_need_no_move(order: list[int]):
    assert bool(order_rounds(order)) == (order != sorted(order))


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_what_is_said_twice_or_left_out_is_one_round(place: tuple[int, int]):
    count, turn = place
    twice = rounds_after(count, [Move("repeat", turn, turn)])
    assert sorted(twice) == sorted([*range(count), turn])
    assert twice[turn] == twice[turn + 1] == turn
    assert rounds_after(count, [Move("drop", turn)]) == tuple(
        index for index in range(count) if index != turn
    )
    assert rounds_after(count, [Move("again", turn)]) == tuple(range(count))


def test_the_context_has_the_words_of_the_rounds():
    dialogue = Dialogue("d", tuple(Turn(n, f"s{n}", f"u{n}") for n in range(3)))
    found = context_after(dialogue, 3, [Move("move", 2, 1)])
    assert found.exchanges == (Exchange("s0", "u0"), Exchange("s2", "u2"), Exchange("s1", "u1"))


def test_what_is_added_is_no_round_of_the_dialogue():
    with pytest.raises(ValueError, match="it makes a new round, or has no target"):
        rounds_after(2, [Move("add", 1, 1)])
