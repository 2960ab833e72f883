"""The small embedding that ships: vectors of words and of groups of letters, in numpy.

A text is the sum of the vectors of its words, and how much a word counts is the length of its
vector. A word that is not listed is the mean of the vectors of its 3- to 5-letter groups. Numbers,
times and dates are all one: they are compared by themselves. How the vectors were made is in
``resources/similarity/README.md``.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from typing import Any, Final, NamedTuple

import numpy as np

from pytest_dstfuzz.dialogue.quantities import without_quantities
from pytest_dstfuzz.perturb.words import word_list

__all__ = ["NUMBER", "shipped_vectors"]

Vector = np.ndarray[Any, np.dtype[np.float32]]
#: Shortest and longest group of letters, and into how many places they are hashed.
SHORTEST: Final = 3
LONGEST: Final = 5
GRAMS: Final = 8192
#: Stands for whatever has a digit in it: numbers are compared by themselves.
NUMBER: Final = "#"
#: Share of the words that two texts have in common where they are one sentence.
SENTENCE: Final = 2 / 3
#: How much more a replaced word counts there: it is all that sets the two apart.
REPLACED: Final = 1.1
#: Words longer than this are cut: nobody reads them.
_LONGEST_WORD: Final = 40
#: A word that `NUMBER` is made of.
_FIGURE: Final = "0"
_ENDINGS: Final = ("'s", "'re", "'ll", "'ve", "'d", "'m")
_CONTRACTED: Final = {"can't": ("can",), "won't": ("will",), "shan't": ("shall",)}


def tokens(text: str) -> list[str]:
    """Return the words of a text as the embedding knows them.

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
    """Return the places of the letter groups of a word, marked where it begins and ends."""
    marked = f"<{word}>"
    return [
        zlib.crc32(marked[at : at + size].encode("utf-8", "surrogatepass")) % GRAMS
        for size in range(SHORTEST, LONGEST + 1)
        for at in range(len(marked) - size + 1)
    ]


class TextVectors(NamedTuple):
    """A text: its words, a row for each, their lengths, and the sum of the rows."""

    words: tuple[str, ...]
    rows: Vector
    lengths: Vector
    total: Vector

    def shared(self, other: TextVectors) -> float:
        """Return the share of the words of the longer text that both have, from 0 to 1."""
        both = Counter(self.words) & Counter(other.words)
        return both.total() / max(len(self.words), len(other.words), 1)


class Apart(NamedTuple):
    """How far two texts are apart."""

    #: From 0 to 2; by the small embedding to 1.
    distance: float
    #: The words of either that say most of what the other has nothing like; empty where one says
    #: no more than the other.
    words: tuple[str, str]


def apart(one: TextVectors, other: TextVectors) -> Apart:
    """Return how far two texts are apart: how much of what each says is not like the other.

    A word says as much as the square of the length of its vector, and of that the other text lacks
    1 - the cosine of the nearest word there. The mean of both texts' shares is what they lack on
    the whole: two wordings of one answer share some words that say much, answers to different
    questions next to none.

    Two texts that have most of their words in common are one sentence. Then a word that stands
    for another one (``oak``, ``glass``) counts by itself, at most 1: the farthest word of either
    text is taken, and of the two the lesser, as a text that only says more replaces nothing.
    """
    if not one.words or not other.words:
        return Apart(0.0 if one.words == other.words else 1.0, ("", ""))
    norms = np.maximum(np.outer(one.lengths, other.lengths), np.float32(1e-9))
    cosines = np.clip((one.rows @ other.rows.T) / norms, 0, 1)
    lacks = (1 - cosines.max(axis=1), 1 - cosines.max(axis=0))
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
    return Apart(round(distance, 6), (one.words[farthest[0]], other.words[farthest[1]]))


def shift(one: TextVectors, other: TextVectors) -> float:
    """Return how far the meaning of an edited text is from what it was, from 0 to 1.5.

    The mean of 1 - cosine of their sums and of what the farthest replaced word says, at most 1.
    """
    if not one.words or not other.words:
        return 0.0 if one.words == other.words else 1.0
    lengths = float(np.sqrt((one.total @ one.total) * (other.total @ other.total)))
    whole = 1.0 - float(one.total @ other.total) / max(lengths, 1e-9)
    norms = np.maximum(np.outer(one.lengths, other.lengths), np.float32(1e-9))
    cosines = np.clip((one.rows @ other.rows.T) / norms, 0, 1)
    lost = float((one.lengths * (1 - cosines.max(axis=1))).max())
    new = float((other.lengths * (1 - cosines.max(axis=0))).max())
    return round(max((whole + min(lost, new, 1.0)) / 2, 0.0), 6)


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Vectors in whole numbers from -127 to 127, one scale a row."""

    places: dict[str, int]
    words: np.ndarray[Any, np.dtype[np.int8]]
    word_scales: Vector
    grams: np.ndarray[Any, np.dtype[np.int8]]
    gram_scales: Vector
    #: Length of the vector of a word that is not listed.
    rare: float
    #: Distance up to which two texts say the same, as calibrated.
    eps: float
    #: 12 hexadecimal digits of the file.
    digest: str

    @classmethod
    def read(cls, content: bytes) -> WordVectors:
        """Read what `tools.similarity.build` wrote."""
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
        """Return the words of a text with their vectors, each quantity as one number."""
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
def shipped_vectors() -> WordVectors:
    """Return the vectors that ship."""
    file = resources.files("pytest_dstfuzz") / "resources" / "similarity" / "vectors.npz"
    return WordVectors.read(file.read_bytes())
