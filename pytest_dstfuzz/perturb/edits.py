"""Apply edits to a text, undo edits, and map them back to the source.

Edits are sequential: the offsets of each edit refer to the text after all earlier edits.
`hunks` converts a list of edits to changed parts of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.perturb.words import Edit

__all__ = ["hunks", "source_spans", "undo_edits"]


class Hunk(NamedTuple):
    """``source[start:end]`` became ``text[new_start:new_end]``. Text outside hunks is unchanged."""

    start: int
    end: int
    new_start: int
    new_end: int


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply the edits to ``text`` in order.

    Raises:
        ValueError: If the text at the offsets of an edit is not its ``before``.
    """
    for number, edit in enumerate(edits):
        found = text[edit.start : edit.end]
        if edit.start < 0 or edit.end != edit.start + len(edit.before) or found != edit.before:
            raise ValueError(
                f"edit {number} expects {edit.before!r} at {edit.start}:{edit.end}, found {found!r}"
            )
        text = text[: edit.start] + edit.after + text[edit.end :]
    return text


def undo_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text before ``edits``, given the ``text`` after them."""
    for edit in reversed(edits):
        text = text[: edit.start] + edit.before + text[edit.start + len(edit.after) :]
    return text


def without(edits: Sequence[Edit], dropped: Collection[int]) -> tuple[Edit, ...]:
    """Return the edits without those at the indices ``dropped``.

    Offsets of the remaining edits are shifted. Edits that depend on a dropped edit are dropped,
    too. An edit depends on another if it deletes text that the other inserted, or if its ``before``
    would no longer be contiguous.

    Raises:
        IndexError: If there is no edit with an index in ``dropped``.
    """
    if any(not 0 <= index < len(edits) for index in dropped):
        raise IndexError(f"there are {len(edits)} edits, cannot drop {sorted(dropped)}")
    gone = set(dropped)
    if len(gone) in (0, len(edits)):
        return () if gone else tuple(edits)
    cells = _history(edits)
    # The last place is for the characters of the source and for those that no edit deleted.
    lost = np.zeros(len(edits) + 1, bool)
    lost[[*gone]] = True
    kept: list[Edit] = []
    for index, edit in enumerate(edits):
        start = None if lost[index] else _start_without(cells, lost, index)
        if start is None:
            lost[index] = True
        else:
            kept.append(replace(edit, start=start, end=start + len(edit.before)))
    return tuple(kept)


class _Characters(NamedTuple):
    """The characters of all stages of a text in order, including deleted ones.

    Arrays, because a text of 10,000 characters may have thousands of edits.
    """

    #: Index of the edit that inserted each character; -1 for a character of the source.
    makers: npt.NDArray[np.intp]
    #: Index of the edit that deleted each character; the number of edits if none did.
    takers: npt.NDArray[np.intp]


def _history(edits: Sequence[Edit]) -> _Characters:
    """Return the characters of all stages of the text."""
    never = len(edits)
    # No edit reaches beyond this length, so the text itself is not needed.
    reach = max((edit.end for edit in edits), default=0) + sum(len(e.before) for e in edits)
    makers, takers = np.full(reach, -1, np.intp), np.full(reach, never, np.intp)
    for index, edit in enumerate(edits):
        live = np.flatnonzero(takers == never)
        takers[live[edit.start : edit.end]] = index
        at = live[edit.end - 1] + 1 if edit.end else 0
        makers = np.insert(makers, at, np.full(len(edit.after), index, np.intp))
        takers = np.insert(takers, at, np.full(len(edit.after), never, np.intp))
    return _Characters(makers, takers)


def _start_without(cells: _Characters, lost: npt.NDArray[np.bool_], index: int) -> int | None:
    """Return the start of an edit after other edits are dropped, or ``None``."""
    makers, takers = cells
    mine = takers == index
    if lost[makers[mine]].any():
        return None
    live = (makers < index) & ~lost[makers] & ((takers >= index) | lost[takers])
    places = np.cumsum(live)
    taken = places[mine & live]
    if len(taken) and taken[-1] - taken[0] >= len(taken):  # No longer contiguous.
        return None
    own = np.flatnonzero(mine | (makers == index))
    return int(places[own[0]]) - int(live[own[0]]) if len(own) else None


def hunks(edits: Iterable[Edit]) -> list[Hunk]:
    """Return the changed parts of the source in order. Adjacent parts are merged."""
    merged: list[Hunk] = []
    for edit in edits:
        growth = len(edit.after) - len(edit.before)
        if not merged:  # Fast path: most variants have a single edit.
            merged = [Hunk(edit.start, edit.end, edit.start, edit.end + growth)]
            continue
        before: list[Hunk] = []
        after: list[Hunk] = []
        touching: list[Hunk] = []
        for hunk in merged:
            if hunk.new_end < edit.start:
                before.append(hunk)
            elif hunk.new_start > edit.end:
                after.append(hunk)
            else:
                touching.append(hunk)
        new_start, new_end = edit.start, edit.end
        offset = before[-1].end - before[-1].new_end if before else 0
        start, end = edit.start + offset, edit.end + offset
        if touching:
            first, last = touching[0], touching[-1]
            start = first.start - max(0, first.new_start - edit.start)
            end = last.end + max(0, edit.end - last.new_end)
            new_start = min(edit.start, first.new_start)
            new_end = max(edit.end, last.new_end)
        merged = [
            *before,
            Hunk(start, end, new_start, new_end + growth),
            *(Hunk(h.start, h.end, h.new_start + growth, h.new_end + growth) for h in after),
        ]
    return merged


def source_spans(edits: Sequence[Edit]) -> tuple[tuple[int, int], ...]:
    """Return the span of the clean utterance that each edit changes.

    If an edit changes text that earlier edits inserted, its span is the hunk of those edits.
    """
    spans = []
    for index, edit in enumerate(edits):
        earlier = hunks(edits[:index])
        spans.append((_to_source(earlier, edit.start, 0), _to_source(earlier, edit.end, 1)))
    return tuple((min(start, end), max(start, end)) for start, end in spans)


def _to_source(earlier: Sequence[Hunk], offset: int, side: int) -> int:
    shift = 0
    for hunk in earlier:
        if hunk.new_start < offset < hunk.new_end:
            return hunk.end if side else hunk.start
        if hunk.new_end <= offset:
            shift = hunk.end - hunk.new_end
    return offset + shift
