"""Triage in words: what people type, what the tracker does then, and what to try against it."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.weaknesses.changed import PATTERNS
from pytest_dstfuzz.weaknesses.edited import CLASSES
from pytest_dstfuzz.weaknesses.keys import Key

#: Kind of values -> the slot that has such.
_SLOTS: Final = {
    "yes-no": "a yes or no",
    "dontcare": "a slot for which any value will do",
    "time": "a time",
    "number": "a number",
}
_TRY_FOR_EDIT: Final = {
    "word-out": "train with words such as articles left out",
    "word-twice": "train with words said twice, or take such doubles out of the input",
    "word-in": "train with fillers put in, or take them out of the input",
    "other-word": "train with more ways to say it",
    "short-form": "write short forms out in the input, or train with them",
    "mark": "train with marks and apostrophes left out, or bring the input into one form",
    "look-alike": "bring the input into one form of letters (Unicode NFKD, without accents)",
    "case": "bring the input into one case, or train with others",
    "typo": "train with typing errors in these words, or correct spelling in the input",
}
_TRY_FOR_CHANGE: Final = {
    "copied": (
        "let only known values, or words of a sort that the slot takes, be copied; train with "
        "typing errors in words that are no value"
    ),
    "filled": (
        "train with typing errors in turns that say nothing of the slot; look at how sure the "
        "tracker is when it fills it"
    ),
}
_TRY_ELSEWHERE: Final = (
    "keep what was said earlier unless the turn speaks of it; train with typing errors in turns "
    "that do not"
)


def description(key: Key) -> str:
    """Say what violations of a key have in common.

    >>> description(Key(edit="typo", values="time"))
    'a word is mistyped, and the tracker changes a time'
    >>> description(Key(edit="typo", place="elsewhere", change="lost"))
    'a word is mistyped, and the tracker loses a value that the utterance does not speak of'
    """
    where = f"{CLASSES[key.edit]}, and the tracker" if key.edit else "the tracker"
    if key.values in _SLOTS:
        return f"{where} {'loses' if key.values == DONTCARE else 'changes'} {_SLOTS[key.values]}"
    what = f"{where} {PATTERNS.get(key.change, 'changes its answer')}"
    if key.place:
        return f"{what} that the utterance does not speak of"
    return f"{what} that the utterance speaks of" if key.values else what


def to_try(key: Key) -> str:
    """Return what may help: a guess from the pattern, never a finding about the cause."""
    if key.place:
        return _TRY_ELSEWHERE
    return _TRY_FOR_CHANGE.get(key.change) or _TRY_FOR_EDIT[key.edit]
