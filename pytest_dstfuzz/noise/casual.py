"""Casual writing: habits, word forms and phrases."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.evidence import Evidence, SlipEvidence, TextCounts, distinct_slips
from pytest_dstfuzz.noise.tables import NoiseKind, Tables
from pytest_dstfuzz.perturb.words import Parts, Word, match_case, take_apart

#: The key in tables of kinds that do not depend on the word.
ANY_WORD: Final = ""
#: Kinds that respell a word independently of its neighbours.
RESPELLED: Final = ("misspelling", "apostrophe", "texting", "homophone")
#: Marks before a word that do not start a sentence.
_INSIDE: Final = ("", ",")
_I: Final = frozenset({"I", "I'm", "I'd", "I'll", "I've"})


class Place(NamedTuple):
    """Words of an utterance that take at most one slip together, with the gap before them."""

    utterance: str
    parts: Parts
    #: Indices of the first and the last word.
    first: int
    last: int
    #: Whether only punctuation follows.
    ends: bool

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the place."""
        return self.parts.words[self.first : self.last + 1]


class WordSlip(NamedTuple):
    """``utterance[start:end]`` becomes ``after``. Its ``value`` is not yet scaled for the kind."""

    start: int
    end: int
    after: str
    value: float


def places(utterance: str, tables: Tables) -> Iterator[Place]:
    """Yield the places of an utterance in reading order. Each word belongs to one place."""
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
    """Yield the slips of one kind at a place, each with its value from the tables."""
    make = _MAKERS.get(kind, _respelled)
    yield from make(place, tables, tables.words.get(kind, {}))


def apostrophe_form(word: str) -> str:
    """Return a lower-case word with straight apostrophes, as in the tables."""
    return word.lower().replace("’", "'")


def pair_features(left: str, right: str) -> tuple[str, ...]:
    """Return the features of a missing blank, from coarse to fine."""
    return (f"left {left}", f"right {right}", f"pair {left} {right}")


Forms = Mapping[str, Mapping[str, float]]


def respell_word(word: str, forms: Forms) -> Iterator[tuple[str, float]]:
    """Yield the spellings of a word in a table, with their values."""
    for form, value in forms.get(apostrophe_form(word), {}).items():
        yield match_case(word, form), value


def _respelled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    for word in place.words:
        for form, value in respell_word(word.text, forms):
            yield WordSlip(word.start, word.end, form, value)


