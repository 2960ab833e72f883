"""Proper names that no list knows: capitals, quotes, ``called``, what the system named.

All functions return indices of words; they err on the side of calling a word a name,
which costs a place to edit and not a false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from pytest_dstfuzz.perturb.words import Word, split_words

_QUOTED: Final = re.compile(r"[\"“«]([^\"“”«»]{1,80})[\"”»]|``(.{1,80}?)''")
_SENTENCE_END: Final = re.compile(r"[.!?…。]")
_CALLED: Final = frozenset({"called", "named", "titled", "call"})
#: Words inside names that are not capitalised.
_LINKS: Final = frozenset({"and", "of", "the", "'s", "’s"})
#: Longest name, in words, that may follow ``called``.
_LONGEST: Final = 6
#: More capitals than this share of the words are a habit of typing, not names.
_TITLE_CASE: Final = 0.5


def quoted(text: str, words: Sequence[Word]) -> list[int]:
    """Return the words inside double quotes."""
    if '"' not in text and "“" not in text and "``" not in text and "«" not in text:
        return []
    spans = [match.span() for match in _QUOTED.finditer(text)]
    return [
        index
        for index, word in enumerate(words)
        if any(start <= word.start and word.end <= end for start, end in spans)
    ]


def called(text: str, words: Sequence[Word], closed: Collection[str]) -> list[int]:
    """Return the words right after ``called`` or ``named``, up to one of a closed class.

    Args:
        text: the utterance.
        words: its words.
        closed: lower-cased words that end a name.
    """
    found: list[int] = []
    for index, word in enumerate(words):
        if word.lower not in _CALLED:
            continue
        for place in range(index + 1, min(index + 1 + _LONGEST, len(words))):
            between = text[words[place - 1].end : words[place].start]
            lower = words[place].lower
            inside = lower in _LINKS and (place == index + 1 or place - 1 in found[-1:])
            if _ends_name(between) or (lower in closed and not inside):
                break
            found.append(place)
    return found


def capitalised(
    text: str, words: Sequence[Word], plain: Collection[str], is_word: Callable[[str], bool]
) -> list[int]:
    """Return the words written with a capital that grammar does not ask for.

    Words of ``plain`` (lower-cased: stop words, greetings) do not count, except as links
    between two that do (``of``, ``'s``). The word at the start of a sentence counts when it
    is no known word, or when a capital follows.
    """
    capitals = [
        word.text[0].isupper() and word.lower.partition("'")[0] not in {"i", ""} for word in words
    ]
    if sum(capitals) > _TITLE_CASE * len(words) and len(words) > 2 and text.isupper():
        return []
    found: list[int] = []
    for index, word in enumerate(words):
        if not capitals[index]:
            continue
        between = text[words[index - 1].end : word.start] if index else "."
        if _SENTENCE_END.search(between) or not text[: word.start].strip():
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
    return sorted(known)


def named_by_system(system: str, words: Sequence[Word], stop_words: Collection[str]) -> list[int]:
    """Return the words which the system, in the utterance before, wrote as a name."""
    if not system:
        return []
    spoken = split_words(system)
    names = {
        word.lower
        for index, word in enumerate(spoken)
        if word.text[0].isupper()
        and index
        and not _SENTENCE_END.search(system[spoken[index - 1].end : word.start])
    } - set(stop_words)
    return [index for index, word in enumerate(words) if word.lower in names]


def _ends_name(between: str) -> bool:
    return any(character in ",.!?;:" for character in between)
