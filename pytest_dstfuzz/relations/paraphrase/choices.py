"""From the places of an utterance where a relation may edit to its rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.draft import FREE
from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.perturb.words import Word
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.values import ValueTable

#: How many rewrites of a turn are drawn.
_DRAWN: Final = 16


class Places(NamedTuple):
    """Where an utterance may be edited."""

    #: In reading order; several may be of one place.
    replacements: Sequence[Replacement]
    #: How many of them one rewrite may have.
    most: int


class Paraphrase(Relation):
    """The state stays when a turn is said in other words.

    A class that inherits from it says where a turn may be edited; each rewrite is of some of these
    places, and any part of it is a rewrite as well.
    """

    expects = "{stays}"
    edits = "own"
    english = True
    places: Callable[[Scene], Places | str]

    def places_of(self, replacements: Sequence[Replacement], most: int) -> Places | str:
        """Return these as places, or the last of the reasons where there are none."""
        return Places(replacements, most) if replacements else self.reasons[-1]

    def begin(self, scene: Scene) -> Begun:
        """Return rewrites with one edit or more, or why there is no place for one."""
        found = self.places(scene)
        if isinstance(found, str):
            return Inapplicable(found)
        return (
            scene.rewrite(chosen, about=_told(chosen), separable=True)
            for chosen in drawn(scene, found)
        )


def drawn(scene: Scene, places: Places) -> Iterator[tuple[Replacement, ...]]:
    """Yield different choices of replacements that do not touch each other."""
    seen = set()
    count = len(places.replacements)
    for _ in range(_DRAWN):
        wanted = int(scene.rng.integers(1, min(places.most, count) + 1))
        chosen: list[Replacement] = []
        for index in scene.rng.permutation(count).tolist():
            one = places.replacements[index]
            if all(one.end < other.start or other.end < one.start for other in chosen):
                chosen.append(one)
            if len(chosen) == wanted:
                break
        choice = tuple(sorted(chosen))
        made = tuple([one[:3] for one in choice])  # Two kinds of edit may be the same edit.
        if made not in seen:
            seen.add(made)
            yield choice


def free(scene: Scene) -> Iterator[tuple[int, Word]]:
    """Yield the words that no lock guards, with their indices.

    Words in the names of slots (`topping-capers`) are no free words, be there an ontology or not.
    """
    roles, titles = scene.guarded.roles, scene.once(ValueTable.of).titles
    for index, word in enumerate(scene.parts.words):
        if roles[index] == FREE and spelled(word.lower) not in titles:
            yield index, word


def leans_on(scene: Scene, index: int) -> bool:
    """Say whether the next word leans on the word ``index``: `I 'm`, `do n't`."""
    following = scene.parts.words[index + 1 : index + 2]
    return bool(following) and (following[0].text[0] in "'’" or following[0].lower == "n't")


def plain_gap(scene: Scene, index: int) -> bool:
    """Say whether only blanks are before the word ``index``, or after the last one."""
    gaps = scene.parts.gaps
    return not gaps[index] or gaps[index].isspace()


def begins_sentence(scene: Scene, index: int) -> bool:
    """Say whether a sentence begins with the word ``index``."""
    gap = scene.parts.gaps[index]
    return not index or any(mark in gap for mark in ".!?\n")


def without_word(scene: Scene, index: int, operator: str) -> Replacement:
    """Return how the word ``index`` is left out, with the blanks on one of its sides."""
    words, gaps = scene.parts.words, scene.parts.gaps
    start, end = words[index].start, words[index].end
    before, after = gaps[index], gaps[index + 1]
    if before[-1:].isspace():
        start -= len(before) - len(before.rstrip())
    else:
        end += len(after) - len(after.lstrip())
    return Replacement(start, end, "", operator)


def _told(chosen: Sequence[Replacement]) -> str:
    kinds = dict.fromkeys(one.operator for one in chosen)
    return ", ".join(kind.replace("_", " ") for kind in kinds)
