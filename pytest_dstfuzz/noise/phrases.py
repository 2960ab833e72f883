"""Slips of whole words and of what stands between them: casual writing, and speech."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.tables import Tables
from pytest_dstfuzz.perturb.words import Parts, Word, match_case, take_apart

#: What is looked up where the word does not matter.
ANY_WORD: Final = ""
#: Kinds that write a word in another way, whatever stands beside it.
RESPELLED: Final = ("misspelling", "apostrophe", "texting", "homophone")
_I: Final = frozenset({"I", "I'm", "I'd", "I'll", "I've"})


class Place(NamedTuple):
    """Some words of an utterance that take one slip together, with the gap before them."""

    utterance: str
    parts: Parts
    #: Indices of its first word and of the last one.
    first: int
    last: int
    #: Whether nothing but marks comes after it.
    ends: bool

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the place."""
        return self.parts.words[self.first : self.last + 1]


class WordSlip(NamedTuple):
    """``utterance[start:end]`` becomes ``after``; ``value`` is before its kind is weighed."""

    start: int
    end: int
    after: str
    value: float


def places(utterance: str, tables: Tables) -> Iterator[Place]:
    """Yield the places of an utterance in reading order; each word is in one of them."""
    parts = take_apart(utterance)
    phrases = tables.words.get("contraction", {})
    words = parts.words
    first = 0
    while first < len(words):
        last = first
        if last + 1 < len(words) and parts.gaps[last + 1] == " ":
            both = f"{words[last].text} {words[last + 1].text}"
            last += apostrophe_form(both) in phrases
        yield Place(utterance, parts, first, last, last == len(words) - 1)
        first = last + 1


def word_slips(kind: str, place: Place, tables: Tables) -> Iterator[WordSlip]:
    """Yield the slips of one kind at a place, each with the value that the tables give it."""
    make = _MAKERS.get(kind, _respelled)
    yield from make(place, tables, tables.words.get(kind, {}))


def apostrophe_form(word: str) -> str:
    """Return a word in lower case with the apostrophe that the tables have."""
    return word.lower().replace("’", "'")


def pair_features(left: str, right: str) -> tuple[str, ...]:
    """Return the features of a missing blank, from coarse to fine."""
    return (f"left {left}", f"right {right}", f"pair {left} {right}")


Forms = Mapping[str, Mapping[str, float]]


def respelled(word: str, forms: Forms) -> Iterator[tuple[str, float]]:
    """Yield the ways to write a word that a table has, with their values."""
    for form, value in forms.get(apostrophe_form(word), {}).items():
        yield match_case(word, form), value


def _respelled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    for word in place.words:
        for form, value in respelled(word.text, forms):
            yield WordSlip(word.start, word.end, form, value)


def _contracted(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Write two words as one."""
    if place.first == place.last:
        return
    start, end = place.words[0].start, place.words[-1].end
    text = place.utterance[start:end]
    for form, value in forms.get(apostrophe_form(text), {}).items():
        yield WordSlip(start, end, match_case(text, form), value)


def _joined(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Leave the blank before a word out."""
    factors = tables.factors.get("blank", {})
    for index in range(max(place.first, 1), place.last + 1):
        left, right = place.parts.words[index - 1 : index + 1]
        if place.parts.gaps[index] == " " and _spelled(left) and _spelled(right):
            features = pair_features(left.lower, right.lower)
            value = math.prod(factors.get(feature, 1.0) for feature in features)
            yield WordSlip(left.end, right.start, "", value)


def _spelled(word: Word) -> bool:
    return apostrophe_form(word.text).replace("'", "").replace("-", "").isalpha()


def _small_i(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    for word in place.words:
        if word.text.replace("’", "'") in _I:
            yield WordSlip(word.start, word.start + 1, "i", 1.0)


def _small_first(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Begin with a small letter; not with `i`, which has its own kind, nor in capitals."""
    word = place.words[0]
    small = word.text[:1].lower()
    if place.first or word.text.replace("’", "'") in _I or len(small) != 1:
        return
    if word.text[:1] != small and not (len(word.text) > 1 and word.text.isupper()):
        yield WordSlip(word.start, word.start + 1, small, 1.0)


def _unstopped(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Leave the final full stop out: one, after a word, and nothing else."""
    if place.ends:
        end = place.words[-1].end
        left = place.utterance[end:].rstrip()
        # Text that was taken apart has a blank before it.
        if left.strip() == ".":
            yield WordSlip(end, end + len(left), "", 1.0)


def _doubled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Write a word twice."""
    for word in place.words:
        value = forms.get(word.lower, {}).get(ANY_WORD)
        if value is not None:
            again = word.text if word.text in _I else word.lower
            yield WordSlip(word.end, word.end, f" {again}", value)


def _dropped(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Leave a word out, with the blank before it; the first one stays."""
    for index, word in enumerate(place.words, place.first):
        value = forms.get(word.lower, {}).get(ANY_WORD)
        if value is not None and index and place.parts.gaps[index].endswith(" "):
            yield WordSlip(word.start - 1, word.end, "", value)


def _filled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Say a filler before a word."""
    for index, word in enumerate(place.words, place.first):
        for form, value in forms.get(ANY_WORD, {}).items():
            said = form if index else match_case(word.text, form)
            yield WordSlip(word.start, word.start, f"{said} ", value)


def _restarted(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Say the first words again; the forms say how many."""
    if place.first:
        return
    words, gaps = place.parts.words, place.parts.gaps
    for form, value in forms.get(ANY_WORD, {}).items():
        count = int(form) if form.isdecimal() else 0
        if 0 < count < len(words) and all(gap == " " for gap in gaps[1 : count + 1]):
            said = place.utterance[words[0].start : words[count - 1].end]
            yield WordSlip(words[0].start, words[0].start, f"{said} ", value)


def _smiling(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """End with an emoji."""
    if place.ends:
        end = len(place.utterance.rstrip())
        for form, value in forms.get(ANY_WORD, {}).items():
            yield WordSlip(end, end, f" {form}", value)


_MAKERS: Final[Mapping[str, Callable[[Place, Tables, Forms], Iterator[WordSlip]]]] = {
    "blank": _joined,
    "contraction": _contracted,
    "lower_i": _small_i,
    "lower_first": _small_first,
    "full_stop": _unstopped,
    "doubled": _doubled,
    "dropped": _dropped,
    "filler": _filled,
    "restart": _restarted,
    "emoji": _smiling,
}
