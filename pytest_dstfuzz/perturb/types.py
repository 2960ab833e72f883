"""Edits, variants and actions: what the perturbation rooms hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["Action", "Edit", "Variant"]

#: What became of one generated variant before any tracker saw it.
Status = Literal["valid", "vacuous", "vetoed", "over_rate"]


@dataclass(frozen=True, slots=True)
class Action:
    """A point of the unit cube, and how many transformations it associates."""

    #: Reals in [0, 1] on the grid of 1/1024; see `ActionSpace` for the layout.
    vector: tuple[float, ...]
    k: int  #: Number of associated transformations: those of largest importance.


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, as made on the text that the edits before it had produced.

    ``text[start:end] == before`` holds for that text, and the edit puts ``after``
    in its place; offsets are in code points.
    """

    transformation: str
    operator: str
    start: int
    end: int
    before: str
    after: str


class Variant(NamedTuple):
    """A perturbed utterance and how it came about."""

    #: The clean utterance.
    source: str
    text: str
    #: In the order in which they were made.
    edits: tuple[Edit, ...]
    #: Jaccard distance of the word sets, before and after the word-level edits, in [0, 1].
    edit_w: float
    #: 1 - Jaro similarity, before and after the character-level edits, in [0, 1].
    edit_c: float
    status: Status
    #: Why it is not valid: the lock that vetoed it, or the rate that is over its limit;
    #: ``""`` for a valid variant.
    reason: str = ""
    #: Natural logarithm of how likely the noise model makes the text, given that no lock is
    #: touched; ``None`` in profiles without one, and for what it cannot make.
    log_probability: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the variant passed the validity profile."""
        return self.status == "valid"
