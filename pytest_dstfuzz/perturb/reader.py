"""Simulates a careful reader, who finds the intended word for a mistyped one.

The reader uses a noisy-channel model. For each typed word, the candidates are words that are at
most two slips away. They come from the lexicon, the data and the dialogue. The weight of a
candidate is the probability of the slip under the noise model, times the probability of the word
here. If the text is unclear by itself, the reader also uses the two words on either side: `i need
ot go`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import MISSPELLING, slip_between
from pytest_dstfuzz.perturb.exact import EXACT
from pytest_dstfuzz.perturb.labels import ROMAN
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.names import name_lists
from pytest_dstfuzz.perturb.sentences import WordsBeside, neighbour_counts
from pytest_dstfuzz.perturb.words import word_list

#: A text is recoverable under two conditions. The posterior probability of the original is at least
#: the first number. The probability of any rival (another word of its class) is at most the second.
SURE: Final = 0.95
RIVAL: Final = 0.01
#: Shares of the prior probability: English words by frequency, words of the data, and words of the
#: dialogue. Within each of the last two groups, all words are equally likely. Data without an
#: ontology have no values. Their words are those that users say, by the number of dialogues.
_ENGLISH: Final = 0.4
_DATA: Final = 0.3
_DIALOGUE: Final = 0.3
#: The frequency of the word with rank ``r`` is ``_FREQUENT / (r + _FLAT)``. The last number is the
#: frequency of rare words.
_FREQUENT: Final = 0.15
_FLAT: Final = 10
_RARE: Final = 1e-6
#: Rank of a number word, a weekday or another listed word without a known frequency.
_LISTED: Final = 300
#: Weight of two slips in one word: their share, with 64 equally likely places for each slip.
_TWO_SLIPS: Final = 0.04 / 64**2
#: For two slips, the reader considers only this number of the most frequent words.
_COMMON: Final = 500
_MOST_SLIPS: Final = 2
#: A word does not matter if its weight is below this share of the weight of the original.
_NEGLIGIBLE: Final = 1e-3
#: Longest negation that is never edited.
_SHORT_NEGATION: Final = 3
_SHORTEST: Final = 2
_LONGEST: Final = 40
_SHORTEST_FORM: Final = 4
_ENDINGS: Final = frozenset({"s", "es", "ly"})
_SPELLINGS: Final = (("re", "er"), ("er", "re"), ("or", "our"))
_APOSTROPHES: Final = re.compile(r"['’]")
_CLITIC: Final = re.compile(r"['’]s$")
#: The reason for a text that is not recoverable by itself. With the words beside it, it may be.
_UNCLEAR: Final = "unclear"
#: The reader looks at the words beside a text if the original has at least this probability.
_HOPEFUL: Final = 0.2
#: Maximum length of such a word. Longer words are nearly always clear by themselves.
BESIDE: Final = 6
#: Classes of words. Two different words of a class mean different things.
NUMBER, WEEKDAY, VALUE, NEGATION, NAME = "number", "weekday", "value word", "negation", "name"


class _Typed(NamedTuple):
    """The possible words for a text, without the words of the dialogue."""

    #: The original and other words that are one slip away from the text -> weight.
    weights: Mapping[str, float]
    #: Places in `SlipReader._common` of the words that are two slips away from the text.
    two: Sequence[int]

    @property
    def clear(self) -> bool:
        """Whether the text may stand for no word but the original."""
        return not self.two and len(self.weights) == 1


class _Around(NamedTuple):
    """The possible words for a text, without the words of the dialogue."""

    #: Words that mean the same, whether they are known or not, and words that mean the opposite.
    forms: frozenset[str]
    antonyms: frozenset[str]
    #: Text -> the words that it may stand for, or its interpretation if it has one in any dialogue.
    readings: dict[str, _Typed | SlipReading]


class _Unclear(NamedTuple):
    """Texts for one word that are unclear without context, and their possible words."""

    #: The places of the texts among all texts of the word.
    texts: Sequence[int]
    #: All words that any of these texts may stand for.
    words: Sequence[str]
    #: For each text and each word that it may stand for: the place of the word, and its weight.
    codes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    #: Where each text starts in these arrays, and the text of each entry.
    starts: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    #: Whether a word is a form of the original, and whether it is another word of its class.
    forms: npt.NDArray[np.bool_]
    rivals: npt.NDArray[np.bool_]


class SlipReading(NamedTuple):
    """A reader's interpretation of a mistyped word."""

    #: Probability of the original, in [0, 1].
    posterior: float
    #: The likeliest other word of the same class and its probability, if this is above `RIVAL`.
    rival: str = ""
    rival_posterior: float = 0.0
    #: The reason if the edit is not recoverable: ``exact``, ``known word``, ``negation``, ``rival``
    #: or ``unclear``. It is ``""`` if the edit is recoverable.
    reason: str = ""

    @property
    def recoverable(self) -> bool:
        """Whether a careful reader recovers the original word."""
        return not self.reason


