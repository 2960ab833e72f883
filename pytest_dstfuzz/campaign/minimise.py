"""Delta debugging: from a set of edits that breaks a relation to a smallest one that does.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 2002),
with two changes. A set of few edits is taken apart one by one at once: nine of ten violations
are one edit's doing. And what cannot be spared is tried as a whole before anything is left out
bit by bit: where causes do not hide each other, that is the answer.

A search here is a generator that yields all the sets that it wants to know about next, so that
those of many violations go to a tracker in full batches.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

#: Sets of up to so many edits are taken apart one by one; larger ones are halved first.
FEW: Final = 8
#: Where more are left, each edit is tried alone before that is taken for an answer.
PLAIN: Final = 2

#: Some edits, by their numbers, in ascending order.
Subset = tuple[int, ...]
_Result = TypeVar("_Result")
#: Yields sets, is sent for each of them whether it breaks the relation, returns a result.
Steps = Generator[Sequence[Subset], Mapping[Subset, bool], _Result]


def minimise(groups: Sequence[Subset]) -> Steps[Subset]:
    """Return a 1-minimal set of edits that breaks: without any one of them it does not.

    All edits together are taken to break. Where every superset of a set that breaks does so
    too, no smaller set within the result breaks either.

    Args:
        groups: edits that belong together, none in two groups. A group that breaks alone is
            all that is looked at, the first one before others.

    Yields:
        Sets that were not asked for before, each once.
    """
    known: dict[Subset, bool] = {}
    whole = tuple(sorted(edit for group in groups for edit in group))
    parts = [tuple(sorted(group)) for group in groups if group]
    found = None
    if len(parts) > 1:
        found = yield from _first(parts, known)
    current = whole if found is None else found
    pieces = _begin(current)
    while len(current) > 1:
        chunks = _split(current, pieces)
        smaller = yield from _first(chunks, known)
        if smaller is not None:
            current = smaller
            pieces = _begin(current)
            continue
        smaller = yield from _spare(current, chunks, known)
        if smaller is not None:
            current = smaller
            pieces = len(current) if len(current) <= FEW else max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(2 * pieces, len(current))
        else:
            break
    if len(current) > PLAIN:
        # Halves and groups may have passed by an edit that does it alone.
        alone = yield from _first([(edit,) for edit in whole], known)
        current = current if alone is None else alone
    return current


def _begin(edits: Subset) -> int:
    """Return into how many pieces a set is taken apart first."""
    return len(edits) if len(edits) <= FEW else 2


def _split(edits: Subset, pieces: int) -> list[Subset]:
    """Return a set in pieces of like size, in order."""
    cuts = [len(edits) * number // pieces for number in range(pieces + 1)]
    return [edits[low:high] for low, high in pairwise(cuts)]


def _first(sets: Sequence[Subset], known: dict[Subset, bool]) -> Steps[Subset | None]:
    """Return the first of some sets that breaks, asking for those that are not known."""
    wanted = [edits for edits in dict.fromkeys(sets) if edits not in known]
    if wanted:
        answers = yield wanted
        known.update((edits, answers[edits]) for edits in wanted)
    return next((edits for edits in sets if known[edits]), None)


def _spare(
    current: Subset, chunks: Sequence[Subset], known: dict[Subset, bool]
) -> Steps[Subset | None]:
    """Return what still breaks when a chunk, or all that can be spared, is left out."""
    # The last ones go first: edits of the turn itself come before those of its context.
    rests = [_less(current, chunk) for chunk in reversed(chunks)]
    smaller = yield from _first(rests, known)
    if smaller is None:
        return None
    spared = {edit for rest in rests if known[rest] for edit in _less(current, rest)}
    needed = _less(current, tuple(spared))
    if needed and needed != smaller and (yield from _first([needed], known)) is not None:
        return needed
    return smaller


def _less(edits: Subset, dropped: Sequence[int]) -> Subset:
    return tuple(edit for edit in edits if edit not in dropped)
