"""Reads sentences for the three bots of the year, as small teams write it: one method per step.

A build overrides one of these steps, as one commit would.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Sequence


class Reader:
    """Reads words whatever their case, accents and punctuation, with one or two wrong letters."""

    #: How alike a word has to be, from 0 to 1, and the letters of the shortest keyword so read.
    cutoff: float = 0.8
    shortest: int = 5

    def normalise(self, text: str) -> str:
        """Return ``text`` in lower case, without accents, with plain quotes."""
        text = text.replace("’", "'")
        decomposed = unicodedata.normalize("NFKD", text)
        return "".join(c for c in decomposed if not unicodedata.combining(c)).lower()

    def words(self, text: str) -> list[str]:
        """Return the words of ``text``, apostrophes left out."""
        return re.findall(r"[a-z0-9:]+", self.normalise(text).replace("'", ""))

    def contains(self, keyword: str, words: Sequence[str]) -> bool:
        """Return whether ``words`` contain ``keyword``, or a word close to it."""
        if keyword in words:
            return True
        return len(keyword) >= self.shortest and self.close(keyword, words)

    def close(self, keyword: str, words: Sequence[str]) -> bool:
        """Return whether one of ``words`` is ``keyword`` with a wrong letter or two."""
        return bool(difflib.get_close_matches(keyword, words, n=1, cutoff=self.cutoff))

    def first(self, keywords: Sequence[str], words: Sequence[str]) -> str | None:
        """Return the first of ``keywords`` that ``words`` contain."""
        return next((keyword for keyword in keywords if self.contains(keyword, words)), None)
