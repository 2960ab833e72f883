"""What a source of candidates must offer: the compiled lexicon and the user's own alike."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class SynonymSource(Protocol):
    """Where dictionary synonyms come from."""

    @property
    def name(self) -> str:
        """Identifies the source and its content; goes into the lexicon's fingerprint."""
        ...

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return synonyms of ``word``, best first, lower-cased, in a deterministic order."""
        ...


@runtime_checkable
class NeighbourSource(Protocol):
    """Where neighbours in an embedding space come from."""

    @property
    def name(self) -> str:
        """Identifies the source and its content; goes into the lexicon's fingerprint."""
        ...

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return neighbours of ``word`` with their cosine, nearest first."""
        ...


@runtime_checkable
class InsertionSource(Protocol):
    """Where a word that fits between two words comes from."""

    @property
    def name(self) -> str:
        """Identifies the source and its content; goes into the lexicon's fingerprint."""
        ...

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return words that fit between ``left`` and ``right``, likeliest first.

        ``""`` stands for the start or the end of the utterance.
        """
        ...
