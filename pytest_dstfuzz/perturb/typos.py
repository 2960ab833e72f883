"""Typing errors that a word can take without being read as another one.

In strict a typing error never makes another word, nor anything that reads like a number or a
negation (``there`` -> ``thre``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.perturb.words import one_letter_away
from pytest_dstfuzz.transformations import Typo

#: What a typing error leaves inside a word, and at its end. No question mark: it
#: would turn a statement round. No dash at the end: it would make a number negative.
SEPARATORS: Final = (" ", "-", ".", ",")
ENDINGS: Final = (",", ".", ";", "!")
_APOSTROPHE: Final = re.compile("['’]")
_PARTS: Final = re.compile(r"[ \-.,]")
#: Words shorter than this are not dangerous: too much would be near them.
_SHORTEST: Final = 4
#: Longer ones are no words (addresses, tokens), and judging each typing error would take long.
_LONGEST: Final = 40
#: Letters that stand for words in messages (`u`, `r`, `n`, `2` ...), or are words.
_TEXTING: Final = frozenset("abcdefgikmnopruxy")
#: Letters of a word for each typing error that it may take.
_LETTERS_A_TYPO: Final = 4


def typo_limit(length: int) -> int:
    """Return how many typing errors a word of so many letters takes in strict."""
    return max(1, length // _LETTERS_A_TYPO)


def keeps_letters(old: str, new: str) -> bool:
    """Say whether the parts of one letter that a word has are still there; case does not matter.

    >>> keeps_letters("I", "j"), keeps_letters("I'm", "j'm"), keeps_letters("I'm", "Im")
    (False, False, True)
    """
    parts, others = (_APOSTROPHE.split(text.lower()) for text in (old, new))
    if len(parts) != len(others):
        return len(old) > 1
    return all(
        len(part) != 1 or part == other or (part in other and other.isalpha())
        for part, other in zip(parts, others, strict=True)
    )


def _other_case(old: str, new: str) -> bool:
    """Say whether letters are typed in another case, which leaves a word as it is."""
    return bool(new) and new.lower() == old.lower()


@lru_cache(maxsize=8)
def _near(words: frozenset[str]) -> frozenset[str]:
    """Return the longer ones of some words, and what is a typing error away from one of them.

    The words are those of a lexicon, and a run builds several tables of the same one.
    """
    long = [word for word in words if len(word) >= _SHORTEST]
    return frozenset(near for word in long for near in (word, *one_letter_away(word)))


class TypoTable:
    """Judges whether a misspelling is one, and nothing else.

    Args:
        is_word: whether a text is a word or a value of its own, which no typing error may make;
            ``None`` = anything may come out (profile ``edit-rate``).
        dangerous: lower-cased words; results within one typing error of one of them are refused
            as well.
    """

    def __init__(
        self, is_word: Callable[[str], bool] | None = None, dangerous: Iterable[str] = ()
    ) -> None:
        self._is_word = is_word
        self._dangerous = _near(frozenset(dangerous))
        self.harmless = lru_cache(maxsize=1 << 16)(self._harmless)

    def kept(self, word: str, typos: Iterable[Typo]) -> tuple[Typo, ...]:
        """Return what of some typing errors ``word`` (as typed) can take, in their order."""
        if self._is_word is None:
            return tuple(typo for typo in typos if typo.choices)
        if len(word) > _LONGEST:
            return ()
        kept = []
        for start, end, choices in typos:
            head, tail = word[:start], word[end:]
            good: tuple[str, ...]
            if start == len(word) and choices == ENDINGS:
                good = choices  # A mark after a whole word leaves it as it is.
            else:
                good = tuple(new for new in choices if self._reads_as(word, head + new + tail))
            old = word[start:end]
            good = good or tuple(new for new in choices if _other_case(old, new))
            if good:
                kept.append(Typo(start, end, good))
        return tuple(kept)

    def takes(self, word: str, typo: Typo) -> bool:
        """Say whether `kept` keeps a typing error that has one choice."""
        start, end, (after,) = typo
        if self._is_word is None:
            return True
        if len(word) > _LONGEST:
            return False
        typed = word[:start] + after + word[end:]
        return self._reads_as(word, typed) or _other_case(word[start:end], after)

    def _reads_as(self, word: str, typed: str) -> bool:
        """Say whether what was typed for a word can be read as nothing else."""
        # Few of these texts come again: to remember each would crowd out those that do.
        if not self._harmless(typed):
            return False
        parted = len(word) == 1 or "'" in word or "’" in word
        return not parted or keeps_letters(word, typed)

    def _harmless(self, text: str) -> bool:
        """Say whether ``text``, typed for another word, can be read as nothing else.

        A text with a separator inside is parted there, and each part is judged.
        """
        if self._is_word is None:
            return True
        lower = text.lower()
        if lower.isalpha():  # One piece, like nearly all of them.
            return self._unreadable(lower)
        return all(self._unreadable(piece) for piece in _PARTS.split(lower))

    def _unreadable(self, piece: str) -> bool:
        if len(piece) < 2:
            return bool(piece) and piece not in _TEXTING
        return not (self._is_word and self._is_word(piece)) and piece not in self._dangerous