def _contracted(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield contractions of two words."""
    if place.first == place.last:
        return
    start, end = place.words[0].start, place.words[-1].end
    text = place.utterance[start:end]
    for form, value in forms.get(apostrophe_form(text), {}).items():
        yield WordSlip(start, end, match_case(text, form), value)


def _joined(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield slips that drop the blank before a word."""
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
    """Yield a lower-case first letter, except for `I` and for words in capitals."""
    word = place.words[0]
    small = word.text[:1].lower()
    if place.first or word.text.replace("’", "'") in _I or len(small) != 1:
        return
    if word.text[:1] != small and not (len(word.text) > 1 and word.text.isupper()):
        yield WordSlip(word.start, word.start + 1, small, 1.0)


def _small_name(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield a lower-case first letter of a word inside a sentence, such as a name."""
    for index, word in enumerate(place.words, place.first):
        first, rest = word.text[:1], word.text[1:]
        inside = index and place.parts.gaps[index].strip() in _INSIDE
        if inside and first.isupper() and rest.islower() and len(first.lower()) == 1:
            yield WordSlip(word.start, word.start + 1, first.lower(), 1.0)


def _unstopped(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield a dropped final full stop, if it is the only mark after the last word."""
    if place.ends:
        end = place.words[-1].end
        left = place.utterance[end:].rstrip()
        # In tokenised text, a blank precedes the full stop.
        if left.strip() == ".":
            yield WordSlip(end, end + len(left), "", 1.0)


def _doubled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield doubled words."""
    for word in place.words:
        value = forms.get(word.lower, {}).get(ANY_WORD)
        if value is not None:
            again = word.text if word.text in _I else word.lower
            yield WordSlip(word.end, word.end, f" {again}", value)


def _dropped(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield dropped words with the blank before them. The first word stays."""
    for index, word in enumerate(place.words, place.first):
        value = forms.get(word.lower, {}).get(ANY_WORD)
        if value is not None and index and place.parts.gaps[index].endswith(" "):
            yield WordSlip(word.start - 1, word.end, "", value)


def _filled(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield fillers before words."""
    for index, word in enumerate(place.words, place.first):
        for form, value in forms.get(ANY_WORD, {}).items():
            said = form if index else match_case(word.text, form)
            yield WordSlip(word.start, word.start, f"{said} ", value)


def _restarted(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield repetitions of the first words. The table gives the numbers of words."""
    if place.first:
        return
    words, gaps = place.parts.words, place.parts.gaps
    for form, value in forms.get(ANY_WORD, {}).items():
        count = int(form) if form.isdecimal() else 0
        if 0 < count < len(words) and all(gap == " " for gap in gaps[1 : count + 1]):
            said = place.utterance[words[0].start : words[count - 1].end]
            yield WordSlip(words[0].start, words[0].start, f"{said} ", value)


def _smiling(place: Place, tables: Tables, forms: Forms) -> Iterator[WordSlip]:
    """Yield final emoji."""
    if place.ends:
        end = len(place.utterance.rstrip())
        for form, value in forms.get(ANY_WORD, {}).items():
            yield WordSlip(end, end, f" {form}", value)


_MAKERS: Final[Mapping[str, Callable[[Place, Tables, Forms], Iterator[WordSlip]]]] = {
    "blank": _joined,
    "contraction": _contracted,
    "lower_i": _small_i,
    "lower_first": _small_first,
    "lower_name": _small_name,
    "full_stop": _unstopped,
    "doubled": _doubled,
    "dropped": _dropped,
    "filler": _filled,
    "restart": _restarted,
    "emoji": _smiling,
}


#: Prior weight of a word's forms, in uses of the word.
_PRIOR_OF_HABITS: Final = 100.0
#: Forms that are also valid words.
_REAL: Final = frozenset({"cant", "wont", "id", "ill", "its", "lets"})
_I_FORMS: Final = frozenset({"i", "i'm", "im", "i'd", "i'll", "i've", "ive"})

Words = Mapping[str, Mapping[str, float]]


class Habit(NamedTuple):
    """Counts of slips and of occasions for slips."""

    slipped: int
    occasions: int


#: A word is a name if more than this share of its uses within sentences is capitalised.
_NAMED: Final = 0.5


def names_in(texts: Iterable[str]) -> dict[str, Habit]:
    """Return words that are mostly capitalised inside sentences, with their lower-case uses."""
    inside: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        parts = take_apart(text)
        for word, gap in zip(parts.words[1:], parts.gaps[1:], strict=False):
            if gap.strip() in _INSIDE:
                inside[word.lower] += 1
                capital[word.lower] += word.text[:1].isupper()
    return {
        word: Habit(count - capital[word], count)
        for word, count in inside.items()
        if capital[word] > _NAMED * count
    }


def count_habits(texts: Sequence[str]) -> dict[str, Habit]:
    """Count missing capitals and full stops, the kinds without a table."""
    counts: Counter[tuple[str, bool]] = Counter()
    for name, (small, uses) in names_in(texts).items():
        if apostrophe_form(name) not in _I_FORMS:
            counts["lower_name", True] += small
            counts["lower_name", False] += uses - small
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
        for kind in ("lower_first", "lower_i", "lower_name", "full_stop")
    }


def values_of(
    words: Words, counts: Counter[str], *, known: bool
) -> tuple[dict[str, dict[str, float]], float]:
    """Return the value of each form of a word, and the expected number of slips.

    If a form is also a valid word, or if careful writers use it, its count is no evidence. Such a
    form gets the prior value.

    Args:
        words: one or two words -> forms.
        counts: counts of words and of pairs of words, in lower case.
        known: whether the values of the forms come from other texts. In this case, they are the
            prior. Otherwise the mean is the prior.
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


def list_doubled_values(
    words: Words, texts: Iterable[str], *, known: bool
) -> tuple[dict[str, dict[str, float]], float]:
    """Return the value of each doubled word and the number of doubled words. See `values_of`."""
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
    """The evidence for casual writing in texts."""

    #: Kind -> number of slips.
    seen: dict[str, float]
    #: Kind -> word -> form -> value.
    words: dict[str, dict[str, dict[str, float]]]


def find_habits(texts: Sequence[str], words: Mapping[str, Words], *, known: bool) -> HabitCounts:
    """Count the habits in texts, without dropped words and emoji.

    Args:
        texts: turns of users.
        words: kind -> lookup table.
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
    found.words["doubled"], found.seen["doubled"] = list_doubled_values(table, texts, known=known)
    return found


def _again(words: Sequence[Word], gaps: Sequence[str], index: int) -> bool:
    return bool(index) and gaps[index] == " " and words[index - 1].lower == words[index].lower


def weigh(seen: Mapping[str, float], tables: Tables, texts: Sequence[str]) -> tuple[NoiseKind, ...]:
    """Compute the shares of kinds from their numbers of slips.

    Args:
        seen: kind -> number of slips, counted or expected. The numbers of all kinds must refer to
            the same amount of text.
        tables: the lookup tables of the kinds.
        texts: texts of the same sort. Shares are relative to the mean table value of their words.
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


#: The discount from the count of each form, the total count for the forms of a list, and the count
#: of slips for a word without any known form.
_DISCOUNT: Final = 0.75
_LISTED: Final = 0.5
_PRIOR_OF_FORMS: Final = 4.0
#: Minimum number of dialogues for a form to be known.
_KNOWN: Final = 2


def list_known_forms(
    evidence: Evidence, slips: Iterable[SlipEvidence], known: Forms
) -> dict[str, dict[str, float]]:
    """Map each word to its misspelled forms, with their shares in the slips of the word.

    The result includes all listed forms, and all forms that occur in at least two dialogues. If a
    word has few slips, most of its share is left for other forms, which its letters predict.

    Args:
        evidence: the texts and lists.
        slips: the slips in the texts.
        known: the shares of a prior model.
    """
    counts: defaultdict[str, dict[str, float]] = defaultdict(dict)
    seen: Counter[str] = Counter()
    for (word, typed), count in distinct_slips(slips).items():
        seen[word] += count
        if count >= _KNOWN:
            counts[word][typed] = count - _DISCOUNT
    for word, listed in evidence.misspellings.items():
        for form in listed:
            counts[word][form] = counts[word].get(form, 0.0) + _LISTED / len(listed)
    for word, shares in known.items():
        for form, share in shares.items():
            counts[word][form] = counts[word].get(form, 0.0) + share * _PRIOR_OF_FORMS
    return {
        word: {
            form: count / (seen[word] + _LISTED + _PRIOR_OF_FORMS)
            for form, count in sorted(counts[word].items())
        }
        for word in sorted(counts)
    }


def share_of_forms(
    forms: Forms, slips: Iterable[SlipEvidence], start: float, weight: float
) -> float:
    """Return the expected share of known forms: the mean over the words with slips.

    Args:
        forms: word -> form -> share in the slips of the word.
        slips: the slips in the texts.
        start: the prior share.
        weight: the weight of the prior share, in slips.
    """
    seen = distinct_slips(slips)
    known = math.fsum(
        count * math.fsum(forms.get(word, {}).values()) for (word, _), count in seen.items()
    )
    return (known + start * weight) / max(1.0, sum(seen.values()) + weight)
