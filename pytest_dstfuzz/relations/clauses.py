"""The clause in which words stand, and what in it turns or questions what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pytest_dstfuzz.perturb.words import Parts, listed

_SENTENCE_END: Final = re.compile(r"[!?\n]|\.(?=\s|$)")
_CLAUSE_END: Final = re.compile(r"[,;:]|\s[-–—]+\s")
_JOINTS: Final = listed("and but then so because since")
_SUBJECTS: Final = listed("i i'm i'd i'll we we'd we'll it it's he she they that this there you")
#: Verbs that begin a request: what is before their `and` is another clause.
_REQUESTS: Final = listed("please book find make can could would need want leave arrive reserve")
#: Words that leave open or compare what stands beside them; negations are known to the locks.
DOUBTS: Final = listed(
    """or either neither nor whether instead rather than unless except besides versus vs
    without exclude excluding other another different change changed switch wrong sorry oops
    actually correction meant mean mistake maybe perhaps possibly prefer preferably ideally
    otherwise alternatively alternative another else isn't aren't"""
)


def sentence_of(parts: Parts, index: int) -> range:
    """Return the indices of the words of the sentence in which a word stands."""
    return _around(parts, index, lambda gap, _: bool(_SENTENCE_END.search(gap)))


def clause_of(parts: Parts, index: int) -> range:
    """Return the indices of the words of the clause in which a word stands.

    A clause ends at punctuation, and before `and`, `but` or `then` with a subject or a request
    behind it.
    """
    return _around(parts, index, _ends_clause(parts))


def _ends_clause(parts: Parts) -> Callable[[str, int], bool]:
    words = parts.words

    def ends(gap: str, place: int) -> bool:
        if _SENTENCE_END.search(gap) or _CLAUSE_END.search(gap):
            return True
        if words[place].lower not in _JOINTS or place + 1 == len(words):
            return False
        following = words[place + 1].lower.replace("’", "'")
        return following in _SUBJECTS or following in _REQUESTS

    return ends


def _around(parts: Parts, index: int, ends: Callable[[str, int], bool]) -> range:
    first, last = index, index
    while first and not ends(parts.gaps[first], first):
        first -= 1
    while last + 1 < len(parts.words) and not ends(parts.gaps[last + 1], last + 1):
        last += 1
    return range(first, last + 1)
