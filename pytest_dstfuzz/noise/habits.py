"""Counts the habits of casual writing in raw texts: apostrophes, capitals, full stops, spellings.

Texts must be as they were typed: with their capitals and marks. A text of the user is one turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.find import TextCounts
from pytest_dstfuzz.noise.phrases import ANY_WORD, apostrophe_form, places, word_slips
from pytest_dstfuzz.noise.tables import NoiseKind, Tables
from pytest_dstfuzz.perturb.words import Word, take_apart

#: What a word weighs whose forms were never typed, in times that it was.
_MORE: Final = 100.0
#: Forms that are words of their own.
_REAL: Final = frozenset({"cant", "wont", "id", "ill", "its", "lets"})
_I_FORMS: Final = frozenset({"i", "i'm", "im", "i'd", "i'll", "i've", "ive"})

Words = Mapping[str, Mapping[str, float]]


class Habit(NamedTuple):
    """How often something was written one way and the other way."""

    slipped: int
    occasions: int


def count_habits(texts: Iterable[str]) -> dict[str, Habit]:
    """Return how often capitals and full stops are missing, of the kinds that have no table."""
    counts: Counter[tuple[str, bool]] = Counter()
    for text in texts:
        words = take_apart(text).words
        if not words:
            continue
        first = words[0].text[:1]
        if apostrophe_form(words[0].text) not in _I_FORMS and first.lower() != first.upper():
            counts["lower_first", first.islower()] += 1
        for word in words:
            form = apostrophe_form(word.text)
            if form in _I_FORMS:
                counts["lower_i", word.text[0] == "i"] += 1
        end = text.rstrip()[-1:]
        if end.isalnum() or end == ".":
            counts["full_stop", end != "."] += 1
    return {
        kind: Habit(counts[kind, True], counts[kind, True] + counts[kind, False])
        for kind in ("lower_first", "lower_i", "full_stop")
    }


def values_of(
    words: Words, counts: Counter[str], *, known: bool
) -> tuple[dict[str, dict[str, float]], float]:
    """Return how often each form is written for its word, and how many were written in all.

    A form that is a word of its own, or that careful people write too, gets the mean of the
    others: its number in texts tells nothing.

    Args:
        words: word, or two -> forms.
        counts: of words and of pairs of words, in lower case.
        known: the values of the forms are those of other texts, to start from; else they are not
            read.
    """
    told = {
        (word, form): (counts[form], counts[word])
        for word, forms in words.items()
        for form in forms
        if form not in _REAL and (" " not in word or "'" not in form)
    }
    slipped = sum(typed for typed, _ in told.values())
    occasions = sum(typed + clean for typed, clean in told.values())
    mean = (slipped + 0.5) / (occasions + _MORE)
    found: dict[str, dict[str, float]] = {}
    total = 0.0
    for word, forms in words.items():
        for form, before in forms.items():
            typed, clean = told.get((word, form), (0, 0))
            start = before if known else mean / len(forms)
            value = (typed + _MORE * start) / (typed + clean + _MORE)
            found.setdefault(word, {})[form] = value
            total += value * (counts[word] + typed)
    return found, total


def doubled_values(
    words: Words, texts: Iterable[str], *, known: bool
) -> tuple[dict[str, dict[str, float]], float]:
    """Return how often each word is written twice, and how many were; see `values_of`."""
    twice: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for text in texts:
        parts = take_apart(text)
        for index, word in enumerate(parts.words):
            if word.lower in words:
                times[word.lower] += 1
                twice[word.lower] += _again(parts.words, parts.gaps, index)
    total = sum(twice.values())
    mean = (total + 0.5) / (sum(times.values()) + _MORE)
    found = {}
    for name, forms in words.items():
        start = forms[ANY_WORD] if known else mean
        found[name] = {ANY_WORD: (twice[name] + _MORE * start) / (times[name] + _MORE)}
    return found, float(total)


class HabitCounts(NamedTuple):
    """What texts tell of casual writing."""

    #: Kind -> number of slips.
    seen: dict[str, float]
    #: Kind -> word -> form -> value.
    words: dict[str, dict[str, dict[str, float]]]


def find_habits(texts: Sequence[str], words: Mapping[str, Words], *, known: bool) -> HabitCounts:
    """Count the habits of texts; missing words and emoji are the caller's.

    Args:
        texts: one turn of a user each.
        words: kind -> what it looks up.
        known: see `values_of`.
    """
    counts = TextCounts.of(texts)
    both = Counter(counts.words)
    both.update({f"{left} {right}": count for (left, right), count in counts.pairs.items()})
    found = HabitCounts({kind: float(h.slipped) for kind, h in count_habits(texts).items()}, {})
    for kind in ("apostrophe", "texting", "contraction"):
        table = words.get(kind, {})
        found.words[kind], found.seen[kind] = values_of(table, both, known=known)
    table = words.get("doubled", {})
    found.words["doubled"], found.seen["doubled"] = doubled_values(table, texts, known=known)
    return found


def _again(words: Sequence[Word], gaps: Sequence[str], index: int) -> bool:
    return bool(index) and gaps[index] == " " and words[index - 1].lower == words[index].lower


def weigh(seen: Mapping[str, float], tables: Tables, texts: Sequence[str]) -> tuple[NoiseKind, ...]:
    """Return kinds with their shares, from how many slips there are of each.

    Args:
        seen: kind -> number of slips, all counted (or supposed) in texts of one size.
        tables: what the kinds look up.
        texts: like those that the slips are of; they tell what the tables give a word.
    """
    total = math.fsum(seen.values())
    values: dict[str, list[float]] = {kind: [] for kind in seen}
    words = 0
    for text in texts:
        for place in places(text, tables):
            words += len(place.words)
            for kind, found in values.items():
                found += [slip.value for slip in word_slips(kind, place, tables)]
    return tuple(
        NoiseKind(kind, count / total if total else 0.0, math.fsum(values[kind]) / max(words, 1))
        for kind, count in seen.items()
    )
