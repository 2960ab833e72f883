"""The edits that a violation is blamed on, and the words that they hit."""

from __future__ import annotations

from typing import NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.perturb.edits import source_spans, undo_edits
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import take_apart, word_list


class Edited(NamedTuple):
    """An utterance and the edits in it that a violation is blamed on."""

    clean: str
    text: str
    edits: tuple[Edit, ...]

    @property
    def reached(self) -> tuple[str, ...]:
        """The clean words, in lower case, that the edits reach into; none where they only add."""
        words = take_apart(self.clean).words
        spans = list(source_spans(self.edits))
        found = (
            word.lower
            for start, end in spans
            for word in words
            if start < word.end and word.start < end
        )
        return tuple(dict.fromkeys(found))

    @property
    def words(self) -> tuple[str, ...]:
        """The clean words, in lower case, that the edits reach into, or the nearest ones."""
        words = take_apart(self.clean).words
        found: list[str] = []
        for start, end in source_spans(self.edits):
            # The second: a blank is at two words, what is put in at the one that it follows.
            inside = [word.lower for word in words if start < word.end and word.start < end]
            beside = [word.lower for word in words if start <= word.end and word.start <= end]
            near = sorted(words, key=lambda word: max(word.start - end, start - word.end))
            found += inside or beside or [word.lower for word in near[:1]]
        return tuple(dict.fromkeys(found))

    @property
    def brought(self) -> frozenset[str]:
        """The words, in lower case, that only the edits brought."""
        return frozenset(word_list(self.text)).difference(word_list(self.clean))


def blamed(turn: TurnResult, variant: VariantResult) -> Edited:
    """Return the edits that are to blame, of the smallest version where that is known.

    They are those of the turn, or of the last earlier turn with any where these are to blame.
    """
    plain = variant.plain
    earlier = plain.context_edits
    if earlier and (variant.cause == "context" or not plain.edits):
        text = plain.context[earlier[-1].turn_index]
        return Edited(undo_edits(text, earlier[-1].edits), text, earlier[-1].edits)
    return Edited(turn.user, plain.text, plain.edits)
