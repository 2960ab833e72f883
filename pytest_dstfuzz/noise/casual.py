"""Casual writing: habits, word forms and phrases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.evidence import Evidence, Slipped, TextCounts, distinct_slips
from pytest_dstfuzz.noise.tables import Habits, NoiseKind, Tables, letter_slips
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


#: What a word weighs whose forms were never typed, in times that it was.
_PRIOR_OF_HABITS: Final = 100.0
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
    mean = (slipped + 0.5) / (occasions + _PRIOR_OF_HABITS)
    found: dict[str, dict[str, float]] = {}
    total = 0.0
    for word, forms in words.items():
        for form, before in forms.items():
            typed, clean = told.get((word, form), (0, 0))
            start = before if known else mean / len(forms)
            value = (typed + _PRIOR_OF_HABITS * start) / (typed + clean + _PRIOR_OF_HABITS)
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
    mean = (total + 0.5) / (sum(times.values()) + _PRIOR_OF_HABITS)
    found = {}
    for name, forms in words.items():
        start = forms[ANY_WORD] if known else mean
        found[name] = {
            ANY_WORD: (twice[name] + _PRIOR_OF_HABITS * start) / (times[name] + _PRIOR_OF_HABITS)
        }
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


#: Of the forms of a word that were seen: so much is taken off their counts, and so much is added
#: to those of a list; a word counts as if it had been typed so many times more.
_DISCOUNT: Final = 0.75
_LISTED: Final = 0.5
_PRIOR_OF_FORMS: Final = 500.0
_ROUNDS: Final = 30
#: Dialogues that make a form known.
_KNOWN: Final = 2


def known_forms(
    evidence: Evidence, slips: Iterable[Slipped], known: Forms
) -> dict[str, dict[str, float]]:
    """Return word -> misspelled form -> how often it is typed for the word, about.

    Forms of a list, and those that at least two dialogues have.
    """
    seen = distinct_slips(slips)
    forms: dict[str, dict[str, float]] = {w: dict(values) for w, values in known.items()}
    for word, listed in evidence.misspellings.items():
        for form in listed:
            forms.setdefault(word, {}).setdefault(form, 0.0)
            forms[word][form] += value_of(0, evidence.counts.words[word], len(listed))
    for (word, typed), count in seen.items():
        if count >= _KNOWN:
            value = value_of(count, evidence.counts.words[word])
            forms.setdefault(word, {})[typed] = forms.get(word, {}).get(typed, 0.0) + value
    return {word: dict(sorted(forms[word].items())) for word in sorted(forms)}


def value_of(count: float, times: int, listed: int = 0) -> float:
    """Return how often a form is typed for a word: seen ``count`` times, the word ``times``."""
    more = _LISTED / listed if listed else 0.0
    return (max(count - _DISCOUNT, 0.0) + more) / (times + _PRIOR_OF_FORMS)


def forms_per_word(forms: Forms, counts: TextCounts) -> float:
    """Return the mean value of the forms of a word, over all words of the texts."""
    total = math.fsum(
        counts.words[word] * math.fsum(values.values()) for word, values in forms.items()
    )
    return total / max(1, sum(counts.words.values()))


def share_of_forms(
    kinds: Sequence[NoiseKind],
    tables: Tables,
    evidence: Evidence,
    slips: Iterable[Slipped],
    per_word: float,
    start: float,
    weight: float,
) -> float:
    """Return the share of slips that are known misspellings, by likelihood.

    Each slip is judged by the forms that the *other* dialogues have, so that a form is no better
    known for having been typed once.

    Args:
        kinds: of slips of letters, with their shares of those, and
        tables: their factors.
        evidence: the texts.
        slips: found in them.
        per_word: see `forms_per_word`.
        start: a share that is known of others, and
        weight: the number of slips that it counts as.
    """
    if not per_word:
        return 0.0
    forms, counts = tables.words["misspelling"], evidence.counts
    scales = {kind.name: kind.scale for kind in kinds}
    habits = Habits(tables.keyboard, tables.confusions)
    pairs = []
    for (word, typed), count in distinct_slips(slips).items():
        by_letters = 0.0
        for slip in letter_slips(word, habits, every=True):
            if slip.put_into(word) == typed:
                known = tables.factors[slip.kind]
                value = math.prod(known.get(feature, 1.0) for feature in slip.features)
                by_letters += scales[slip.kind] * value
        known_for = forms.get(word, {}).get(typed, 0.0)
        times = counts.words[word]
        # Without one of the dialogues; one that is left alone would not make it known.
        left = value_of(count - 1, times) if count > _KNOWN else 0.0
        less = value_of(count, times) - left if count >= _KNOWN else 0.0
        pairs.append((count, by_letters, max(known_for - less, 0.0) / per_word))
    share = start
    total = math.fsum(count for count, *_ in pairs) + weight
    for _ in range(_ROUNDS if total else 0):
        mine = math.fsum(
            count * share * listed / (share * listed + (1 - share) * letters)
            for count, letters, listed in pairs
            if listed or letters
        )
        mine += weight * start
        share = min(max(mine / total, 0.001), 0.95)
    return share
