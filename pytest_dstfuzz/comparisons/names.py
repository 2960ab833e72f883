"""The comparisons of names and of cited ids: both texts name the same."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.comparisons.polarity import stem
from pytest_dstfuzz.dialogue.dates import MONTHS, WEEKDAYS
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Word, listed, take_apart

#: What is a cited id where nothing else is said: ``[3]``, ``#17``, an address.
CITED: Final = r"\[\d+\]|#\d+|https?://[^\s<>()\[\]]*[^\s<>()\[\].,;:!?\"']"
_QUOTED: Final = re.compile(r"[\"“«]([^\"“”«»\n]{2,80})[\"”»]")
_SENTENCE_END: Final = re.compile(r"[.!?…:\n•*-]\s*[\"“«'(]?\s*$")
#: Characters before a word in which the end of a sentence is looked for.
_LOOKED_BACK: Final = 40
_LINKS: Final = listed("of the and de la le du van von der 's ’s & al el at on in")
#: Words with a capital that name nothing: they, too, may stand within a name.
_PLAIN: Final = listed(
    "i i'm i'll i've i'd ok okay hi hello dear yes no thanks mr mrs ms dr sir madam am pm a.m p.m"
).union(WEEKDAYS, MONTHS, (day[:3] for day in WEEKDAYS))
#: More capitals than this share of the words are a habit of writing, not names.
_HABIT: Final = 0.6


class SameNames(Comparison):
    """Both texts name the same people, places and titles, in whatever order.

    A name is a run of words with a capital that not only begin a sentence, or what stands in
    quotes. It may be said in full or by its last or first word.
    """

    name = "names"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether each name of either text is in the other."""
        del path, asked
        return _compared(before, found)


class SameIds(Comparison):
    """Both texts cite the same ids: all matches of a regular expression, as a set."""

    def __init__(self, pattern: str | None = None) -> None:
        self._pattern = pattern or CITED
        self._compiled = re.compile(self._pattern)

    name = "ids"

    @property
    def identity(self) -> str:
        """The name, and the expression where it is not the shipped one."""
        return self.name if self._pattern == CITED else f"{self.name}/{self._pattern}/"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether the ids are the same."""
        del path, asked
        cited = [
            dict.fromkeys(match[0].strip() for match in self._compiled.finditer(text))
            for text in (before, found)
        ]
        if set(cited[0]) == set(cited[1]):
            return Compared(same=True)
        return Compared(same=False, why=" / ".join("".join(ids) or "-" for ids in cited))


@lru_cache(maxsize=1 << 14)
def _compared(before: str, found: str) -> Compared:
    left, right = unnamed(before, found)
    if not left and not right:
        return Compared(same=True)
    return Compared(same=False, why=" / ".join(", ".join(side) or "-" for side in (left, right)))


def unnamed(before: str, found: str) -> tuple[list[str], list[str]]:
    """Return of either text the names that the other one does not say, in reading order.

    >>> unnamed("Ada curated it.", "It was curated by Grace Hopper.")
    (['Ada'], ['Grace Hopper'])
    """
    first, second = names(before), names(found)
    left = [" ".join(name) for name in first if not _said(name, second, found)]
    right = [" ".join(name) for name in second if not _said(name, first, before)]
    return left, right


def _said(name: tuple[str, ...], others: tuple[tuple[str, ...], ...], text: str) -> bool:
    """Say whether a name is another one, in full or in part, or stands in a text without capitals.

    Two people may have one first name: it stands for the whole only by itself.

    The first word of a text has a capital whatever it is: there it counts as a name of one that
    the other text names.
    """
    mine = _key(name)
    for other in others:
        theirs = _key(other)
        first = mine[0] == theirs[0] and 1 in (len(mine), len(theirs))
        if first or mine[-1] in theirs or theirs[-1] in mine:
            return True
    words = {stem(word.lower) for word in take_apart(text).words}
    return all(part in words for part in mine)


def _key(name: tuple[str, ...]) -> list[str]:
    parts = [stem(word.lower().replace("’", "'")) for word in name if word.lower() not in _LINKS]
    return parts or [name[-1].lower()]


@lru_cache(maxsize=1 << 14)
def names(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of a text, each as its words, in reading order, each once.

    >>> names("The next train to Ely leaves from King's Cross. Read “the long way”.")
    (('Ely',), ("King's", 'Cross'), ('the', 'long', 'way'))
    """
    parts = take_apart(text)
    quoted = [match.span(1) for match in _QUOTED.finditer(text)]
    found: dict[int, tuple[str, ...]] = {}
    for start, end in quoted:
        words = tuple(word.text for word in parts.words if start <= word.start and word.end <= end)
        if words:
            found[start] = words
    free = [w for w in parts.words if not any(start <= w.start < end for start, end in quoted)]
    capitals = [word for word in free if word.text[:1].isupper()]
    if len(free) < 3 or len(capitals) <= _HABIT * len(free):
        for run in _runs(text, free):
            found[run[0].start] = tuple(word.text for word in run)
    return tuple(dict.fromkeys(found[place] for place in sorted(found)))


def _runs(text: str, words: list[Word]) -> list[list[Word]]:
    """Return runs of words with a capital, links within them too."""
    runs: list[list[Word]] = []
    run: list[Word] = []
    links: list[Word] = []
    for word in words:
        last = (links or run)[-1] if run else None
        broken = last is not None and text[last.end : word.start].strip(" ’'") != ""
        if broken:
            runs, run, links = [*runs, run], [], []
        if _may_name(text, word, inside=bool(run)):
            run, links = [*run, *links, word], []
        elif run and word.lower in _LINKS:
            links.append(word)
        elif run:
            runs, run, links = [*runs, run], [], []
    return [*runs, run] if run else runs


def _may_name(text: str, word: Word, *, inside: bool) -> bool:
    bare = word.lower.replace("’", "'")
    if not word.text[:1].isupper() or bare in _PLAIN:
        return False
    before = text[: word.start]
    if inside or (before.strip(" \"“«'(") and not _SENTENCE_END.search(before[-_LOOKED_BACK:])):
        return inside or bare not in load_lexicon().stop_words
    # At the beginning of a sentence only what is no word of the language.
    return len(bare) > 1 and not load_lexicon().is_word(bare.split("'")[0])
