"""Which violations are of one cause: those with the same key.

A key has as few parts as tell causes apart: where a part would part violations that one fix mends,
it is left out. Whether a tracker takes a mistyped word for a value does not depend on the slot;
what it makes of words left out, on little else than that; and a typing error harms it otherwise in
a yes or no, in a time and in a number than in a name, and otherwise in what was said long ago than
in what it stands beside.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.weaknesses.changed import MainChange, main_change
from pytest_dstfuzz.weaknesses.edited import CLASSES, blamed

_DIGITS: Final = 6
#: Kinds of values whose loss, mix-up and invention a typing error causes alike.
_ALIKE: Final = frozenset({"time", "number"})


class Key(NamedTuple):
    """What violations of one weakness have in common; ``""`` = any."""

    edit: str = ""  #: One of `edited.CLASSES`.
    values: str = ""  #: Kind of the slot's values, see `changed.values_of`.
    place: str = ""  #: ``elsewhere`` where the utterance with the edits does not say the value.
    change: str = ""  #: One of `changed.PATTERNS`.

    @property
    def id(self) -> str:
        """Readable, and of the key alone: the same in every run.

        >>> Key(edit="typo", values="time").id
        'typo-time-bee1b3'
        """
        digest = hashlib.sha256("\n".join(self).encode()).hexdigest()
        return "-".join([*filter(None, self), digest[:_DIGITS]])


class Reading(NamedTuple):
    """What is read of one violation."""

    key: Key
    words: tuple[str, ...]  #: Clean words that had the edit, in lower case.
    slot: str  #: The slot whose change says most.


def read(turn: TurnResult, variant: VariantResult) -> Reading:
    """Return key, words and slot of a violation; they depend on it alone."""
    edited = blamed(turn, variant)
    edits = edited.words
    edit = min((kind for kind, _ in edits), key=list(CLASSES).index, default="typo")
    words = tuple(dict.fromkeys(word for kind, word in edits if kind == edit))
    changed = variant.plain.changed_slots
    if not changed:  # A relation of others may be about something else than slots.
        return Reading(Key(edit=edit), words, "")
    change = main_change(
        changed, turn.clean_state or {}, edited.clean, {word for _, word in edits}, edited.brought
    )
    return Reading(key_of(edit, change), words, change.slot)


def key_of(edit: str, change: MainChange) -> Key:
    """Return the key of a change that an edit of some class made."""
    pattern, values = change.pattern, change.values
    if pattern == "copied" or edit != "typo":
        return Key(change=pattern) if pattern == "copied" else Key(edit=edit)
    if values == "yes-no" or (values == DONTCARE and pattern == "lost"):
        return Key(edit=edit, values=values)
    if values not in _ALIKE and pattern == "filled":
        return Key(edit=edit, change=pattern)
    if not change.said:
        return Key(edit=edit, place="elsewhere", change=pattern)
    if values in _ALIKE:
        return Key(edit=edit, values=values)
    return Key(edit=edit, values="text", change=pattern)
