"""Which turns of a data set a run tests: whole dialogues, in a seeded order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import overload

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import (
    Dialogue,
    DialogueSet,
    StoredDialogues,
    domains_of_slots,
)
from pytest_dstfuzz.dialogue.spool import gathered
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.seeding import derive

__all__ = ["in_shard"]

#: Slots that a message shows.
_SHOWN = 6


class SampledTurns(Sequence[tuple[Dialogue, int]]):
    """Dialogues of large data with the last turn that is taken of each, read when asked for.

    Args:
        dialogues: all of the data.
        places: where in it those that are taken stand.
        lasts: the last turn of each of them.
    """

    def __init__(
        self, dialogues: StoredDialogues, places: Sequence[int], lasts: Sequence[int]
    ) -> None:
        self._dialogues = dialogues
        self._places = places
        self._lasts = lasts

    def part(self, shard: tuple[int, int]) -> SampledTurns:
        """Return those of a part of the dialogues, see `in_shard`."""
        ids = tuple(self._dialogues.places)
        kept = [n for n, place in enumerate(self._places) if in_shard(ids[place], shard)]
        places = array("q", (self._places[number] for number in kept))
        return SampledTurns(
            self._dialogues, places, array("q", (self._lasts[number] for number in kept))
        )

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> tuple[Dialogue, int]: ...
    @overload
    def __getitem__(self, number: slice) -> SampledTurns: ...
    def __getitem__(self, number: int | slice) -> tuple[Dialogue, int] | SampledTurns:
        if isinstance(number, slice):
            return SampledTurns(self._dialogues, self._places[number], self._lasts[number])
        return self._dialogues[self._places[number]], self._lasts[number]


def sample_turns(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> Sequence[tuple[Dialogue, int]]:
    """Draw dialogues until ``count`` turns are reached; return each with its last turn.

    They are in the order of the data. The last one drawn is cut: its first turns are kept, so
    that exactly ``count`` turns result (all there are, where there are fewer). The same seed
    draws the same dialogues first, whatever the count, wherever the data lies, and whichever
    other dialogues are there: each has a rank that its id and the seed alone decide. With
    ``domains``, only dialogues count whose labels name a slot of one of them (the part of a
    slot's name before the first ``-``). Of large data dialogues are read when they are asked for.
    """
    if count is not None and count < 1:
        raise UserError(f"the number of turns must be at least 1 or 'all', found {count}")
    kept = _of_domains(dialogues, domains)
    lengths = dialogues.lengths
    if count is None:
        last = {place: lengths[place] - 1 for place in kept}
    else:
        last = _drawn(kept, list(dialogues.ids), lengths, count, seed)
    every = dialogues.dialogues
    if not isinstance(every, StoredDialogues):
        return tuple((every[place], last[place]) for place in sorted(last))
    places = array("q", sorted(last))
    return SampledTurns(every, places, array("q", (last[place] for place in places)))


def _drawn(
    kept: Sequence[int], ids: Sequence[str], lengths: Sequence[int], count: int, seed: int
) -> dict[int, int]:
    """Return the places of the dialogues that are drawn with their last turns."""
    # By id and not by position or name of the data: a copy elsewhere is the same data.
    ranks = bytearray()
    for place in kept:
        ranks += derive(seed, "sample", ids[place]).to_bytes(16, "big")
    halves = np.frombuffer(ranks, dtype=">u8").reshape(-1, 2)
    last: dict[int, int] = {}
    remaining = count
    for number in np.lexsort((halves[:, 1], halves[:, 0])).tolist():
        if remaining == 0:
            break
        place = kept[number]
        turns = min(remaining, lengths[place])
        last[place] = turns - 1
        remaining -= turns
    return last


def in_shard(dialogue_id: str, shard: tuple[int, int] | None) -> bool:
    """Whether a dialogue is of a part (its number, from 1, and of how many); ``None`` = of all.

    Its id alone decides: it stays in its part whatever the seed, and whichever other dialogues come
    or go.
    """
    if shard is None:
        return True
    number, parts = shard
    return derive(0, "shard", dialogue_id) % parts == number - 1


def part_of(
    plan: Sequence[tuple[Dialogue, int]], shard: tuple[int, int] | None
) -> Sequence[tuple[Dialogue, int]]:
    """Return what `sample_turns` drew of a part of the dialogues, see `in_shard`."""
    if shard is None:
        return plan
    if isinstance(plan, SampledTurns):
        return plan.part(shard)
    return tuple(planned for planned in plan if in_shard(planned[0].id, shard))


def sample_set(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> DialogueSet:
    """Return the data set of the turns that `sample_turns` draws, without the others."""
    drawn = sample_turns(dialogues, count, seed, domains)
    cut = (replace(dialogue, turns=dialogue.turns[: last + 1]) for dialogue, last in drawn)
    return replace(dialogues, dialogues=gathered(cut))


def domains_of(dialogue: Dialogue) -> frozenset[str]:
    """Return the domains of which a label of ``dialogue`` names a slot."""
    return domains_of_slots(slot for turn in dialogue.turns for slot in turn.state or ())


def _of_domains(dialogues: DialogueSet, domains: tuple[str, ...] | None) -> Sequence[int]:
    """Return the places of the dialogues that touch one of the domains."""
    if not domains:
        return range(len(dialogues.dialogues))
    wanted = frozenset(domains)
    kept = array("q")
    slots = dialogues.ontology.slots if dialogues.ontology else ()
    known = set(domains_of_slots(slots))
    labels = False
    for place, dialogue in enumerate(dialogues.dialogues):
        touched = domains_of(dialogue)
        labels = labels or any(turn.state is not None for turn in dialogue.turns)
        known |= touched
        if touched & wanted:
            kept.append(place)
    _check_domains(dialogues, domains, known, slots if labels else None)
    if not kept:
        raise DataError(
            f"no dialogue of {dialogues.name!r} ({dialogues.split}) touches "
            f"{', '.join(sorted(wanted))}"
        )
    return kept


def _check_domains(
    dialogues: DialogueSet,
    domains: Iterable[str],
    known: set[str],
    slots: Sequence[str] | None,
) -> None:
    """Refuse domains that there are not; ``slots`` = ``None``: there are no labels."""
    if slots is None:
        raise DataError(
            f"the dialogues of {dialogues.name!r} have no labels, so they cannot be chosen by "
            "domain: leave the domains out, or give labelled dialogues"
        )
    if not known:
        shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
        raise DataError(
            f"the slots of {dialogues.name!r} belong to no domain (what stands before the first "
            f"'-' of a name), so dialogues cannot be chosen by domain: {shown}. Leave the domains "
            "out; --dst-slots chooses slots"
        )
    for domain in domains:
        if domain not in known:
            raise UserError(
                f"{unknown_name('domain', domain, known)} Labels and ontology say which there are."
            )
