"""The weakness of a violation of which no more is kept than what was said and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import ChangedSlot
from pytest_dstfuzz.perturb.spelling import Mentions
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.weaknesses.changed import BrokenScene, domain_of
from pytest_dstfuzz.weaknesses.edited import Edited
from pytest_dstfuzz.weaknesses.keys import read_scene

#: Words of a value in whose midst there may be the name of a slot.
_LONG: Final = 3


class Heard(NamedTuple):
    """One exchange: what was said, and what the tracker saw the user say."""

    system: str
    user: str
    seen: str


def weakness_of(edits: int, said: Sequence[Heard], changed: Sequence[ChangedSlot]) -> str:
    """Return the id of its weakness, or ``""`` where what is kept does not tell.

    It tells of one edit and one slot, unless the state of the clean turn decides: that is not kept.
    """
    touched = [one for one in said if one.user != one.seen]
    if (edits, len(touched), len(changed)) != (1, 1, 1):
        return ""
    (one,), ((_, clean, seen),) = changed, touched
    values = [value for value in (one.before, one.after) if value is not None]
    if any(len(word_list(value)) >= _LONG for value in values):
        return ""
    user, system = (Mentions([each[place] for each in said]) for place in (1, 0))
    found = {
        read_scene(
            BrokenScene(
                Edited(clean, seen, (edit,)),
                Mentions([clean]),
                user,
                system,
                state,
                tuple(changed),
                said[-1].user,
            )
        ).key.id
        for edit in _edits(clean, seen)
        for state in _states(one, values, Edited(clean, seen, (edit,)).words)
    }
    return found.pop() if len(found) == 1 else ""


def _states(
    change: ChangedSlot, values: Sequence[str], words: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Return states that differ in the other slots.

    Some have the values or not, here and elsewhere, and some are called by these words or not.
    """
    domain = domain_of(change.slot)
    for here, there, named in product((False, True), repeat=3):
        state = {f"{domain}- {number}": value for number, value in enumerate(values) if here}
        state |= {f" - {number}": value for number, value in enumerate(values) if there}
        # A value that no slot of one or two words has.
        yield state | {f"{domain}-{word}": "a b c" for word in words if named}


def _edits(clean: str, seen: str) -> Iterator[Edit]:
    """Return the edits that make one text of another: what they do not share at either end.

    There are two where it does not tell which of two equal words, say, is the new one.
    """
    shorter = min(len(clean), len(seen))
    first = next((i for i in range(shorter) if clean[i] != seen[i]), shorter)
    last = next((i for i in range(shorter) if clean[-1 - i] != seen[-1 - i]), shorter)
    for start, tail in ((first, min(last, shorter - first)), (min(first, shorter - last), last)):
        end = len(clean) - tail
        yield Edit("", "", start, end, clean[start:end], seen[start : len(seen) - tail])
