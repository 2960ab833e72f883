"""The comparison of entities: neither text names another person, place or address instead."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.comparisons.names import unnamed
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.printable import listed

#: Web addresses, e-mail addresses and paths; a full stop at the end is none of theirs.
_ADDRESS: Final = re.compile(
    r"(?:https?://|www\.)[^\s<>()\[\]\"']*[^\s<>()\[\]\"'.,;:!?]"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w/])/[\w-]+(?:/[\w-]+)*",
    re.IGNORECASE,
)
#: The letter that a thing is called by.
_LABEL: Final = re.compile(
    r"\b(?i:platform|gate|zone|option|terminal|hall|room|line|block|section|group|class|category"
    r"|type|level|row|wing|building|door|bay|ward|lane|plan|tariff|stand|entrance|exit|pier|team)"
    r"\s+([A-Z])(?![\w'’-])"
)
#: Of each side a report names as many.
_SHOWN: Final = 3


class SameEntities(Comparison):
    """Neither text names something else where the other one names a thing.

    Names are people, places and titles, see `names`, and letters such as that of `platform B`;
    addresses are those of the web, of e-mail and paths. A text that only names less says nothing
    else: bots say ``it`` for a name.
    """

    name = "entities"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether none of the entities of one text stands in the place of another one."""
        del path, asked
        return _compared(before, found)


@lru_cache(maxsize=1 << 14)
def _compared(before: str, found: str) -> Compared:
    told = (
        _unsaid(_ADDRESS, before, found),
        unnamed(before, found),
        _unsaid(_LABEL, before, found),
    )
    for left, right in told:
        if left and right:
            return Compared(same=False, why=f"{listed(left, _SHOWN)} / {listed(right, _SHOWN)}")
    return Compared(same=True)


def _unsaid(pattern: re.Pattern[str], before: str, found: str) -> tuple[list[str], list[str]]:
    """Return what a pattern finds in either text and not in the other one."""
    first, second = (
        dict.fromkeys(match[pattern.groups].lower() for match in pattern.finditer(text))
        for text in (before, found)
    )
    return [one for one in first if one not in second], [one for one in second if one not in first]
