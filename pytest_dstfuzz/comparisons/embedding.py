"""Comparison by meaning: the shipped embedding, other embeddings, and calibration."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from itertools import chain, combinations
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult, TextPair
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange, answer_of
from pytest_dstfuzz.dialogue.quantities import without_quantities
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.seeding import stream

__all__ = ["NUMBER", "load_shipped_vectors"]


Vector = np.ndarray[Any, np.dtype[np.float32]]
#: Minimum and maximum length of letter n-grams, and the number of hash buckets.
SHORTEST: Final = 3
LONGEST: Final = 5
GRAMS: Final = 8192
#: Token for every word with a digit, since numbers are compared separately.
NUMBER: Final = "#"
#: Two texts count as the same sentence if they have at least this share of their words in common.
SENTENCE: Final = 2 / 3
#: Factor for a replaced word in such texts, since the word is their only difference.
REPLACED: Final = 1.1
#: Maximum number of pairs of words to compare at once, which take 12 MB.
_CELLS: Final = 1 << 20
#: Texts with more different words are compared as a whole, and not word by word.
MOST_WORDS: Final = 4000
#: Maximum length in characters of a text whose vectors are kept in large numbers.
_SHORT: Final = 2000
#: Maximum length of a word in characters. Longer words are cut.
_LONGEST_WORD: Final = 40
#: A word that becomes `NUMBER`.
_FIGURE: Final = "0"
_ENDINGS: Final = ("'s", "'re", "'ll", "'ve", "'d", "'m")
_CONTRACTED: Final = {"can't": ("can",), "won't": ("will",), "shan't": ("shall",)}


def tokens(text: str) -> list[str]:
    """Return the tokens of a text for the embedding.

    >>> tokens("I don't think it's 8:30.")
    ['i', 'do', 'not', 'think', 'it', '#']
    """
    found: list[str] = []
    for word in word_list(text):
        bare = (
            word.replace("’", "'")[:_LONGEST_WORD] if not word.isalpha() else word[:_LONGEST_WORD]
        )
        if bare.isalpha():
            found += ("can", "not") if bare == "cannot" else (bare,)
        elif any(map(str.isdigit, bare)):
            found.append(NUMBER)
        elif bare.endswith("n't"):
            found += (*_CONTRACTED.get(bare, (bare[:-3],)), "not")
        else:
            ending = next((one for one in _ENDINGS if bare.endswith(one)), "")
            found += [part for part in bare.removesuffix(ending).split("-") if part]
    return found


def grams(word: str) -> list[int]:
    """Return the hash buckets of a word's letter n-grams, with markers for both ends."""
    marked = f"<{word}>"
    return [
        zlib.crc32(marked[at : at + size].encode("utf-8", "surrogatepass")) % GRAMS
        for size in range(SHORTEST, LONGEST + 1)
        for at in range(len(marked) - size + 1)
    ]


class TextVectors(NamedTuple):
    """A text: its words, a vector for each word, the lengths of the vectors, and their sum."""

    words: tuple[str, ...]
    rows: Vector
    lengths: Vector
    total: Vector

    def shared(self, other: TextVectors) -> float:
        """Return the number of common words as a share of the words of the longer text."""
        both = Counter(self.words) & Counter(other.words)
        return both.total() / max(len(self.words), len(other.words), 1)


class TextDistance(NamedTuple):
    """The distance of two texts."""

    #: The distance from 0 to 2. The distances of the shipped embedding are at most 1.
    distance: float
    #: For each text, the word with most content that the other text lacks; empty if unknown.
    words: tuple[str, str]


def apart(one: TextVectors, other: TextVectors) -> TextDistance:
    """Return the distance of two texts: how much of the content of each text the other lacks.

    The content of a word is the squared length of its vector. The other text lacks a share of this
    content: 1 - cosine for the most similar word of the other text. The distance is the mean share
    of content that is missing, over both texts. Two wordings of one answer share some words with
    much content. Answers to different questions share almost none.

    If two texts have mostly the same words, a replaced word (``oak``, ``glass``) may still change
    the meaning. Therefore such texts have a minimum distance, which is at most 1. To compute it,
    take from each text the word with most missing content. The smaller of these two contents is the
    minimum distance. If one text only has additional words, there is no minimum.

    If a text has more than `MOST_WORDS` different words, the distance is 1 - cosine of the sums of
    the vectors.
    """
    if not one.words or not other.words:
        return TextDistance(0.0 if one.words == other.words else 1.0, ("", ""))
    lacks = _lacks(one, other)
    if lacks is None:
        return TextDistance(round(min(max(_whole_shift(one, other), 0.0), 1.0), 6), ("", ""))
    said = (one.lengths**2, other.lengths**2)
    shares = [
        float(mine @ lack) / max(float(mine.sum()), 1e-9)
        for mine, lack in zip(said, lacks, strict=True)
    ]
    distance = sum(shares) / 2
    lost, new = one.lengths * lacks[0], other.lengths * lacks[1]
    farthest = (int(lost.argmax()), int(new.argmax()))
    if one.shared(other) >= SENTENCE:
        replaced = REPLACED * min(float(lost[farthest[0]]), float(new[farthest[1]]))
        distance = max(distance, replaced)
    distance = min(max(distance, 0.0), 1.0)
    return TextDistance(round(distance, 6), (one.words[farthest[0]], other.words[farthest[1]]))


