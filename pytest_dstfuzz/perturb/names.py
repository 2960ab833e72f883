"""Proper names that no list knows: capitals, ``called``, what the system named.

All functions return indices of words; they err on the side of calling a word a name,
which costs a place to edit and not a false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from pytest_dstfuzz.perturb.words import Parts, take_apart

_SENTENCE_END: Final = re.compile(r"[.!?…。]")
_CALLED: Final = frozenset({"called", "named", "titled", "call"})
#: Words inside names that are not capitalised.
_LINKS: Final = frozenset({"and", "of", "the", "'s", "’s"})
#: Marks that end a name.
_NAME_ENDS: Final = frozenset(",.!?;:")
#: Longest name, in words, that may follow ``called``.
_LONGEST: Final = 6
#: More capitals than this share of the words are a habit of typing, not names.
_TITLE_CASE: Final = 0.5


def called(lowers: Sequence[str], gaps: Sequence[str], closed: Collection[str]) -> list[int]:
    """Return the words right after ``called`` or ``named``, up to one of a closed class."""
    found: list[int] = []
    if _CALLED.isdisjoint(lowers):
        return found
    for index, word in enumerate(lowers):
        if word not in _CALLED:
            continue
        for place in range(index + 1, min(index + 1 + _LONGEST, len(lowers))):
            lower = lowers[place]
            inside = lower in _LINKS and (place == index + 1 or place - 1 in found[-1:])
            if not _NAME_ENDS.isdisjoint(gaps[place]) or (lower in closed and not inside):
                break
            found.append(place)
    return found


def capitalised(
    text: str,
    parts: Parts,
    capitals: Sequence[bool],
    plain: Collection[str],
    is_word: Callable[[str], bool],
) -> set[int]:
    """Return the words written with a capital that grammar does not ask for.

    Words of ``plain`` (lower-cased: stop words, greetings) do not count, except as links
    between two that do (``of``, ``'s``). The word at the start of a sentence counts when it
    is no known word, or when a capital follows.
    """
    words, gaps = parts.words, parts.gaps
    if sum(capitals) > _TITLE_CASE * len(words) and len(words) > 2 and text.isupper():
        return set()
    found: list[int] = []
    for index, word in enumerate(words):
        if not capitals[index]:
            continue
        if not index or _SENTENCE_END.search(gaps[index]):
            follows = index + 1 < len(words) and capitals[index + 1]
            if is_word(word.lower) and (word.lower in plain or not follows):
                continue
        elif word.lower in plain:
            continue
        found.append(index)
    known = set(found)
    for index in found:
        place = index + 1
        while place < len(words) and words[place].lower in _LINKS:
            place += 1
        if place in known:
            known.update(range(index, place))
    return known


def named_by_system(system: str, lowers: Collection[str]) -> set[str]:
    """Return those of some words which the system, in the utterance before, wrote as a name."""
    if not _may_name(system, lowers):
        return set()
    parts = take_apart(system)
    found = {
        word.lower
        for word, gap in zip(parts.words[1:], parts.gaps[1:], strict=False)
        if word.text[0].isupper() and not _SENTENCE_END.search(gap)
    }
    return found.intersection(lowers)


def _may_name(system: str, lowers: Collection[str]) -> bool:
    """Say whether a look at the words of the system is worth it: it rarely is."""
    if not system.isascii():
        return True  # Offsets need not be the same in lower case.
    spoken = system.lower()
    for lower in lowers:
        at = spoken.find(lower)
        while at >= 0:
            if system[at].isupper():
                return True
            at = spoken.find(lower, at + 1)
    return False
