"""What a scorer learns from: attempts at turns, each with the slots that it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pytest_dstfuzz.agents.bandit_search import attempts_of
from pytest_dstfuzz.agents.features import Floats
from pytest_dstfuzz.agents.slot_view import SlotView
from pytest_dstfuzz.search.protocol import Feedback

#: Features that are remembered, in 16 bits.
Halves = npt.NDArray[np.float16]


class AttemptRows(NamedTuple):
    """One attempt: which edits, what was known before it, and which slots it changed."""

    edits: tuple[int, ...]  #: Places in `TurnRows.of_edits`.
    pairs: Halves  #: [slots, edits, PAIR_SIZE]
    changed: Floats  #: [slots], 1 where it changed.


class TurnRows(NamedTuple):
    """A turn and the attempts at it."""

    of_slots: Halves  #: [slots, SLOT_SIZE]
    of_edits: Halves  #: [edits that any attempt has, EDIT_SIZE]
    attempts: tuple[AttemptRows, ...]


def turn_rows(view: SlotView, seen: Sequence[Feedback]) -> TurnRows | None:
    """Return what the attempts at a turn teach; ``None`` where none was answered."""
    attempts = attempts_of(seen)
    made = [np.flatnonzero(view.made_of(one.variant)) for one in attempts]
    used = sorted({place for places in made for place in places.tolist()})
    numbers = {place: number for number, place in enumerate(used)}
    found = []
    for number, (one, places) in enumerate(zip(attempts, made, strict=True)):
        if one.answer is None or not len(places):
            continue
        pairs = view.pairs(attempts[:number])[:, places].astype(np.float16)
        changed = np.array(view.changed(one.answer), np.float32)
        edits = tuple(numbers[place] for place in places.tolist())
        found.append(AttemptRows(edits, pairs, changed))
    if not found:
        return None
    of_edits = view.of_edits[used].astype(np.float16)
    return TurnRows(view.of_slots.astype(np.float16), of_edits, tuple(found))


class Batch(NamedTuple):
    """Attempts at some turns: a row for each slot and edit of an attempt."""

    slots: Tensor  #: [rows, SLOT_SIZE]
    edits: Tensor  #: [rows, EDIT_SIZE]
    pairs: Tensor  #: [rows, PAIR_SIZE]
    group: Tensor  #: [rows], the slot of an attempt that a row is of.
    changed: Tensor  #: [groups], 1 where the attempt changed the slot.
    attempts: int


def batch_of(turns: Sequence[TurnRows]) -> Batch:
    """Put the attempts at some turns together."""
    slots, edits, pairs, group, changed = [], [], [], [], []
    groups = attempts = 0
    for turn in turns:
        count = len(turn.of_slots)
        for one in turn.attempts:
            width = len(one.edits)
            slots.append(np.repeat(turn.of_slots, width, axis=0))
            edits.append(np.tile(turn.of_edits[list(one.edits)], (count, 1)))
            pairs.append(one.pairs.reshape(count * width, -1))
            group.append(np.repeat(np.arange(groups, groups + count), width))
            changed.append(one.changed)
            groups += count
            attempts += 1
    return Batch(
        slots=torch.from_numpy(np.concatenate(slots)).float(),
        edits=torch.from_numpy(np.concatenate(edits)).float(),
        pairs=torch.from_numpy(np.concatenate(pairs)).float(),
        group=torch.from_numpy(np.concatenate(group)),
        changed=torch.from_numpy(np.concatenate(changed)),
        attempts=attempts,
    )
