"""The rounds that a tracker saw where a relation moved some: which ones, and how people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_dstfuzz.campaign.results import VariantResult

__all__ = ["move_texts"]

_MARKS = {"repeat": "said twice", "move": "moved", "add": "added"}


class ShownRound(NamedTuple):
    """One round as the tracker saw it."""

    #: What was done to it; ``""`` where nothing was.
    mark: str
    system: str
    user: str


def shown_rounds(variant: VariantResult) -> list[ShownRound]:
    """Return the rounds that the tracker saw; none where they are those of the dialogue."""
    rounds = variant.exchanges or ()
    marks = _marks(variant, len(rounds))
    return [ShownRound(mark, one.system, one.user) for mark, one in zip(marks, rounds, strict=True)]


def move_texts(variant: VariantResult) -> Iterator[str]:
    """Say what was done to rounds, counted from 1 as people count; of added ones, what is said."""
    new = (one.user for one in shown_rounds(variant) if one.mark == "added")
    for move in variant.moves:
        one, other = f"round {move.turn + 1}", f"round {(move.to or 0) + 1}"
        if move.kind == "repeat":
            yield f"{one} is said twice"
        elif move.kind == "move":
            yield f"{one} comes before {other}"
        elif move.kind == "drop":
            yield f"{one} is left out"
        elif move.kind == "add":
            said = next(new, "")
            yield f"a round is added: {said}" if said else "a round is added"
        else:
            yield "the same dialogue is asked once more"


def _marks(variant: VariantResult, seen: int) -> list[str]:
    """Return what was done to each of the rounds seen; nothing where the moves do not fit them."""
    added = sum(move.kind in ("repeat", "add") for move in variant.moves)
    dropped = sum(move.kind == "drop" for move in variant.moves)
    order: list[tuple[int, str]] = [(number, "") for number in range(seen - added + dropped)]
    for move in variant.moves:
        numbers = [number for number, _ in order]
        if move.kind == "add":
            after = move.turn if move.to is None else move.to
            order.insert(
                numbers.index(after) + 1 if after in numbers else len(order), (-1, "added")
            )
        elif move.kind != "again" and move.turn in numbers:
            place = numbers.index(move.turn)
            if move.kind != "repeat":
                order.pop(place)
                numbers.pop(place)
            if move.kind != "drop" and move.to in numbers:
                behind = move.kind == "repeat"
                order.insert(numbers.index(move.to) + behind, (move.turn, _MARKS[move.kind]))
    marks = [mark for _, mark in order]
    return marks if len(marks) == seen else [""] * seen