class SlipReader:
    """Reads mistyped words, given the data of a run."""

    def __init__(
        self,
        lexicon: Lexicon,
        model: NoiseModel,
        values: Mapping[str, Collection[str]] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """Build the vocabulary.

        Args:
            lexicon: English words and their frequency.
            model: the probability of slips.
            values: slot or parameter -> its values.
            usage: words that users often say to this bot, see `count_usage`.
        """
        self._lexicon, self._model = lexicon, model
        self._keyboard = model.file.tables.keyboard
        self._forms_of = model.file.tables.words.get(MISSPELLING, {})
        self._slots: defaultdict[str, set[str]] = defaultdict(set)
        for slot, found in (values or {}).items():
            for word in (word for value in found for word in word_list(value)):
                self._slots[word].add(slot)
        self._usage = usage or {}
        self._uses = max(sum(self._usage.values()), _VOCABULARY)
        self._data = frozenset(word for word in self._slots if len(word) >= _SHORTEST)
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
        self._read = lru_cache(maxsize=1 << 16)(self._weigh)
        self._alone = lru_cache(maxsize=1 << 10)(self._read_alone)

    @classmethod
    def of(
        cls,
        lexicon: Lexicon,
        model: NoiseModel,
        values: Mapping[str, Sequence[str]],
        usage: Mapping[str, int],
    ) -> SlipReader:
        """Return the reader for some data. Campaigns on the same data share its results."""
        return _reader(
            lexicon,
            model,
            tuple((slot, tuple(found)) for slot, found in values.items()),
            tuple(usage.items()),
        )

    def read(
        self, word: str, typed: str, said: Collection[str] = (), sides: WordsBeside | None = None
    ) -> SlipReading:
        """Return the reader's interpretation of ``typed``, which a user typed for ``word``.

        Args:
            word: the original word, in any case.
            typed: the word as typed.
            said: words of the dialogue so far, in lower case.
            sides: the words around it, see `NeighbourCounts.sides`; ``None`` = unknown.
        """
        return self.read_all(word, [typed], said, sides)[0]

    def read_all(
        self,
        word: str,
        texts: Sequence[str],
        said: Collection[str] = (),
        sides: WordsBeside | None = None,
    ) -> list[SlipReading]:
        """Return the reader's interpretations of ``texts``, see `read`.

        One call for all texts of a word is faster than one call for each.
        """
        lower = tuple([text.lower() for text in texts])
        readings, unclear = self._alone(word.lower(), lower, frozenset(said))
        if sides is None or unclear is None:
            return [*readings]
        found = dict(zip(unclear.texts, self._read_beside(unclear, sides), strict=True))
        return [found.get(at, reading) for at, reading in enumerate(readings)]

    def _read_alone(
        self, word: str, texts: Sequence[str], said: frozenset[str]
    ) -> tuple[Sequence[SlipReading], _Unclear | None]:
        """Return the interpretations of texts without context, and the unclear texts."""
        self._learn(word, texts)
        known = self._around(word).readings
        heard = self._hear(texts, said)
        readings: list[SlipReading] = []
        unclear: dict[int, Mapping[str, float]] = {}
        for at, text in enumerate(texts):
            typed = known[text]
            if isinstance(typed, SlipReading):
                readings.append(typed)
                continue
            some = heard.get(at)
            if not some and typed.clear:
                readings.append(_CLEAR)
                continue
            reading, weights = self._read(word, text, frozenset(some) if some else _NOTHING)
            if weights:
                unclear[at] = weights
            readings.append(reading)
        return readings, self._gather(word, unclear) if unclear else None

    def _hear(self, texts: Sequence[str], said: frozenset[str]) -> Mapping[int, set[str]]:
        """Return for places in ``texts`` the words of the dialogue that a text may stand for."""
        if not said:
            return {}
        words, found = sorted(said), defaultdict[int, set[str]](set)
        for row, at in np.argwhere(_count_slips(texts, words) <= _MOST_SLIPS).tolist():
            if words[at] != texts[row]:
                found[row].add(words[at])
        misspelled = self._misspelled
        for row, text in enumerate(texts):
            if text in misspelled:
                found[row].update(said.intersection(misspelled[text]))
        return found

    def _gather(self, word: str, unclear: Mapping[int, Mapping[str, float]]) -> _Unclear:
        """Return the possible words for unclear texts, as arrays."""
        around = self._around(word)
        names = [*chain.from_iterable(unclear.values())]
        words = [*dict.fromkeys(names)]
        index = {one: at for at, one in enumerate(words)}
        lengths = [*map(len, unclear.values())]
        weights = chain.from_iterable(some.values() for some in unclear.values())
        return _Unclear(
            [*unclear],
            words,
            np.array([*map(index.__getitem__, names)]),
            np.fromiter(weights, float),
            np.cumsum([0, *lengths[:-1]]),
            np.repeat(np.arange(len(lengths)), lengths),
            np.array([one in around.forms for one in words]),
            np.array([self._is_rival(word, around, one) for one in words]),
        )

    def _read_beside(self, unclear: _Unclear, sides: WordsBeside) -> list[SlipReading]:
        """Return the interpretations of texts between other words."""
        codes, starts = unclear.codes, unclear.starts
        weights = unclear.weights * neighbour_counts().fit(unclear.words, sides)[codes]
        shares = weights / np.add.reduceat(weights, starts)[unclear.owners]
        posteriors = np.add.reduceat(np.where(unclear.forms[codes], shares, 0.0), starts)
        rivals: dict[int, tuple[float, str]] = {}  # The likeliest rival for each text.
        for at in np.flatnonzero((shares > RIVAL) & unclear.rivals[codes]).tolist():
            text, found = int(unclear.owners[at]), (float(shares[at]), unclear.words[codes[at]])
            rivals[text] = max(found, rivals.get(text, found))
        return [
            SlipReading(posterior, rivals[text][1], rivals[text][0], "rival")
            if text in rivals
            else SlipReading(posterior, reason=_UNCLEAR if posterior < SURE else "")
            for text, posterior in enumerate(posteriors.tolist())
        ]

    def _is_rival(self, word: str, around: _Around, other: str) -> bool:
        """Return whether two words share a class and are not forms of one word."""
        if other in around.forms:
            return False
        return bool(self.classes(word) & self.classes(other)) or other in around.antonyms

    def has(self, word: str) -> bool:
        """Return whether a word in lower case is in a value of the data."""
        return word in self._data

    def is_known(self, text: str) -> bool:
        """Return whether a lower-case text is a word or a known name, not a slip."""
        return self._lists(text) or (not text.isalpha() and self._lists(_CLITIC.sub("", text)))

    def _lists(self, text: str) -> bool:
        return text in self._own or text in self._english.known

    def _refuse_word(self, word: str) -> str:
        """Return why no edit of a word is recoverable, regardless of its probability."""
        if _is_exact(word):
            return EXACT
        short = len(word) <= _SHORT_NEGATION
        return NEGATION if short and NEGATION in self._classes.get(word, ()) else ""

    def _refuse_text(self, typed: str) -> str:
        """Return why a typed text is not recoverable for any word."""
        parts = typed.split(" ")
        if any(len(part) < _SHORTEST or self.is_known(part) for part in parts):
            return "known word"
        return ""

    def _find_classes(self, word: str) -> frozenset[str]:
        """Return the classes of a word. Different words of one class differ in meaning.

        The classes are the slots that have the word in a value, number words, weekdays, words for
        values such as months and directions, negations, and names.
        """
        found = {f"slot {slot}" for slot in self._slots.get(word, ())} | self._classes.get(
            word, set()
        )
        named = word in name_lists().always or (
            word in self._slots and not self._lexicon.is_word(word)
        )
        return frozenset(found | {NAME} if named else found)

    def _learn(self, word: str, texts: Iterable[str]) -> None:
        """Find the possible words for new texts."""
        readings = self._around(word).readings
        never = self._refuse_word(word)
        new = []
        for text in texts:
            if text not in readings:
                # The form of a text counts before the class of the word.
                why = EXACT if _is_exact(text) else never or self._refuse_text(text)
                if not (why or self._is_near(word, text)):
                    why = _UNCLEAR
                if why:
                    readings[text] = SlipReading(0.0, reason=why)
                else:
                    new.append(text)
        if not new:
            return
        counts = _count_slips(new, self._common).ravel()
        # A search of one dimension is much faster than one of two.
        found = np.flatnonzero(counts <= _MOST_SLIPS)
        rows, places = np.divmod(found, len(self._common))
        near, ones = places.tolist(), self._english.one_slip_away(new)
        single = np.flatnonzero(counts[found] == 1)
        for number, at in zip(rows[single].tolist(), places[single].tolist(), strict=True):
            ones[number].add(self._common[at])
        ends = np.searchsorted(rows, range(len(new) + 1)).tolist()
        for number, text in enumerate(new):
            weights = self._weigh_ones(word, text, ones[number])
            # Two slips in one word are rare, so only words that are much likelier matter.
            last = bisect_left(self._rarity, -_NEGLIGIBLE * weights[word])
            begin, end = ends[number], ends[number + 1]
            readings[text] = _Typed(weights, near[begin : bisect_left(near, last, begin, end)])

    def _is_near(self, word: str, text: str) -> bool:
        """Return whether a text is at most two slips away from a word or a misspelling of it."""
        return OSA.distance(word, text) <= _MOST_SLIPS or word in self._misspelled.get(text, ())

    def _weigh_ones(self, word: str, text: str, ones: Iterable[str]) -> Mapping[str, float]:
        """Return the weights of the original and of the words one slip away from a text."""
        others = {*ones, *self._misspelled.get(text, ())}
        if " " in text:
            joined = text.replace(" ", "")
            others = {joined} if self._lists(joined) else set()
        weights = {}
        # In order, so that sums of the weights are equal in each process.
        for other in sorted(others - {word}):
            if channel := self._one_slip(other, text):
                weights[other] = channel * self._prior(other)
        weights[word] = self._channel(word, text) * self._prior(word)
        return weights

    def _weigh(
        self, word: str, text: str, heard: frozenset[str]
    ) -> tuple[SlipReading, Mapping[str, float]]:
        """Return the interpretation of a text without context, see `read`.

        If context may help with an unclear text, also return its possible words and their weights.

        Args:
            word: the original word.
            text: the text.
            heard: the words of the dialogue that the text may stand for.
        """
        around = self._around(word)
        if text not in around.readings:  # It was removed to make room for other words.
            self._learn(word, [text])
        typed = around.readings[text]
        if isinstance(typed, SlipReading):
            return typed, {}
        weights = {**typed.weights}
        for other in sorted(heard):
            prior = self._prior(other) + _DIALOGUE / _VOCABULARY
            weights[other] = self._channel(other, text) * prior
        for at in typed.two:
            weights.setdefault(self._common[at], -self._rarity[at])
        reading = self._judge(word, around, weights)
        hopeful = reading.reason == _UNCLEAR and reading.posterior >= _HOPEFUL
        return reading, weights if hopeful else {}

    def _judge(self, word: str, around: _Around, weights: Mapping[str, float]) -> SlipReading:
        """Return the interpretation of a text, given its possible words."""
        total = math.fsum(weights.values())
        least = RIVAL * total
        rivals = {
            other: weight / total
            for other, weight in weights.items()
            if weight > least and self._is_rival(word, around, other)
        }
        # Another form or spelling of the original means the same.
        posterior = math.fsum(weights[form] for form in around.forms if form in weights) / total
        if rivals:
            rival = min(rivals, key=lambda other: (-rivals[other], other))
            return SlipReading(posterior, rival, rivals[rival], "rival")
        return SlipReading(posterior, reason=_UNCLEAR if posterior < SURE else "")

    def _find_around(self, word: str) -> _Around:
        return _Around(_forms(word), frozenset(self._lexicon.antonyms(word)), {word: _CLEAR})

    def _one_slip(self, word: str, typed: str) -> float:
        """Return the weight of a text as one slip in a word or as a known misspelling, or 0."""
        forms = self._forms_of.get(word)
        share = forms.get(typed, 0.0) if forms else 0.0
        slip = slip_between(word, typed, self._keyboard)
        return max(self._model.weight_of(slip), share) if slip else share

    def _channel(self, word: str, typed: str) -> float:
        """Return the weight of a text as at most two slips in a word."""
        several = OSA.distance(word, typed) > 1 and word not in self._misspelled.get(typed, ())
        return (not several and self._one_slip(word, typed)) or _TWO_SLIPS

    def _find_prior(self, word: str) -> float:
        rank = self._lexicon.frequency_rank(word)
        if rank is None and word in self._classes:
            rank = _LISTED
        english = _RARE if rank is None else _FREQUENT / (rank + _FLAT)
        known = _DATA / max(len(self._data), _VOCABULARY) if word in self._data else 0.0
        used = _DATA * self._usage.get(word, 0) / self._uses
        return _ENGLISH * english + known + used

    @cached_property
    def _misspelled(self) -> Mapping[str, tuple[str, ...]]:
        """Known misspelling -> its words."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for word, forms in self._forms_of.items():
            for form in forms:
                found[form].append(word)
        return {form: tuple(words) for form, words in found.items()}

    @cached_property
    def _common(self) -> Sequence[str]:
        """The possible words for texts with two slips, the likeliest first."""
        frequent = islice(self._lexicon.frequent_words, _COMMON)
        words = {*self._data, *self._usage, *frequent, *self._classes}
        return sorted(words, key=lambda word: (-self._prior(word), word))

    @cached_property
    def _rarity(self) -> Sequence[float]:
        """The weights of the words in `_common`, negated so that they are in ascending order."""
        return [-_TWO_SLIPS * self._prior(word) for word in self._common]

    @cached_property
    def _own(self) -> set[str]:
        """The words that are never slips, besides those of `_english`."""
        used = self._usage.keys() - self._misspelled.keys()
        return {*self._data, *used, *self._classes}

    @cached_property
    def _english(self) -> _Neighbours:
        """The English words and the names that are never slips."""
        return _neighbours(self._lexicon)


#: The interpretation of a text that can only stand for the original.
_CLEAR: Final = SlipReading(1.0)
_NOTHING: Final = frozenset[str]()
#: A dialogue, or the data of a bot, counts as having at least this number of words.
_VOCABULARY: Final = 100
#: A user's word belongs to the bot's subject if it is in at least this number of dialogues.
_OFTEN: Final = 3
#: Count the words of at most this number of dialogues.
_COUNTED: Final = 1000


def count_usage(dialogues: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the words that users say in several dialogues: word -> number of other dialogues.

    The numbers leave out one dialogue. So a word does not become likelier because the utterance
    that is tested has it.

    Args:
        dialogues: the utterances of the user in each dialogue.
    """
    counts = Counter[str]()
    for texts in islice(dialogues, _COUNTED):
        counts.update({word for text in texts for word in word_list(text)})
    return {
        word: count - 1
        for word, count in sorted(counts.items())
        if count >= _OFTEN and not _is_exact(word)
    }


def _is_exact(text: str) -> bool:
    """Return whether every letter of a text matters: digits, codes, addresses, Roman numerals."""
    bare = text
    if not text.isalpha():
        bare = _APOSTROPHES.sub("", text).replace("-", "").replace(" ", "")
    return len(bare) < _SHORTEST or not bare.isalpha() or bool(ROMAN.fullmatch(bare))


def _is_form(word: str, other: str) -> bool:
    """Return whether two words are equal, or forms that mean the same in a request.

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


def _forms(word: str) -> frozenset[str]:
    """Return all texts that are forms of a word, see `_is_form`."""
    stems = {word, *(word.removesuffix(ending) for ending in _ENDINGS)}
    ended = {stem + ending for stem in stems for ending in ("", *_ENDINGS)}
    spelled = {word.removesuffix(one) + other for one, other in _SPELLINGS}
    return frozenset(other for other in ended | spelled if _is_form(word, other))


def _count_slips(
    texts: Sequence[str], words: Sequence[str], most: int = _MOST_SLIPS
) -> npt.NDArray[np.uint8]:
    """Return the numbers of slips between texts and words, of shape (texts, words).

    Two swapped letters count once. All numbers above ``most`` are ``most + 1``.
    """
    return cdist(texts, words, scorer=OSA.distance, score_cutoff=most, dtype=np.uint8)


class _Neighbours:
    """Finds the words of a list that are one slip away from texts.

    Two words are one slip away if they are equal once either or both lack one letter.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.known = frozenset(words)
        self._words = [*self.known]
        codes, owners = _drop_letters(self._words)
        # To sort 16 bits takes a tenth of the time that it takes to sort all 64.
        buckets = _bucket(codes)
        order = np.argsort(buckets, kind="stable")
        self._codes, self._owners = codes[order], owners[order]
        self._starts = np.cumsum([0, *np.bincount(buckets, minlength=1 << 16)])

    def one_slip_away(self, texts: Sequence[str]) -> list[set[str]]:
        """Return for each text the words that are one slip away from it."""
        codes, owners = _drop_letters(texts)
        buckets = _bucket(codes).astype(np.int64)
        starts = self._starts[buckets]
        sizes = self._starts[buckets + 1] - starts
        asked = np.repeat(np.arange(len(codes)), sizes)
        places = np.arange(len(asked)) + (starts - np.cumsum(sizes) + sizes)[asked]
        hits = np.flatnonzero(self._codes[places] == codes[asked])
        found: list[set[str]] = [set() for _ in texts]
        pairs = zip(owners[asked[hits]].tolist(), self._owners[places[hits]].tolist(), strict=True)
        for owner, word in pairs:
            found[owner].add(self._words[word])
        return [
            {word for word in some if OSA.distance(word, text, score_cutoff=1) == 1}
            for text, some in zip(texts, found, strict=True)
        ]


def _bucket(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    """Return the first 16 bits of hashes."""
    return (codes >> np.uint64(48)).astype(np.uint16)


@lru_cache(maxsize=2)
def _reader(
    lexicon: Lexicon,
    model: NoiseModel,
    values: tuple[tuple[str, tuple[str, ...]], ...],
    usage: tuple[tuple[str, int], ...],
) -> SlipReader:
    return SlipReader(lexicon, model, dict(values), dict(usage))


@lru_cache(maxsize=2)
def _neighbours(lexicon: Lexicon) -> _Neighbours:
    """Return an index of names and of words that are never slips.

    Texts of the lexicon without a part of speech are left out, because they may be frequent slips.
    """
    words = {*lexicon.words_with_pos, *name_lists().always}
    return _Neighbours({word for word in words if len(word) <= _LONGEST})


#: Base of the hash of a text, any odd number, and its inverse modulo 2 ** 64.
_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 1 << 64)


def _drop_letters(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return hashes of texts, with and without one letter, and the text of each hash.

    The hash of a text is the sum of letter ``i`` times ``_BASE ** i``, modulo 2 ** 64.
    """
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    owners = np.repeat(np.arange(len(texts)), lengths)
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(owners)) - starts[owners]
    powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, _BASE, dtype=np.uint64))
    letters = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    terms = letters.astype(np.uint64) * powers[places]
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms)])
    before = sums[:-1] - sums[starts][owners]
    whole = sums[starts + lengths] - sums[starts]
    dropped = before + (whole[owners] - before - terms) * np.uint64(_INVERSE)
    return np.concatenate([whole, dropped]), np.concatenate([np.arange(len(texts)), owners])
