"""The small embedding that ships: vectors of words and of groups of letters, in numpy.

A text is the sum of the vectors of its words, brought to length 1; how much a word counts is the
length of its vector. A word that is not listed is the mean of the vectors of its 3- to 5-letter
groups. How the vectors were made is in ``resources/similarity/README.md``.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.perturb.words import word_list

Vector = np.ndarray[Any, np.dtype[np.float32]]
#: Shortest and longest group of letters, and into how many places they are hashed.
SHORTEST: Final = 3
LONGEST: Final = 5
GRAMS: Final = 8192
#: Stands for whatever has a digit in it: numbers are compared by themselves.
NUMBER: Final = "#"
#: Words longer than this are cut: nobody reads them.
_LONGEST_WORD: Final = 40
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

    def encode(self, text: str) -> Vector:
        """Return the vector of a text, of length 1; of nothing but zeros where it says nothing."""
        total = np.zeros(self.words.shape[1], np.float32)
        known = []
        for token in tokens(text):
            place = self.places.get(token)
            if place is None:
                total += self._of_grams(token)
            else:
                known.append(place)
        if known:
            total += self.word_scales[known] @ self.words[known].astype(np.float32)
        length = float(np.sqrt(total @ total))
        return total / np.float32(length) if length > 0 else total

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


@lru_cache(maxsize=1 << 14)
def _encoded(text: str) -> Vector:
    return shipped_vectors().encode(text)


def distance(before: str, found: str) -> float:
    """Return 1 - cosine of two texts, from 0 to 2; 0 for equal ones, 1 where one says nothing."""
    if before == found:
        return 0.0
    return float(min(max(1.0 - float(_encoded(before) @ _encoded(found)), 0.0), 2.0))
