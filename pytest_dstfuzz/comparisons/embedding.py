"""The comparison of meaning: how far two texts are apart by an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison, TextPair
from pytest_dstfuzz.comparisons.vectors import Apart, TextVectors, apart, shift, shipped_vectors
from pytest_dstfuzz.dialogue.dialogues import Context

#: The name of the embedding that ships.
SHIPPED: Final = "shipped"


class Embedding(Protocol):
    """Something that says how far two texts are apart."""

    @property
    def name(self) -> str:
        """How reports call it."""

    @property
    def digest(self) -> str:
        """What tells its weights from others."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Get ready for some texts: one batch is cheaper than many."""

    def apart(self, before: str, found: str) -> Apart:
        """Return how far two texts are apart, from 0 to 2."""


class ShippedEmbedding:
    """The small one that ships, see `vectors`."""

    name = SHIPPED

    @property
    def digest(self) -> str:
        """Of its file."""
        return shipped_vectors().digest

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: it is quick."""
        del texts

    def apart(self, before: str, found: str) -> Apart:
        """Return how far two texts are apart."""
        return apart(_parts(before), _parts(found))


class SameMeaning(Comparison):
    """The embeddings of both texts are at most so far apart."""

    def __init__(self, embedding: Embedding | None = None, threshold: float | None = None) -> None:
        """Take an embedding, by default the shipped one, whose threshold was calibrated."""
        self._embedding = embedding or ShippedEmbedding()
        self._threshold = eps() if threshold is None else threshold

    @property
    def name(self) -> str:
        """The name, that of the embedding, and the threshold."""
        return f"embedding:{self._embedding.name}<={self._threshold:g}"

    @property
    def identity(self) -> str:
        """The name, and a digest of the weights."""
        return f"{self.name}#{self._embedding.digest}"

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Let the embedding see all texts of some pairs at once."""
        texts = [text for pair in pairs if pair.before != pair.found for text in pair[1:3]]
        self._embedding.prepare(list(dict.fromkeys(texts)))

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether both are near enough."""
        del path, asked
        if before == found:
            return Compared(same=True, distance=0.0)
        far, words = self._embedding.apart(before, found)
        if far <= self._threshold:
            return Compared(same=True, distance=far)
        why = f"{far:.2f} apart, {self._threshold:g} allowed"
        return Compared(False, far, f"{why} ({words[0]} / {words[1]})" if all(words) else why)


def distance(before: str, found: str) -> float:
    """Return how far two texts are apart by the shipped embedding, from 0 (the same) to 2.

    See `vectors.apart`. A text without words is 1 from every other one.

    >>> distance("The bus leaves at noon.", "The bus leaves at twelve.")
    0.0
    """
    return 0.0 if before == found else ShippedEmbedding().apart(before, found).distance


def meaning_shift(before: str, after: str) -> float:
    """Return how far an edited text is from what it meant by the shipped embedding.

    See `vectors.shift`: an edit keeps most words, so each one that is replaced counts.
    """
    return 0.0 if before == after else shift(_parts(before), _parts(after))


def eps() -> float:
    """Return the distance up to which the shipped embedding takes two replies for the same."""
    return shipped_vectors().eps


@lru_cache(maxsize=1 << 12)
def _parts(text: str) -> TextVectors:
    return shipped_vectors().parts(text)
