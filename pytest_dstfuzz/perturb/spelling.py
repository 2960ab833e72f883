"""Where in a dialogue a value is said, however it is spelled: as words, digits or a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.dates import CLOCK_TIME, hour_of_day
from pytest_dstfuzz.dialogue.number_words import digits_up_to
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.value_index import canonical
from pytest_dstfuzz.perturb.words import word_list

_HOUR: Final = re.compile(r"(\d{1,2})(am|pm)")


class Mentions:
    """What somebody said, in a form in which values are found in it."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Take texts apart, in their order."""
        words = [spelled(word) for text in texts for word in word_list(text)]
        self._words = [word for word in words if word not in _idle()]

    def says(self, value: str | None) -> bool:
        """Say whether a value stands there, articles and the like left aside.

        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("08:15")
        True
        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("night club")
        True
        >>> Mentions(["a table for four at 8:15 at the nightclub"]).says("5")
        False
        """
        wanted = "".join(content(value or ""))
        # No more words than it has letters can make it up.
        return bool(wanted) and any(
            wanted.startswith(word) and _begins(self._words[place : place + len(wanted)], wanted)
            for place, word in enumerate(self._words)
        )


@lru_cache(maxsize=1 << 16)
def spelled(word: str) -> str:
    """Return the form in which a lower-cased word is compared: digits for times and numbers.

    >>> [spelled(word) for word in ("8:15", "7pm", "two", "hotels")]
    ['08:15', '19:00', '2', 'hotel']
    """
    if clock := CLOCK_TIME.fullmatch(word):
        return f"{int(clock[1]):02}:{clock[2]}"
    if hour := _HOUR.fullmatch(word):
        return f"{hour_of_day(int(hour[1]), hour[2]):02}:00"
    return _digits().get(word) or canonical(word)


def content(value: str) -> list[str]:
    """Return the words of a value that tell it from others."""
    return list(_content(value))


@lru_cache(maxsize=1 << 14)
def _content(value: str) -> tuple[str, ...]:
    return tuple([word for word in map(spelled, word_list(value)) if word not in _idle()])


def _begins(words: Sequence[str], wanted: str) -> bool:
    found = ""
    for word in words:
        found += word
        if len(found) >= len(wanted):
            break
    return found == wanted


@cache
def _idle() -> frozenset[str]:
    return frozenset(map(canonical, load_lexicon().stop_words)) | {""}


@cache
def _digits() -> dict[str, str]:
    # `one` mostly points at something: `the one in the north`.
    pointing = load_lexicon().references
    return {word: n for word, n in digits_up_to(12).items() if word not in pointing}
