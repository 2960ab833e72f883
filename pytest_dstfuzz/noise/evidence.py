"""What a model of typed text is fitted to: texts, slips that were found in them, and lists."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.noise.find import Slipped, TextCounts


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a model of typed text is fitted to."""

    counts: TextCounts
    slips: Sequence[Slipped]
    #: Correct form -> misspelled ones, of a list.
    misspellings: Mapping[str, Sequence[str]]
    keyboard: Mapping[str, str]

    def part(self, number: int, parts: int) -> tuple[list[Slipped], list[Slipped]]:
        """Return the slips of all other parts, and those of one; a dialogue is in one part."""
        inside = [part_of(slip.source, parts) == number for slip in self.slips]
        kept = [slip for slip, held in zip(self.slips, inside, strict=True) if not held]
        return kept, [slip for slip, held in zip(self.slips, inside, strict=True) if held]


def part_of(source: str, parts: int) -> int:
    """Return in which of some parts a dialogue is."""
    return int(hashlib.sha256(source.encode()).hexdigest()[:8], 16) % parts


def distinct_slips(slips: Iterable[Slipped]) -> Counter[tuple[str, str]]:
    """Return word and slip -> dialogues that have it, sorted."""
    places = {(slip.word, slip.typed, slip.source) for slip in slips}
    return Counter((word, typed) for word, typed, _ in sorted(places))
