"""A careful reader: which word was meant by a mistyped one, and how certain that is.

The reader is a noisy channel. For each typed word, the candidates are the words of the lexicon, of
the data and of the dialogue that are at most two slips away. The weight of a candidate is the
probability of the slip under the noise model, times how likely the word is here.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from itertools import islice
from typing import Final, NamedTuple

import jellyfish
import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import MISSPELLING, slip_between
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import one_letter_away, word_list

#: Minimum posterior probability of the original, and the maximum of a rival of the same class.
SURE: Final = 0.95
RIVAL: Final = 0.01
#: Shares of the prior: words of English by their frequency, words of the data, words of the
#: dialogue. Words of the last two groups are equally likely.
_ENGLISH: Final = 0.4
_DATA: Final = 0.3
_DIALOGUE: Final = 0.3
#: Frequency of the word with rank ``r`` is ``_FREQUENT / (r + _FLAT)``; and that of rare words.
_FREQUENT: Final = 0.15
_FLAT: Final = 10
_RARE: Final = 1e-6
#: Rank of a number word, a weekday or another listed word that the frequencies lack.
_LISTED: Final = 300
#: Weight of two slips in one word: the share of such slips, each as likely as one of 64 places.
_TWO_SLIPS: Final = 0.04 / 64**2
#: Words that two slips can turn into the typed word are looked for among the most frequent ones.
_COMMON: Final = 500
_MOST_SLIPS: Final = 2
#: Share of the weight of the original below which a word does not matter.
_NEGLIGIBLE: Final = 1e-3
#: Longest negation that is never edited.
_SHORT_NEGATION: Final = 3
_SHORTEST: Final = 2
_LONGEST: Final = 40
_SHORTEST_FORM: Final = 4
_ENDINGS: Final = frozenset({"s", "es", "ly"})
_SPELLINGS: Final = (("re", "er"), ("er", "re"), ("or", "our"))
_ROMAN: Final = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_APOSTROPHES: Final = re.compile(r"['’]")
_CLITIC: Final = re.compile(r"['’]s$")
_NAMES: Final = resources.files("pytest_dstfuzz") / "resources" / "lexicon" / "names.txt"
#: The classes of words that are never another of their class: see `SlipReader.classes`.
NUMBER, WEEKDAY, VALUE, NEGATION, NAME = "number", "weekday", "value word", "negation", "name"


class _Around(NamedTuple):
    """The known words near a word."""

    #: Text with a letter dropped from a word near by, or the word itself -> such words. Two texts
    #: that are one slip apart have an entry in common.
    one: Mapping[str, Sequence[str]]
    #: Common words at most three slips away, the likeliest first, and their negative priors.
    two: Sequence[str]
    rarity: Sequence[float]
    #: Text one slip away -> its row in `near`.
    rows: Mapping[str, int]
    #: Which of the words in `two` are at most two slips away from a text, as bits in each row.
    near: npt.NDArray[np.uint8]


class SlipReading(NamedTuple):
    """How a reader understands a mistyped word."""

    #: Probability of the original, in [0, 1].
    posterior: float
    #: The likeliest other word of the same class and its probability, if that is above `RIVAL`.
    rival: str = ""
    rival_posterior: float = 0.0
    #: Why the edit is not recoverable, ``""`` if it is: ``exact``, ``known word``, ``negation``,
    #: ``rival`` or ``unclear``.
    reason: str = ""

    @property
    def recoverable(self) -> bool:
        """Whether a careful reader recovers the original."""
        return not self.reason


class SlipReader:
    """Reads mistyped words, given the data of a run."""

    def __init__(
        self,
        lexicon: Lexicon,
        model: NoiseModel,
        values: Mapping[str, Collection[str]] | None = None,
        words: Iterable[str] = (),
    ) -> None:
        """Build the vocabulary.

        Args:
            lexicon: English words and their frequency.
            model: the probability of slips.
            values: slot or parameter -> its values.
            words: other words of the data, such as those of a text bot's replies.
        """
        self._lexicon, self._model = lexicon, model
        self._slots: defaultdict[str, set[str]] = defaultdict(set)
        for slot, found in (values or {}).items():
            for word in (word for value in found for word in word_list(value)):
                self._slots[word].add(slot)
        known = {word for text in words for word in word_list(text)} | set(self._slots)
        self._data = frozenset(word for word in known if len(word) >= _SHORTEST)
        lists = {
            NUMBER: lexicon.number_words,
            WEEKDAY: lexicon.weekdays,
            VALUE: lexicon.value_words,
            NEGATION: lexicon.negations,
        }
        self._classes: defaultdict[str, set[str]] = defaultdict(set)
        for name, words_of in lists.items():
            for word in words_of:
                self._classes[word].add(name)
        self.classes = lru_cache(maxsize=1 << 14)(self._find_classes)
        self._around = lru_cache(maxsize=1 << 8)(self._find_around)
        self._prior = lru_cache(maxsize=1 << 14)(self._find_prior)
        self._channel = lru_cache(maxsize=1 << 16)(self._find_channel)
        self._weights = lru_cache(maxsize=1 << 15)(self._find_weights)
        self._read = lru_cache(maxsize=1 << 16)(self._weigh)

    def read(self, word: str, typed: str, said: Collection[str] = ()) -> SlipReading:
        """Return how a reader understands ``typed``, which a user typed for ``word``.

        Args:
            word: the original word, in any case.
            typed: the word as typed.
            said: words of the dialogue so far, in lower case.
        """
        word, typed = word.lower(), typed.lower()
        if word == typed:
            return SlipReading(1.0)
        if reason := self._refusal(word, typed):
            return SlipReading(0.0, reason=reason)
        return self._read(word, typed, frozenset(said))

    def recovers(self, word: str, typed: str, said: Collection[str] = ()) -> bool:
        """Return whether a careful reader recovers ``word`` from ``typed``; see `read`."""
        return self.read(word, typed, said).recoverable

    def has(self, word: str) -> bool:
        """Return whether a word in lower case is in the data."""
        return word in self._data

    def is_known(self, text: str) -> bool:
        """Return whether a text in lower case is a word or a known name, and so reads as itself."""
        return text in self._known or _CLITIC.sub("", text) in self._known

    def _refusal(self, word: str, typed: str) -> str:
        """Return why an edit is never recoverable, whatever the probabilities are."""
        if _is_exact(word) or _is_exact(typed):
            return "exact"
        if NEGATION in self._classes.get(word, ()) and len(word) <= _SHORT_NEGATION:
            return NEGATION
        parts = typed.split(" ")
        if any(len(part) < _SHORTEST or self.is_known(part) for part in parts):
            return "known word"
        return ""

    def _find_classes(self, word: str) -> frozenset[str]:
        """Return the classes of a word: two different words of one class mean different things.

        They are the slots that have the word in a value, number words, weekdays, words for values
        such as months and directions, negations, and names.
        """
        found = {f"slot {slot}" for slot in self._slots.get(word, ())} | self._classes.get(
            word, set()
        )
        named = word in self._always or (word in self._slots and not self._lexicon.is_word(word))
        return frozenset(found | {NAME} if named else found)

    def _find_weights(self, word: str, typed: str) -> Mapping[str, float]:
        """Return the weights of the words that may have been meant, apart from the dialogue.

        There are none if the original cannot have been meant.
        """
        distance, own = _distance(word, typed), self._channel(word, typed)
        if not own:
            return {}
        # Two slips in one word are rare, so only a word that is much likelier matters.
        least = _NEGLIGIBLE * own * self._prior(word) / _TWO_SLIPS
        two = self._two_slips_away(word, typed, distance, least)
        channels = dict.fromkeys(two, _TWO_SLIPS)
        for other in sorted(self._one_slip_away(word, typed, distance)):
            if channel := self._one_slip(other, typed):
                channels[other] = channel
        channels[word] = own
        return {other: value * self._prior(other) for other, value in channels.items()}

    def _weigh(self, word: str, typed: str, said: frozenset[str]) -> SlipReading:
        weights = self._weights(word, typed)
        if not weights:
            return SlipReading(0.0, reason="unclear")
        heard = said - {typed}
        if len(weights) == 1 and heard <= {word}:
            return SlipReading(1.0)
        weights = {**weights}
        for other in heard:
            weights[other] = self._channel(other, typed) * (
                self._prior(other) + _DIALOGUE / _VOCABULARY
            )
        total = math.fsum(sorted(weights.values()))
        mine, antonyms = self.classes(word), self._lexicon.antonyms(word)
        rivals = {
            other: weight / total
            for other, weight in sorted(weights.items())
            if weight > RIVAL * total
            and not _is_form(word, other)
            and (mine & self.classes(other) or other in antonyms)
        }
        # Another form or spelling of the original means the same.
        forms = [weight for other, weight in weights.items() if _is_form(word, other)]
        posterior = math.fsum(sorted(forms)) / total
        if rivals:
            rival = max(rivals, key=lambda other: rivals[other])
            return SlipReading(posterior, rival, rivals[rival], "rival")
        return SlipReading(posterior, reason="unclear" if posterior < SURE else "")

    def _one_slip_away(self, word: str, typed: str, distance: int) -> set[str]:
        """Return the other words that one slip may have turned into a text, and some more."""
        found = set(self._misspelled.get(typed, ()))
        if " " in typed:
            found.update({typed.replace(" ", "")} & self._known)
        elif distance == 1:
            around = self._around(word).one
            near = {other for text in _shorter(typed) for other in around.get(text, ())}
            found.update(other for other in near if _distance(other, typed) == 1)
        else:
            found.update(self._known & one_letter_away(typed))
        return found - {word}

    def _two_slips_away(self, word: str, typed: str, distance: int, least: float) -> list[str]:
        """Return the common words that two slips may have turned into a text.

        They have a prior of more than ``least``.
        """
        around = self._around(word)
        place = around.rows.get(typed)
        if distance > 1 or place is None:
            found = self._common.within(typed, _MOST_SLIPS)
            return [other for other in found if self._prior(other) > least]
        near = np.unpackbits(around.near[place], count=len(around.two))
        places = np.flatnonzero(near[: bisect_left(around.rarity, -least)])
        return [around.two[at] for at in places.tolist()]

    def _find_around(self, word: str) -> _Around:
        """Return the known words near a word."""
        one: defaultdict[str, list[str]] = defaultdict(list)
        for other in self._all.within(word, _MOST_SLIPS):
            if other != word:
                for text in _shorter(other):
                    one[text].append(other)
        common = self._common.within(word, _MOST_SLIPS + 1)
        two = sorted({*common} - {word}, key=lambda other: (-self._prior(other), other))
        texts = sorted(one_letter_away(word))
        near = np.packbits(_are_near(texts, two, _MOST_SLIPS), axis=1)
        rows = {text: row for row, text in enumerate(texts)}
        return _Around(one, two, [-self._prior(other) for other in two], rows, near)

    def _one_slip(self, word: str, typed: str) -> float:
        """Return the weight of a text as one slip in a word or a known misspelling, or 0."""
        tables = self._model.file.tables
        share = tables.words.get(MISSPELLING, {}).get(word, {}).get(typed, 0.0)
        slip = slip_between(word, typed, tables.keyboard)
        return max(self._model.weight_of(slip), share) if slip else share

    def _find_channel(self, word: str, typed: str) -> float:
        """Return the weight of a text as slips in a word, 0 if it is more than two away."""
        known = word in self._misspelled.get(typed, ())
        if not known and _distance(word, typed) > _MOST_SLIPS:
            return 0.0
        return self._one_slip(word, typed) or _TWO_SLIPS

    def _find_prior(self, word: str) -> float:
        rank = self._lexicon.frequency_rank(word)
        if rank is None and word in self._classes:
            rank = _LISTED
        english = _RARE if rank is None else _FREQUENT / (rank + _FLAT)
        known = _DATA / max(len(self._data), _VOCABULARY) if word in self._data else 0.0
        return _ENGLISH * english + known

    @cached_property
    def _misspelled(self) -> Mapping[str, tuple[str, ...]]:
        """Known misspelling -> its words."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for word, forms in self._model.file.tables.words.get(MISSPELLING, {}).items():
            for form in forms:
                found[form].append(word)
        return {form: tuple(words) for form, words in found.items()}

    @cached_property
    def _common(self) -> _Words:
        """Words that may have been meant by a text with two slips."""
        frequent = islice(self._lexicon.frequent_words, _COMMON)
        return _Words({*self._data, *frequent, *self._classes})

    @cached_property
    def _all(self) -> _Words:
        """The words that are read as themselves."""
        return _Words(word for word in self._known if len(word) <= _LONGEST)

    @cached_property
    def _known(self) -> set[str]:
        """Words and names that are read as themselves.

        A text of the lexicon without a part of speech may be a frequent slip.
        """
        listed = {word for word, classes in self._classes.items() if " " not in word and classes}
        return {*self._lexicon.words_with_pos, *self._data, *self._always, *listed}

    @cached_property
    def _always(self) -> frozenset[str]:
        """Names in every context."""
        lines = _NAMES.read_text(encoding="utf-8").splitlines()
        lists = dict(line.split(":", 1) for line in lines)
        return frozenset(lists["always"].split())


