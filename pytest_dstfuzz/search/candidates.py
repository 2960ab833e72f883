"""Lists the possible single edits of a turn, and combines them to variants."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.noise.model import NoisyUtterance
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.values import canonical
from pytest_dstfuzz.perturb.words import Edit, Variant, word_list
from pytest_dstfuzz.search.protocol import SearchTask
from pytest_dstfuzz.transformations import of_word_level

__all__ = [
    "Candidate",
    "Composer",
    "candidates_of",
    "compose",
    "find_mention",
    "made_of",
    "together",
]

#: Maximum number of edits per operator and word, the most likely first. The tracker depends less on
#: the replacement than on the loss of the word.
_EACH: Final = 3
#: Number of draws to find single edits without a noise model.
_DRAWS: Final = 192
#: Maximum number of candidates considered for one variant, best first.
_TRIED: Final = 60


class Candidate(NamedTuple):
    """One possible edit of the clean utterance."""

    edit: Edit
    #: Indices of the touched words. An insertion between two words touches the second one.
    words: tuple[int, ...]
    #: Probability that a person makes this edit and no other. 0 without a noise model.
    chance: float

    @property
    def name(self) -> tuple[int, int, str]:
        """The edit's place and new text, which identify it among the candidates of its turn."""
        return self.edit.start, self.edit.end, self.edit.after

    def meets(self, other: Candidate) -> bool:
        """Return whether two edits touch the same word or the same gap."""
        apart = self.edit.end < other.edit.start or other.edit.end < self.edit.start
        return not apart or not set(self.words).isdisjoint(other.words)


def candidates_of(
    perturber: Perturber, source: Source, rng: np.random.Generator
) -> tuple[Candidate, ...]:
    """Return the possible single edits of a turn, in reading order.

    If the profile has a noise model, these are the most likely edits of each operator at each word.
    Otherwise they are uniform random draws.
    """
    if source.support is not None:
        found = _likely(source, source.support.noisy, perturber.noise.rate)
    else:
        found = _first(_drawn(perturber, source, rng))
    return tuple(sorted(found, key=lambda one: one.name))


def _likely(source: Source, noisy: NoisyUtterance, rate: float) -> Iterator[Candidate]:
    touched = cache(partial(touched_words, source))
    for slip, chance in noisy.likely(rate, _EACH, lambda *span: touched(*span)[:1]):
        if words := touched(slip.start, slip.end):
            yield Candidate(slip.edit, words, chance)


