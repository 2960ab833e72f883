"""What the tracker did: the pattern of the change, the kind of slot, where its value was said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import ChangedSlot
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.value_index import canonical
from pytest_dstfuzz.perturb.words import word_list

#: Pattern of a change -> what it is. Of several slots, the first pattern here names the change.
PATTERNS: Final = {
    "copied": "takes what was typed by mistake for a value",
    "moved": "puts the value of one slot into another",
    "replaced": "replaces a value",
    "lost": "loses a value",
    "filled": "makes a value up",
}
_ORDER: Final = {pattern: number for number, pattern in enumerate(PATTERNS)}
_TIME: Final = re.compile(r"\d{1,2}[:.]\d\d")
_NAMES: Final = re.compile(r"[^\W_]+")


class MainChange(NamedTuple):
    """The change of one slot."""

    slot: str
    pattern: str  #: One of `PATTERNS`.
    values: str  #: Kind of its values, see `values_of`.
    #: Whether the utterance with the edits says its value, as far as words tell.
    said: bool


def main_change(
    changed: Iterable[ChangedSlot],
    state: Mapping[str, str],
    utterance: str,
    edited: Collection[str],
    brought: Collection[str],
) -> MainChange:
    """Return the change that says most about what happened.

    What had changed at an earlier turn counts where nothing else did. A slot that an edited word
    names goes first, then the order of `PATTERNS`.

    Args:
        changed: the slots that changed, one at least.
        state: the answer to the clean turn.
        utterance: the clean utterance of the edits.
        edited: its words that were edited.
        brought: words that only the edits brought.
    """
    everything = tuple(changed)
    anew = [one for one in everything if not one.carried] or everything
    gone = {one.before for one in anew}
    found = []
    for one in anew:
        held = {value for slot, value in state.items() if slot != one.slot} | gone
        pattern, values = _pattern(one, held, brought), values_of(one)
        change = MainChange(one.slot, pattern, values, _is_said(one, values, utterance))
        named = not set(_NAMES.findall(one.slot.lower())).isdisjoint(edited)
        found.append((not named, _ORDER[pattern], change))
    return min(found)[-1]


def values_of(change: ChangedSlot) -> str:
    """Return the kind of the values that a slot had and has.

    >>> values_of(ChangedSlot("train-leaveat", "12:15", None))
    'time'
    >>> values_of(ChangedSlot("hotel-area", "dontcare", "north"))
    'dontcare'
    >>> values_of(ChangedSlot("hotel-name", None, "worth house"))
    'text'
    """
    values = [value.lower() for value in (change.before, change.after) if value]
    if DONTCARE in values:
        return DONTCARE
    if all(value in ("yes", "no") for value in values):
        return "yes-no"
    if any(map(_TIME.fullmatch, values)):
        return "time"
    if all(map(str.isdecimal, values)):
        return "number"
    return "day" if any(value in _lists().weekdays for value in values) else "text"


def _pattern(change: ChangedSlot, held: Collection[str | None], brought: Collection[str]) -> str:
    if change.after is None:
        return "lost"
    if not set(word_list(change.after)).isdisjoint(brought):
        return "copied"
    if change.after in held:
        return "moved"
    return "filled" if change.before is None else "replaced"


class _Lists(NamedTuple):
    numbers: frozenset[str]
    weekdays: frozenset[str]
    idle: frozenset[str]


@cache
def _lists() -> _Lists:
    lexicon = load_lexicon()
    idle = frozenset(map(canonical, lexicon.stop_words)) | {""}
    return _Lists(frozenset(lexicon.number_words), frozenset(lexicon.weekdays), idle)


def _is_said(change: ChangedSlot, values: str, utterance: str) -> bool:
    words, lists = word_list(utterance), _lists()
    if values in ("time", "number"):
        return any(word in lists.numbers or any(map(str.isdigit, word)) for word in words)
    if values == "day":
        return not lists.weekdays.isdisjoint(words)
    if values != "text":
        return True
    texts = " ".join(value for value in (change.before, change.after) if value)
    return (
        not set(map(canonical, word_list(texts)))
        .difference(lists.idle)
        .isdisjoint(map(canonical, words))
    )