#: Number of words that a dialogue, or the data of a small bot, has at least.
_VOCABULARY: Final = 100


def _is_exact(text: str) -> bool:
    """Return whether every letter of a text matters: digits, codes, addresses, Roman numerals."""
    bare = _APOSTROPHES.sub("", text).replace("-", "").replace(" ", "")
    return len(bare) < _SHORTEST or not bare.isalpha() or bool(_ROMAN.fullmatch(bare))


def _is_form(word: str, other: str) -> bool:
    """Return whether two words are equal, or forms of one word that mean the same in a request.

    >>> _is_form("restaurant", "restaurants"), _is_form("centre", "center"), _is_form("new", "news")
    (True, True, False)
    """
    if word == other:
        return True
    short, long = sorted((word, other), key=len)
    if len(short) < _SHORTEST_FORM:
        return False
    spelled = any(short.endswith(a) and short[: -len(a)] + b == long for a, b in _SPELLINGS)
    return spelled or (long.startswith(short) and long[len(short) :] in _ENDINGS)


def _distance(one: str, other: str) -> int:
    return int(jellyfish.damerau_levenshtein_distance(one, other))


def _shorter(text: str) -> set[str]:
    """Return a text and all texts with one of its letters dropped."""
    return {text, *(text[:place] + text[place + 1 :] for place in range(len(text)))}


