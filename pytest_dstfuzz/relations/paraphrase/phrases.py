"""Phrase table: a phrase gives way to one that says the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.perturb.draft import FREE
from pytest_dstfuzz.perturb.words import match_case
from pytest_dstfuzz.relations.paraphrase.choices import Paraphrase, Places, begins_sentence
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Replacement, Scene

_NONE: Final = "no phrase of the table that is free of locks"
_MOST: Final = 4
_SHIPPED: Final = resources.files("pytest_dstfuzz") / "resources" / "relations"


@dataclass(frozen=True)
class PhraseTable:
    """Phrases, in lower case with blanks between their words, and what may stand for each."""

    others: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]]
    #: Words of the longest one.
    longest: int

    @classmethod
    def read(cls, text: str, where: str, *, both_ways: bool = True) -> PhraseTable:
        """Read pairs, one a line, parted by a tab; the second stands for the first.

        With ``both_ways``, the first stands for the second as well.

        Raises:
            DataError: a line is no pair.
        """
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            sides = [tuple(side.lower().split()) for side in line.split("\t")]
            if len(sides) != 2 or not all(sides) or sides[0] == sides[1]:
                raise DataError(
                    f"{where}, line {number}: {line!r} is no pair of two phrases parted by a tab"
                )
            for one, other in (sides, sides[::-1]) if both_ways else (sides,):
                found.setdefault(one, []).append(other)
        others = {phrase: tuple(dict.fromkeys(others)) for phrase, others in found.items()}
        return cls(others, max(map(len, others), default=0))


@cache
def shipped_pairs(name: str) -> PhraseTable:
    """Return a shipped table in which the second of a pair stands for the first."""
    path = _SHIPPED / name
    return PhraseTable.read(path.read_text(encoding="utf-8"), str(path), both_ways=False)


@cache
def phrase_table(path: Path | None = None) -> PhraseTable:
    """Return the shipped table, or that of a file of the same form.

    Raises:
        DataError: the file cannot be read, or a line of it is no pair.
    """
    shipped = _SHIPPED / "phrases.tsv"
    own = None if path is None else read_text(path, "phrase table")
    text = shipped.read_text(encoding="utf-8") if own is None else own
    return PhraseTable.read(text, str(path or shipped))


@register_relation
class PhraseTableRelation(Paraphrase):
    """The state stays when phrases give way to others that say the same.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (data-level paraphrase); theirs takes PPDB.
    """

    name = "phrase-table"
    source = "resources/relations/phrases.tsv, of this package (MIT)"
    reasons = (_NONE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the phrases that may give way."""
        found = list(replacements(scene, phrase_table(), "phrase"))
        return self.places_of(found, _MOST)


def replacements(scene: Scene, table: PhraseTable, operator: str) -> Iterator[Replacement]:
    """Yield what a table says of the phrases of a turn, where no lock guards what differs."""
    words, gaps = scene.parts.words, scene.parts.gaps
    for first in range(len(words)):
        phrase: tuple[str, ...] = ()
        for last in range(first, min(first + table.longest, len(words))):
            if last > first and gaps[last] not in {"", " "}:
                break
            phrase += (words[last].lower.replace("’", "'"),)
            for other in table.others.get(phrase, ()):
                one = _replacement(scene, (first, operator), phrase, other)
                if one is not None:
                    yield one


def _replacement(
    scene: Scene, place: tuple[int, str], old: Sequence[str], new: Sequence[str]
) -> Replacement | None:
    """Return the edit of what differs between two phrases, if no lock guards that."""
    first, operator = place
    head = _equal(old, new)
    tail = _equal(old[head:][::-1], new[head:][::-1])
    start, end = first + head, first + len(old) - tail
    added = list(new[head : len(new) - tail])
    roles, words = scene.guarded.roles, scene.parts.words
    if start == end or not added:
        return None
    if any(role != FREE for role in roles[start:end]) or any(map(scene.guards.guard_of, added)):
        return None
    if begins_sentence(scene, start):
        added[0] = match_case(words[start].text, added[0])
    text = " ".join("I" if word == "i" else word for word in added)
    return Replacement(words[start].start, words[end - 1].end, text, operator)


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two phrases begin with that are the same."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
