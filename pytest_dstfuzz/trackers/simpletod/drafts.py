"""Guesses of what a model will write, which it only has to confirm.

A variant of a turn mostly gets the belief of the clean turn, and a turn keeps most of the belief
of the turn before. A model reads a guess of many tokens as quickly as it writes one, and what it
confirms is what it would have written (speculative decoding, arXiv 2211.17192; that a guess
may be copied from a text, arXiv 2304.04487).
"""

from __future__ import annotations

from collections.abc import Sequence

#: Tokens of a guess that is not the first: rows that are read together wait for the longest.
_LONGEST_GUESS = 12
#: Tokens before a place that are compared to find it in another text.
_LONGEST_MATCH = 3


class TokenDraft:
    """Guesses one row of tokens from another one that is probably much like it.

    Args:
        reference: the other row; empty where there is none.
    """

    def __init__(self, reference: Sequence[int]) -> None:
        self._reference = list(reference)
        #: Place in the reference of the token that is to be written next.
        self._place = 0
        self._length = len(self._reference)

    def guess(self) -> list[int]:
        """Return what is probably written next; it may be nothing."""
        return self._reference[self._place : self._place + self._length]

    def learn(self, written: Sequence[int], confirmed: int) -> None:
        """Go on after a guess.

        Args:
            written: all tokens so far; the last one was not guessed.
            confirmed: tokens of the last guess that were right.
        """
        # Where one guess went wrong, a long one is probably read in vain.
        self._length = min(max(1, 2 * confirmed), _LONGEST_GUESS)
        self._place = self._find(written, self._place + confirmed)

    def _find(self, written: Sequence[int], place: int) -> int:
        """Return where the reference goes on after the end of ``written``.

        ``place`` is that of the token that was written instead of the guessed one. The longest
        match counts, then the nearest; without any, one token stands for another.
        """
        for size in range(min(_LONGEST_MATCH, len(written)), 0, -1):
            end = list(written[-size:])
            starts = range(len(self._reference) - size + 1)
            found = [at + size for at in starts if self._reference[at : at + size] == end]
            if found:
                return min(found, key=lambda after: (abs(after - place - 1), after))
        return place + 1