def _first(drawn: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield the first edits of each operator and word, in reading order."""
    count: Counter[tuple[str, str, int]] = Counter()
    for one in sorted(drawn, key=lambda one: one.name):
        group = one.edit.transformation, one.edit.operator, one.words[0]
        count[group] += 1
        if count[group] <= _EACH:
            yield one


def _drawn(perturber: Perturber, source: Source, rng: np.random.Generator) -> Iterator[Candidate]:
    space, seen = perturber.space, set()
    names = [name for name, menu in perturber.menus(source).items() if menu.operators]
    for number in range(_DRAWS if names else 0):
        action = space.single(space.sample(rng, 1), names[number % len(names)])
        variant = perturber.apply(source, action)
        if not variant.valid or len(variant.edits) != 1 or variant.text in seen:
            continue
        seen.add(variant.text)
        (edit,) = variant.edits
        if words := touched_words(source, edit.start, edit.end):
            yield Candidate(edit, words, 0.0)


def touched_words(source: Source, start: int, end: int) -> tuple[int, ...]:
    """Return the indices of the words that a span touches. A gap counts as the word after it."""
    starts, ends = source.parts.starts, source.parts.ends
    if not starts:
        return ()
    first = min(bisect_right(ends, start), len(starts) - 1)
    last = max(bisect_right(starts, max(end - 1, start)) - 1, first)
    return tuple(range(first, last + 1))


def together(perturber: Perturber, source: Source, chosen: Iterable[Candidate]) -> Variant:
    """Apply several edits and return the variant. The edits must not share a word or gap.

    Word-level edits are applied before the others. Each group is applied from right to left, so
    that the positions stay valid.
    """
    ordered = sorted(chosen, key=lambda one: one.name, reverse=True)
    of_words = [one.edit for one in ordered if of_word_level(one.edit.transformation)]
    others = []
    for one in ordered:
        if not of_word_level(one.edit.transformation):
            start = one.edit.start
            before = [edit for edit in of_words if edit.end <= start]
            start += sum(len(edit.after) - len(edit.before) for edit in before)
            others.append(replace(one.edit, start=start, end=start + len(one.edit.before)))
    return perturber.remake(source, (*of_words, *others))


def made_of(candidates: Sequence[Candidate], variant: Variant) -> list[bool]:
    """Return for each candidate whether the variant contains it."""
    spans = source_spans(variant.edits)
    made = {(*span, edit.after) for span, edit in zip(spans, variant.edits, strict=True)}
    return [one.name in made for one in candidates]


class Composer:
    """Combines edits of a turn to variants. It remembers the combinations that it has checked."""

    def __init__(self, task: SearchTask, candidates: Sequence[Candidate]) -> None:
        self._task = task
        self._candidates = candidates
        #: Indices of edits, in the order in which they were chosen -> the variant if it is valid.
        self._made: dict[tuple[int, ...], Variant | None] = {}
        #: Indices of edits -> number of words that they touch.
        self._touched: dict[tuple[int, ...], int] = {}

    def compose(self, scores: npt.NDArray[np.floating[Any]]) -> tuple[list[int], Variant | None]:
        """Combine the best edits greedily, and return their indices and the variant.

        Edits are added until the word quota is reached. An edit is skipped if it touches a word of
        a chosen edit, exceeds the quota, or makes the variant invalid. If no edit fits, the variant
        is ``None``. ``scores`` is [candidates], and only their order counts.
        """
        quota, chosen, words = self._task.source.draft.quota, list[int](), 0
        made: Variant | None = None
        for place in np.argsort(-scores, kind="stable")[:_TRIED].tolist():
            one = self._candidates[place]
            if words + len(one.words) > quota:
                continue
            if any(one.meets(self._candidates[other]) for other in chosen):
                continue
            if chosen and self._exceeds(chosen, place):
                continue
            if variant := self._make((*chosen, place)):
                chosen.append(place)
                words += len(one.words)
                made = variant
            if words >= quota:
                break
        return chosen, made

    def _make(self, places: tuple[int, ...]) -> Variant | None:
        if places not in self._made:
            some = [self._candidates[place] for place in places]
            variant = together(self._task.perturber, self._task.source, some)
            self._made[places] = variant if variant.valid else None
        return self._made[places]

    def _exceeds(self, chosen: Sequence[int], place: int) -> bool:
        """Return whether the edits touch too many words. It is cheaper than making the variant.

        An edit may touch more words than `Candidate.words` has: a lost blank joins two words. The
        numbers add up only if the edits are apart. Otherwise the result is false.
        """
        near = {word + step for word in self._candidates[place].words for step in (-1, 0, 1)}
        if any(not near.isdisjoint(self._candidates[other].words) for other in chosen):
            return False
        touched = self._count(tuple(chosen)) + self._count((place,))
        return touched > self._task.source.draft.quota

    def _count(self, places: tuple[int, ...]) -> int:
        if places not in self._touched:
            variant = self._made.get(places)
            edits = variant.edits if variant else (self._candidates[places[0]].edit,)
            self._touched[places] = self._task.perturber.count_touched(self._task.source, edits)
        return self._touched[places]


def compose(
    task: SearchTask, candidates: Sequence[Candidate], scores: npt.NDArray[np.floating[Any]]
) -> tuple[list[int], Variant | None]:
    """Combine the best edits of a turn once, see `Composer.compose`."""
    return Composer(task, candidates).compose(scores)


def find_mention(words: Sequence[str], value: str | None) -> tuple[int, ...]:
    """Return the positions of the words in the first complete mention of a value.

    The result is empty if the value is not mentioned.
    """
    wanted = [word for word in map(canonical, word_list(value or "")) if word]
    places = [place for place, word in enumerate(words) if word] if wanted else []
    said = [words[place] for place in places]
    for start in range(len(said) - len(wanted) + 1):
        if wanted and said[start : start + len(wanted)] == wanted:
            return tuple(places[start : start + len(wanted)])
    return ()
