"""From a dialogue and what is done to its rounds to the context that the tracker sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Exchange
from pytest_dstfuzz.relations.rewrite import Move


def rounds_after(count: int, moves: Iterable[Move]) -> tuple[int, ...]:
    """Return which rounds of a dialogue are there, and in which order, after some moves.

    Args:
        count: rounds that are there before.
        moves: made one after the other; each names rounds by their place in the clean dialogue.

    >>> rounds_after(4, [Move("move", 2, 1), Move("drop", 0)])
    (2, 1, 3)
    >>> rounds_after(2, [Move("repeat", 0, 0)])
    (0, 0, 1)

    Raises:
        ValueError: a round is not there, or a move is none of whole rounds.
    """
    order = list(range(count))
    for move in moves:
        if move.kind == "again":
            continue
        if move.kind == "add" or (move.kind in {"move", "repeat"} and move.to is None):
            raise ValueError(f"{move} says too little: what is added is no round of the dialogue")
        place = order.index(move.turn)
        if move.kind == "repeat":
            order.insert(order.index(move.to or 0) + 1, move.turn)
            continue
        order.pop(place)
        if move.kind == "move":
            order.insert(order.index(move.to or 0), move.turn)
    return tuple(order)


def context_after(dialogue: Dialogue, count: int, moves: Sequence[Move]) -> Context:
    """Return the first ``count`` rounds of a dialogue after some moves, as a tracker sees them.

    Raises:
        ValueError: as `rounds_after`.
    """
    turns = [dialogue.turns[index] for index in rounds_after(count, moves)]
    return Context(tuple(Exchange(turn.system, turn.user) for turn in turns))


def ordered(order: Sequence[int]) -> tuple[Move, ...]:
    """Return the moves that bring rounds ``0, 1, ...`` into an order.

    >>> ordered([0, 3, 1, 2])
    (Move(kind='move', turn=3, to=1),)
    """
    moves, now = [], sorted(order)
    for place, wanted in enumerate(order):
        if now[place] != wanted:
            moves.append(Move("move", wanted, now[place]))
            now.remove(wanted)
            now.insert(place, wanted)
    return tuple(moves)
