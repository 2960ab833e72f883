"""Equality of texts, after what nobody sees."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.dialogue.dialogues import Context


class _Equality(Comparison):
    """Answers are compared as they are: how belief states have always been."""

    name = "equal"
    exact = True

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether both texts are one."""
        del path, asked
        return Compared(before == found)


class Exact(Comparison):
    """Letter by letter, but for blanks and for Unicode's several spellings of one letter."""

    name = "exact"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether both texts are one once they are brought to one form."""
        del path, asked
        return Compared(bare(before) == bare(found))


#: Equality itself: the comparison of states. With it nothing is folded.
EXACT: Final[Comparison] = _Equality()


@lru_cache(maxsize=1 << 14)
def bare(text: str) -> str:
    r"""Return a text in the form in which it is compared: NFC, single blanks, none at the ends.

    >>> bare("  It  is\n open. ")
    'It is open.'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())
