"""Typing errors that a word can take: where in the word, and what is typed there.

Tables depend on the word alone, so they are made once for each different word. In strict
a typing error never makes another word, nor anything that reads like a number or a
negation (``there`` -> ``thre``).
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

#: What a slip of the finger leaves inside a word, and at its end. No question mark: it
#: would turn a statement round. No dash at the end: it would make a number negative.
SEPARATORS: Final = (" ", "-", ".", ",")
ENDINGS: Final = (",", ".", ";", "!")
#: The same for the profile ``edit-rate``, inside and at both ends.
ANY_PUNCTUATION: Final = (" ", "-", ".", ",", ";", ":", "!", "?", "'", '"', "_", "/")
_PARTS: Final = re.compile(r"[ \-.,]")
#: Words shorter than this lose no letter and swap none in strict.
_SHORTEST: Final = 4
#: Longer ones are no words (addresses, tokens), and judging each slip would take long.
_LONGEST: Final = 40
#: Letters that stand for words in messages (`u`, `r`, `n`, `2` ...), or are words.
_TEXTING: Final = frozenset("abcdefgikmnopruxy")


class Typo(NamedTuple):
    """One place in a word: ``word[start:end]`` becomes one of ``choices``."""

    start: int
    end: int
    choices: tuple[str, ...]


class TypoTable:
    """Makes the tables of typing errors, and judges whether a misspelling is one."""

    def __init__(
        self,
        keyboard: Mapping[str, tuple[str, ...]],
        look_alikes: Mapping[str, tuple[str, ...]],
        *,
        is_word: Callable[[str], bool] | None = None,
        dangerous: Iterable[str] = (),
    ) -> None:
        """Build for one profile.

        Args:
            keyboard: letter or digit -> its neighbours.
            look_alikes: letter -> characters that look like it.
            is_word: whether a text is a word or a value of its own, which no typing error
                may make; ``None`` = anything may come out (profile ``edit-rate``).
            dangerous: lower-cased words; results within one typing error of one of them
                are refused as well.
        """
        self._keyboard = keyboard
        self._look_alikes = look_alikes
        self._is_word = is_word
        self._dangerous = frozenset(
            near for word in dangerous if len(word) > _SHORTEST - 1 for near in _neighbourhood(word)
        )
        self.strict = is_word is not None
        self._makers: dict[str, Callable[[str], list[Typo]]] = {
            "repeat": _repeats,
            "keyboard_insert": self._keyboard_inserts,
            "punctuation": self._punctuation,
            "look_alike": self._look_alike,
            "keyboard": self._keyboard_replaces,
            "swap": self._swaps,
            "any": self._drops,
        }
        self.slips = lru_cache(maxsize=1 << 16)(self._slips)
        self.harmless = lru_cache(maxsize=1 << 16)(self._harmless)

    def _slips(self, kind: str, word: str) -> tuple[Typo, ...]:
        """Return the slips of one kind that ``word`` (as typed) can take, in reading order."""
        if self.strict and len(word) > _LONGEST:
            return ()
        slips = self._makers[kind](word)
        if not self.strict:
            return tuple(slip for slip in slips if slip.choices)
        kept = []
        # Few of these texts come again: to remember each would crowd out those that do.
        harmless = self._harmless
        for start, end, choices in slips:
            head, tail = word[:start], word[end:]
            at_end = kind == "punctuation" and not tail
            good = (
                choices if at_end else tuple(new for new in choices if harmless(head + new + tail))
            )
            if good:
                kept.append(Typo(start, end, good))
        return tuple(kept)

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

    def _keyboard_inserts(self, word: str) -> list[Typo]:
        return [
            Typo(place + 1, place + 1, self._near(character))
            for place, character in enumerate(word)
        ]

    def _keyboard_replaces(self, word: str) -> list[Typo]:
        return [Typo(place, place + 1, self._near(c)) for place, c in enumerate(word)]

    def _near(self, character: str) -> tuple[str, ...]:
        found = self._keyboard.get(character.lower(), ())
        if self.strict:  # A digit in the row above would be a number.
            found = tuple(key for key in found if not key.isdigit())
        return tuple(key.upper() for key in found) if character.isupper() else found

    def _look_alike(self, word: str) -> list[Typo]:
        return [
            Typo(place, place + 1, self._look_alikes.get(character, ()))
            for place, character in enumerate(word)
        ]

    def _punctuation(self, word: str) -> list[Typo]:
        if not self.strict:
            return [Typo(place, place, ANY_PUNCTUATION) for place in range(len(word) + 1)]
        inside = [Typo(place, place, SEPARATORS) for place in range(2, len(word) - 1)]
        return [*inside, Typo(len(word), len(word), ENDINGS)]

    def _swaps(self, word: str) -> list[Typo]:
        if self.strict and len(word) < _SHORTEST:
            return []
        return [
            Typo(place, place + 2, (word[place + 1] + word[place],))
            for place in range(len(word) - 1)
            if word[place] != word[place + 1]
        ]

    def _drops(self, word: str) -> list[Typo]:
        if self.strict and len(word) < _SHORTEST:
            return []
        return [Typo(place, place + 1, ("",)) for place in range(len(word))]


def _repeats(word: str) -> list[Typo]:
    return [Typo(place + 1, place + 1, (character,)) for place, character in enumerate(word)]


def _neighbourhood(word: str) -> set[str]:
    """Return everything within one typing error of ``word``, itself included."""
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    drops = {head + tail[1:] for head, tail in parts if tail}
    swaps = {head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1}
    changes = {h + c + t[1:] for h, t in parts if t for c in string.ascii_lowercase}
    inserts = {head + c + tail for head, tail in parts for c in string.ascii_lowercase}
    return drops | swaps | changes | inserts | {word}