class _Words:
    """Finds the words of a list that are near a text."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(words, key=lambda word: (len(word), word))
        self._lengths = [len(word) for word in self._words]
        #: How often each word has each letter of the alphabet, and other characters.
        self._counts = np.zeros((len(self._words), 27), dtype=np.int8)
        rows = np.repeat(np.arange(len(self._words)), self._lengths)
        np.add.at(self._counts, (rows, _places("".join(self._words))), 1)

    def within(self, text: str, slips: int) -> list[str]:
        """Return the words that are at most so many slips away from a text."""
        first = bisect_left(self._lengths, len(text) - slips)
        last = bisect_right(self._lengths, len(text) + slips)
        own = np.bincount(_places(text), minlength=27).astype(np.int8)
        # A slip changes the counts of at most two letters, by one each.
        odd = np.abs(self._counts[first:last] - own) @ np.ones(27, dtype=np.int8)
        found = np.flatnonzero(odd <= 2 * slips) + first
        near = (self._words[place] for place in found.tolist())
        return [word for word in near if _distance(word, text) <= slips]


def _are_near(texts: Sequence[str], words: Sequence[str], slips: int) -> npt.NDArray[np.bool_]:
    """Return which pairs are at most so many slips apart, shape (texts, words).

    The distance is the optimal string alignment distance, computed for all pairs of two lengths
    at once.
    """
    near = np.zeros((len(texts), len(words)), dtype=np.bool_)
    for rows, left in _by_length(texts):
        for columns, right in _by_length(words):
            if abs(left.shape[1] - right.shape[1]) <= slips:
                near[np.ix_(rows, columns)] = _alignments(left, right) <= slips
    return near


def _by_length(texts: Sequence[str]) -> Iterator[tuple[list[int], npt.NDArray[np.uint32]]]:
    """Yield the places of texts of one length, and their letters, shape (texts, length)."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        places[len(text)].append(place)
    for length, found in sorted(places.items()):
        letters = "".join(texts[place] for place in found)
        codes = np.frombuffer(letters.encode("utf-32-le"), dtype=np.uint32)
        yield found, codes.reshape(len(found), length)


def _alignments(
    left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int8]:
    """Return the distances of texts of one length from texts of another, shape (left, right)."""
    shape = (len(left), len(right))
    rows, columns = left.shape[1], right.shape[1]
    equal = [[left[:, i, None] == right[None, :, j] for j in range(columns)] for i in range(rows)]
    before: list[npt.NDArray[np.int8]] = []
    last = [np.full(shape, j, dtype=np.int8) for j in range(columns + 1)]
    for i in range(1, rows + 1):
        here = [np.full(shape, i, dtype=np.int8)]
        for j in range(1, columns + 1):
            cell = np.minimum(last[j], here[j - 1]) + np.int8(1)
            np.minimum(cell, last[j - 1] + ~equal[i - 1][j - 1], out=cell)
            if i > 1 and j > 1:
                swapped = equal[i - 1][j - 2] & equal[i - 2][j - 1]
                np.minimum(cell, before[j - 2] + np.int8(1), out=cell, where=swapped)
            here.append(cell)
        before, last = last, here
    return last[columns]


def _places(text: str) -> npt.NDArray[np.int64]:
    """Return the places of the letters of a text in the alphabet, 26 for other characters."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64) - ord("a")
    return np.where((codes >= 0) & (codes < 26), codes, 26)
