"""Whole utterances in other words: whether one says what the old one says, as locks can tell.

`relations.guard` looks at words by their place. Where the whole sentence is another one, what
counts is that the values, numbers and names are the same, each as often as before, and that it
denies, agrees and points back as the old one does. What a value is for, no lock can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from pytest_dstfuzz.perturb.draft import Mask
from pytest_dstfuzz.perturb.rates import LONGEST_EDITED
from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.perturb.words import Parts, take_apart
from pytest_dstfuzz.relations.rewrite import Rewrite
from pytest_dstfuzz.relations.rounds.rounds import points_back
from pytest_dstfuzz.relations.scene import Scene

#: Locks whose words have to be there as often as they were, in any spelling.
_COUNTED: Final = ("user", "value")
#: Locks of which a word has to be there where there was one.
_PRESENT: Final = ("dontcare", "affirmation")


def broken_lock(scene: Scene, text: str) -> str:
    """Return the lock that other words for the utterance of a turn break; ``""`` = none.

    Returns:
        ``user``, ``value`` (numbers too): their words are not the same, or not as often there;
        ``name``: something that looks like a name is lost, or is new; ``negation``: it denies more
        often or less often; ``dontcare``, ``affirmation``, ``reference``: there is one and was
        none, or the other way round; ``size``: it has no words, or too many characters.
    """
    if len(text) > LONGEST_EDITED or not (parts := take_apart(text)).words:
        return "size"
    clean = _Locked(scene.parts, scene.guarded)
    new = _Locked(parts, scene.guarded_in(text, parts))
    for reason in _COUNTED:
        if clean.words[reason] != new.words[reason]:
            return reason
    if not (clean.words["name"].keys() <= new.said and new.words["name"].keys() <= clean.said):
        return "name"
    if clean.words["negation"].total() != new.words["negation"].total():
        return "negation"
    for reason in _PRESENT:
        if bool(clean.words[reason]) != bool(new.words[reason]):
            return reason
    user, lexicon = scene.turn.user, scene.lexicon
    return "" if points_back(user, lexicon) == points_back(text, lexicon) else "reference"


def said_otherwise(scene: Scene, texts: Iterable[str], operator: str) -> Iterator[Rewrite]:
    """Yield the turn in the words of each text, as a kind of edit."""
    for text in texts:
        yield scene.rewrite([scene.whole(text, operator)], about="in other words")


class _Locked:
    """The words of a text by their locks, in the form in which they are compared."""

    def __init__(self, parts: Parts, mask: Mask) -> None:
        forms = [spelled(word.lower) for word in parts.words]
        self.said = frozenset(forms)
        self.words: dict[str, Counter[str]] = {
            reason: Counter() for reason in (*_COUNTED, *_PRESENT, "name", "negation")
        }
        for form, reason in zip(forms, mask.reasons, strict=True):
            # `2` may be known as a value, and `two` as a number.
            lock = "value" if reason == "number" else reason
            if lock in self.words:
                self.words[lock][form] += 1
