"""Where a text says a value, by position, and in which spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from pytest_dstfuzz.dialogue.dates import CLOCK, hour_of_day
from pytest_dstfuzz.perturb.spelling import content, spelled
from pytest_dstfuzz.perturb.words import Parts, take_apart

#: ``exact``: as the state writes it, but for capitals. ``number``: in words instead of digits, or
#: the other way. ``time``: a clock time in another style. ``other``: plural, joined, with an
#: apostrophe, or in another spelling.
Spelling = Literal["exact", "number", "time", "other"]

_CLOCK: Final = re.compile(rf"(?<![\d:.]){CLOCK}(?![\d:a-z])", re.IGNORECASE)
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class ValueMention(NamedTuple):
    """``text[start:end]`` says a value: words ``first`` to ``last``, both included."""

    start: int
    end: int
    first: int
    last: int
    spelled: Spelling


@lru_cache(maxsize=1 << 16)
def _wanted(value: str) -> str:
    """Return the letters of a value that a text must have one after the other."""
    return "".join(content(value))


class SpokenText(NamedTuple):
    """A text, its words, and the forms in which these are compared with values."""

    text: str
    parts: Parts
    forms: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> SpokenText:
        """Take a text apart."""
        parts = take_apart(text)
        return cls(text, parts, tuple([spelled(word.lower) for word in parts.words]))

    def mentions(self, value: str) -> tuple[ValueMention, ...]:
        """Return where the text says ``value``, in order; stop words between are passed over.

        >>> [tuple(m) for m in SpokenText.of("two nights at the Night Club").mentions("nightclub")]
        [(18, 28, 4, 5, 'other')]
        >>> [m.spelled for m in SpokenText.of("two at 5:15 pm, or 5.15").mentions("17:15")]
        ['time']
        """
        if _TIME.fullmatch(value):
            return tuple(self._times(value))
        wanted = _wanted(value)
        if not wanted:
            return ()
        found: list[ValueMention] = []
        for first, form in enumerate(self.forms):
            if form[:1] != wanted[0] or (found and first <= found[-1].last):
                continue
            if wanted.startswith(form):
                last = self._end(first, wanted)
                if last is not None:
                    found.append(self._mention(first, last, value))
        return tuple(found)

    def _end(self, first: int, wanted: str) -> int | None:
        """Return the last word of a mention that begins with the word ``first``."""
        said = ""
        for place in range(first, len(self.forms)):
            form = self.forms[place]
            if wanted.startswith(said + form):
                said += form
                if len(said) == len(wanted):
                    return place
            elif content(self.parts.words[place].lower):
                return None
        return None

    def _mention(self, first: int, last: int, value: str) -> ValueMention:
        words = self.parts.words
        if self.text[words[first].start : words[last].end].lower() != value:
            while first and words[first - 1].lower == "the" and value.startswith("the "):
                first -= 1
        start, end = words[first].start, words[last].end
        surface = self.text[start:end].lower()
        spelling: Spelling = "exact" if surface == value else "other"
        if spelling == "other" and value.isdigit():
            spelling = "number"
        return ValueMention(start, end, first, last, spelling)

    def _times(self, value: str) -> Iterator[ValueMention]:
        """Yield the clock times that are ``value``, written ``HH:MM``."""
        hour, _, minute = value.partition(":")
        words = self.parts.words
        for match in _CLOCK.finditer(self.text):
            half = (match[5] or "")[:1].lower()
            if not match[3] and not half:
                continue
            said = hour_of_day(int(match[1]), half) if half else int(match[1])
            if said != int(hour) or (match[3] or "00") != minute:
                continue
            end = match.end(5) if half else match.end(3)
            inside = [i for i, word in enumerate(words) if match.start() <= word.start < end]
            if inside:
                exact = self.text[match.start() : end] == value
                place = (match.start(), end, inside[0], inside[-1])
                yield ValueMention(*place, "exact" if exact else "time")
