"""A clean utterance made ready for many variants."""

from __future__ import annotations

from typing import NamedTuple

from pytest_dstfuzz.perturb.draft import Draft
from pytest_dstfuzz.perturb.masks import Mask
from pytest_dstfuzz.perturb.words import Parts, Word


class Source(NamedTuple):
    """A clean utterance made ready for many variants.

    Attributes:
        text: the utterance as typed.
        parts: its words, and where they are.
        mask: what guards them; all free in the profile ``edit-rate``.
        draft: what every variant starts from.
        different: its different words, as `rates.edit_w` compares them.
        word_limit: largest ``edit_w`` that is allowed.
    """

    text: str
    parts: Parts
    mask: Mask
    draft: Draft
    different: frozenset[str]
    word_limit: float

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the utterance."""
        return self.parts.words