def shift(one: TextVectors, other: TextVectors) -> float:
    """Return the shift of meaning between a text and its edited form, from 0 to 1.5.

    The shift is the mean of two values. One is 1 - cosine of the sums of the vectors. The other is
    the content of the replaced word that differs most, at most 1. If a text has more than
    `MOST_WORDS` different words, the shift is the first value.
    """
    if not one.words or not other.words:
        return 0.0 if one.words == other.words else 1.0
    whole, lacks = _whole_shift(one, other), _lacks(one, other)
    if lacks is None:
        return round(max(whole, 0.0), 6)
    lost, new = float((one.lengths * lacks[0]).max()), float((other.lengths * lacks[1]).max())
    return round(max((whole + min(lost, new, 1.0)) / 2, 0.0), 6)


def _whole_shift(one: TextVectors, other: TextVectors) -> float:
    """Return 1 - cosine of the sums of the vectors of two texts."""
    lengths = float(np.sqrt((one.total @ one.total) * (other.total @ other.total)))
    return 1.0 - float(one.total @ other.total) / max(lengths, 1e-9)


def _lacks(one: TextVectors, other: TextVectors) -> tuple[Vector, Vector] | None:
    """Return for each word of two texts 1 - cosine for the most similar word of the other text.

    Long texts are compared by their different words, block by block. The result is ``None`` if a
    text has too many of them.
    """
    if len(one.words) * len(other.words) <= _CELLS:
        cosines = _cosines(one.rows, one.lengths, other.rows, other.lengths)
        return 1 - cosines.max(axis=1), 1 - cosines.max(axis=0)
    (mine, of_mine), (its, of_its) = _distinct(one.words), _distinct(other.words)
    if max(len(mine), len(its)) > MOST_WORDS:
        return None
    best = np.zeros(len(mine), np.float32), np.zeros(len(its), np.float32)
    size = max(_CELLS // len(its), 1)
    for at in range(0, len(mine), size):
        some = mine[at : at + size]
        cosines = _cosines(one.rows[some], one.lengths[some], other.rows[its], other.lengths[its])
        best[0][at : at + size] = cosines.max(axis=1)
        np.maximum(best[1], cosines.max(axis=0), out=best[1])
    return 1 - best[0][of_mine], 1 - best[1][of_its]


def _cosines(rows: Vector, lengths: Vector, others: Vector, other_lengths: Vector) -> Vector:
    """Return the cosines of vectors, from 0 to 1. Negative cosines count as 0."""
    norms = np.maximum(np.outer(lengths, other_lengths), np.float32(1e-9))
    return np.asarray(np.clip((rows @ others.T) / norms, 0, 1), np.float32)


def _distinct(words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the first place of each different word, and for each word its number among them."""
    numbers: dict[str, int] = {}
    firsts: list[int] = []
    of_words: list[int] = []
    for place, word in enumerate(words):
        number = numbers.setdefault(word, len(numbers))
        if number == len(firsts):
            firsts.append(place)
        of_words.append(number)
    return firsts, of_words


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Vectors that are stored as integers from -127 to 127 with one scale for each row."""

    places: dict[str, int]
    words: np.ndarray[Any, np.dtype[np.int8]]
    word_scales: Vector
    grams: np.ndarray[Any, np.dtype[np.int8]]
    gram_scales: Vector
    #: The length of the vector of an unlisted word.
    rare: float
    #: The calibrated maximum distance of equivalent texts.
    eps: float
    #: 12 hexadecimal digits of the file's digest.
    digest: str

    @classmethod
    def read(cls, content: bytes) -> WordVectors:
        """Read a file of vectors that `tools.similarity.build` has written."""
        with np.load(BytesIO(content), allow_pickle=False) as file:
            listed = bytes(file["listed"]).decode("utf-8").split("\n")
            return cls(
                {word: place for place, word in enumerate(listed)},
                file["words"],
                file["word_scales"].astype(np.float32),
                file["grams"],
                file["gram_scales"].astype(np.float32),
                float(file["rare"]),
                float(file["eps"]),
                hashlib.sha256(content).hexdigest()[:12],
            )

    def parts(self, text: str) -> TextVectors:
        """Return the words of a text with their vectors. All numbers and times are one word."""
        words = tokens(without_quantities(text, f" {_FIGURE} "))
        rows = np.zeros((len(words), self.words.shape[1]), np.float32)
        for number, word in enumerate(words):
            place = self.places.get(word)
            if place is None:
                rows[number] = self._of_grams(word)
            else:
                rows[number] = self.words[place] * self.word_scales[place]
        return TextVectors(tuple(words), rows, np.sqrt((rows**2).sum(axis=1)), rows.sum(axis=0))

    def _of_grams(self, word: str) -> Vector:
        places = grams(word)
        if not places:
            return np.zeros(self.grams.shape[1], np.float32)
        mean = self.gram_scales[places] @ self.grams[places].astype(np.float32)
        length = max(float(np.sqrt(mean @ mean)), 1e-9)
        return np.asarray(mean * np.float32(self.rare / length), np.float32)


@cache
def load_shipped_vectors() -> WordVectors:
    """Return the shipped vectors."""
    file = resources.files("pytest_dstfuzz") / "resources" / "similarity" / "vectors.npz"
    return WordVectors.read(file.read_bytes())


#: The name of the shipped embedding.
SHIPPED: Final = "shipped"


class Embedding(Protocol):
    """Computes the distance of two texts."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def digest(self) -> str:
        """A digest of the weights."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode the given texts in one batch, which is cheaper than many."""

    def apart(self, before: str, found: str) -> TextDistance:
        """Return the distance of two texts, from 0 to 2."""


class ShippedEmbedding:
    """The small shipped embedding, see `load_shipped_vectors`."""

    name = SHIPPED

    @property
    def digest(self) -> str:
        """The digest of its file."""
        return load_shipped_vectors().digest

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing, since each comparison is fast."""
        del texts

    def apart(self, before: str, found: str) -> TextDistance:
        """Return the distance of two texts."""
        return apart(_parts(before), _parts(found))


class SameMeaning(Comparison):
    """Compares the distance of two texts, computed by an embedding, with a threshold."""

    def __init__(self, embedding: Embedding | None = None, threshold: float | None = None) -> None:
        """Store an embedding; the default is the shipped one with its calibrated threshold."""
        self._embedding = embedding or ShippedEmbedding()
        self._threshold = eps() if threshold is None else threshold

    @property
    def name(self) -> str:
        """The name, the name of the embedding, and the threshold."""
        return f"embedding:{self._embedding.name}<={self._threshold:g}"

    @property
    def identity(self) -> str:
        """The name, and a digest of the weights."""
        return f"{self.name}#{self._embedding.digest}"

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Pass all texts of the pairs to the embedding in one batch."""
        texts = [text for pair in pairs if pair.before != pair.found for text in pair[1:3]]
        self._embedding.prepare(list(dict.fromkeys(texts)))

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether the distance is within the threshold."""
        del path, asked
        if before == found:
            return ComparisonResult(same=True, distance=0.0)
        far, words = self._embedding.apart(before, found)
        if far <= self._threshold:
            return ComparisonResult(same=True, distance=far)
        why = f"{far:.2f} apart, {self._threshold:g} allowed"
        return ComparisonResult(
            False, far, f"{why} ({words[0]} / {words[1]})" if all(words) else why
        )


def distance(before: str, found: str) -> float:
    """Return the distance of two texts by the shipped embedding, from 0 (the same) to 1.

    The function `apart` describes the distance. If only one text has words, the distance is 1.

    >>> distance("The bus leaves at noon.", "The bus leaves at twelve.")
    0.0
    """
    return 0.0 if before == found else ShippedEmbedding().apart(before, found).distance


def meaning_shift(before: str, after: str) -> float:
    """Return the shift of meaning of an edited text by the shipped embedding.

    The function `shift` describes it. An edit keeps most words, so each replaced word counts.
    """
    return 0.0 if before == after else shift(_parts(before), _parts(after))


def eps() -> float:
    """Return the maximum distance of equivalent replies for the shipped embedding."""
    return load_shipped_vectors().eps


def _parts(text: str) -> TextVectors:
    return (_short_parts if len(text) <= _SHORT else _long_parts)(text)


@lru_cache(maxsize=1 << 12)
def _short_parts(text: str) -> TextVectors:
    return load_shipped_vectors().parts(text)


@lru_cache(maxsize=1 << 5)
def _long_parts(text: str) -> TextVectors:
    return load_shipped_vectors().parts(text)


#: Maximum number of pairs of replies to different questions.
MOST: Final = 4000
#: Minimum number of recorded replies.
LEAST: Final = 50
#: Share of replies to different questions that may count as the same. It is used if the
#: bot's own replies to the same question are unknown.
TAKEN: Final = 0.05
#: The percentiles to print.
SHOWN: Final = (1, 5, 25, 50, 75, 95)
_NOWHERE: Final = Context((Exchange("", "?"),))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distances of replies, and the threshold for equivalent replies that follows from them."""

    #: Distances of recorded replies to different questions, in ascending order.
    different: tuple[float, ...]
    #: Distances of a system's own replies to the same question; empty if no system was asked.
    own: tuple[float, ...] = ()

    @property
    def threshold(self) -> float:
        """The maximum distance of equivalent replies, to two digits.

        If the bot's own replies are known, the threshold balances two error rates. One is the share
        of the bot's replies to the same question whose distance is above the threshold. The other
        is the share of replies to different questions whose distance is below it. If the bot's own
        replies are unknown, 95 % of the replies to different questions are above the threshold.
        """
        if not self.own:
            return math.floor(100 * self.different[int(TAKEN * len(self.different))]) / 100
        points = np.arange(201) / 100
        apart = 1 - np.searchsorted(self.own, points, side="right") / len(self.own)
        near = np.searchsorted(self.different, points, side="right") / len(self.different)
        # If several thresholds are equally good, take the middle one.
        errors = np.maximum(apart, near)
        best = points[errors == errors.min()]
        return round(float(best[(len(best) - 1) // 2]), 2)

    def lines(self) -> Iterator[str]:
        """Yield lines of text with the percentiles, the threshold and its error rates."""
        heads = "".join(f"{f'{share} %':>7}" for share in SHOWN)
        yield f"{'percentiles of the distance':<46}{heads}"
        rows = [
            (f"recorded replies to different questions ({len(self.different):,})", self.different)
        ]
        rows += [(f"own replies to one question ({len(self.own):,})", self.own)] if self.own else []
        for told, distances in rows:
            cells = "".join(f"{np.percentile(distances, share):7.2f}" for share in SHOWN)
            yield f"{told:<46}{cells}"
        eps = self.threshold
        taken = np.mean(np.array(self.different) <= eps)
        yield f"--dst-compare=embedding:threshold={eps:g}"
        yield f"  different questions: {taken:.1%} of the pairs count as the same"
        if self.own:
            apart = np.mean(np.array(self.own) > eps)
            yield f"  one question: {apart:.1%} of the pairs count as different"


def different_replies(data: DialogueSet, seed: int) -> list[tuple[str, str]]:
    """Return pairs of recorded replies to different questions, first those of one dialogue.

    Fallback replies and pairs with equal texts are left out.

    Raises:
        UserError: there are too few recorded replies.
    """
    by_dialogue = [
        [
            answer
            for turn in dialogue.turns
            if (answer := answer_of(dialogue, turn.index) or "").strip() and not is_fallback(answer)
        ]
        for dialogue in data.dialogues
    ]
    replies = [*chain.from_iterable(by_dialogue)]
    if len(replies) < LEAST:
        raise UserError(
            f"a threshold needs at least {LEAST} recorded replies, and the data {data.name!r} "
            f"(split {data.split}) has {len(replies)}: give the threshold as "
            "--dst-compare=embedding:threshold=DISTANCE"
        )
    rng = stream(seed, "calibrate")
    near = [
        (one, other) for said in by_dialogue for one, other in combinations(said, 2) if one != other
    ]
    chosen = [near[place] for place in sorted(rng.permutation(len(near))[:MOST])]
    several = len(set(replies)) > 1
    while several and len(chosen) < MOST:
        one, other = (replies[int(place)] for place in rng.integers(len(replies), size=2))
        if one != other:
            chosen.append((one, other))
    return chosen


def distances(comparison: Comparison, pairs: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """Return the distances of pairs of texts, in ascending order."""
    asked = [TextPair(REPLY, *pair, _NOWHERE) for pair in pairs]
    comparison.prepare(asked)
    found = (comparison.compare(*pair).distance for pair in asked)
    return tuple(sorted(distance for distance in found if distance is not None))
