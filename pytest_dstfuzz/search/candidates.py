"""Lists the possible single edits of a turn, and combines them to variants."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
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
#: A text between blanks. No lock or slip depends on words beyond its neighbours.
_CHUNK: Final = re.compile(r"\S+")


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
    for edit, chance in noisy.likely(rate, _EACH, source.parts.ends):
        yield Candidate(edit, touched(edit.start, edit.end), chance)


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
    """Apply several edits and return the variant. The edits must not share a word or gap."""
    return perturber.remake(source, _in_order(chosen))


def _in_order(chosen: Iterable[Candidate]) -> tuple[Edit, ...]:
    """Return edits in the order in which a variant applies them.

    Word-level edits are applied before the others. Each group is applied from right to left, so
    that the positions stay valid.
    """
    ordered = sorted(chosen, key=lambda one: one.name, reverse=True)
    of_words = [one.edit for one in ordered if of_word_level(one.edit.transformation)]
    others = []
    for one in ordered:
        if not of_word_level(one.edit.transformation):
            edit = one.edit
            before = [other for other in of_words if other.end <= edit.start]
            if shift := sum(len(other.after) - len(other.before) for other in before):
                edit = replace(edit, start=edit.start + shift, end=edit.end + shift)
            others.append(edit)
    return (*of_words, *others)


def made_of(candidates: Sequence[Candidate], variant: Variant) -> list[bool]:
    """Return for each candidate whether the variant contains it."""
    spans = source_spans(variant.edits)
    made = {(*span, edit.after) for span, edit in zip(spans, variant.edits, strict=True)}
    return [one.name in made for one in candidates]


class _Reach(NamedTuple):
    """The parts of an utterance that an edit may affect, as ranges of indices."""

    #: Texts between blanks.
    first: int
    last: int
    #: Sites of the noise model.
    first_site: int
    last_site: int

    def is_apart(self, other: _Reach) -> bool:
        """Return whether no check of a variant looks at two edits together."""
        words = self.last < other.first or other.last < self.first
        return words and (self.last_site < other.first_site or other.last_site < self.first_site)


class _Ranges:
    """The ranges of an utterance that the edits of a turn may affect."""

    def __init__(self, task: SearchTask) -> None:
        source = task.source
        chunks = [found.span() for found in _CHUNK.finditer(source.text)]
        self._starts = [start for start, _ in chunks]
        self._ends = [end for _, end in chunks]
        #: The sites of the noise model, if it decides which variants are possible.
        self.by_noise = source.support is not None and task.perturber.profile.noise
        sites = source.support.noisy.sites if source.support and self.by_noise else ()
        self._site_starts = [site.start for site in sites]
        self._site_ends = [site.end for site in sites]

    def reach(self, one: Candidate) -> _Reach | None:
        """Return what an edit may affect. ``None`` if the edit is possible only with others."""
        start, end = one.edit.start, one.edit.end
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end) - 1
        if first > last or (self.by_noise and one.chance <= 0.0):
            return None
        if not self.by_noise:  # Each word has a site of its own.
            return _Reach(first, last, first, last)
        sites = bisect_left(self._site_ends, start), bisect_right(self._site_starts, end) - 1
        return _Reach(first, last, *sites)


class Composer:
    """Combines edits of a turn to variants. It remembers the combinations that it has checked."""

    def __init__(self, task: SearchTask, candidates: Sequence[Candidate]) -> None:
        self._task = task
        self._candidates = candidates
        #: Indices of edits, in the order in which they were chosen -> whether the variant is valid.
        self._fits: dict[tuple[int, ...], bool] = {}
        #: The same -> number of words that they touch, `None` if a lock forbids them.
        self._touched: dict[tuple[int, ...], int | None] = {}
        self._places = _Ranges(task)
        self._reaches: dict[int, _Reach | None] = {}
        #: Indices of edits -> whether each edit can be checked alone.
        self._apart: dict[tuple[int, ...], bool] = {}
        spans = [(one.edit.start, one.edit.end, one.words[0], one.words[-1]) for one in candidates]
        self._spans = np.array(spans, dtype=np.int64).reshape(-1, 4).T
        self._sizes = self._spans[3] - self._spans[2] + 1

    def compose(self, scores: npt.NDArray[np.floating[Any]]) -> tuple[list[int], Variant | None]:
        """Combine the best edits, and return their indices and the variant. See `choose`."""
        chosen = self.choose(scores)
        return chosen, self.variant(chosen) if chosen else None

    def variant(self, chosen: Sequence[int]) -> Variant:
        """Return the variant with the edits of some indices."""
        some = [self._candidates[place] for place in chosen]
        return together(self._task.perturber, self._task.source, some)

    def choose(self, scores: npt.NDArray[np.floating[Any]]) -> list[int]:
        """Combine the best edits greedily, and return their indices.

        Edits are added until the word quota is reached. An edit is skipped if it touches a word of
        a chosen edit, exceeds the quota, or makes the variant invalid. If no edit fits, the list is
        empty. ``scores`` is [candidates], and only their order counts.
        """
        left, chosen = self._task.source.draft.quota, list[int]()
        taken = self._sizes > left
        for place in np.argsort(-scores, kind="stable")[:_TRIED].tolist():
            if taken[place] or not self._may_add(chosen, place):
                continue
            chosen.append(place)
            left -= int(self._sizes[place])
            if left <= 0:
                break
            taken |= (self._sizes > left) | self._meet(place)
        return chosen

    def _meet(self, place: int) -> npt.NDArray[np.bool_]:
        """Return which candidates touch the same word or the same gap as one: [candidates]."""
        starts, ends, first_words, last_words = self._spans
        start, end, first, last = self._spans[:, place].tolist()
        found: npt.NDArray[np.bool_] = (starts <= end) & (ends >= start)
        found |= (first_words <= last) & (last_words >= first)
        return found

    def _may_add(self, chosen: Sequence[int], place: int) -> bool:
        """Return whether the variant is valid with one more edit."""
        if chosen and self._exceeds(chosen, place):
            return False
        places = (*chosen, place)
        if places not in self._fits:
            self._fits[places] = self._is_valid(places)
        return self._fits[places]

    def _is_valid(self, places: tuple[int, ...]) -> bool:
        """Return whether a variant is valid.

        If its edits are apart, the locks are checked for each edit. Then the noise model makes the
        variant, because it makes each edit.
        """
        perturber, source = self._task.perturber, self._task.source
        edits = _in_order([self._candidates[place] for place in places])
        if not perturber.within_rates(source, edits):
            return False
        touched = self._count(places)
        if touched is None or touched > source.draft.quota:
            return False
        return self._are_apart(places) or perturber.is_possible(source, edits)

    def _are_apart(self, places: tuple[int, ...]) -> bool:
        """Return whether each edit can be checked alone. See `_Reach.is_apart`."""
        if places not in self._apart:
            *others, last = places
            if last not in self._reaches:
                self._reaches[last] = self._places.reach(self._candidates[last])
            reach = self._reaches[last]
            apart = reach is not None and (not others or self._are_apart(tuple(others)))
            self._apart[places] = apart and all(
                reach.is_apart(earlier)
                for other in others
                if reach and (earlier := self._reaches[other])
            )
        return self._apart[places]

    def _exceeds(self, chosen: Sequence[int], place: int) -> bool:
        """Return whether the edits touch too many words. It is cheaper than making the variant.

        An edit may touch more words than `Candidate.words` has: a lost blank joins two words. The
        numbers add up only if the edits are apart. Otherwise the result is false.
        """
        words = self._candidates[place].words
        near = range(words[0] - 1, words[-1] + 2)
        if any(word in near for other in chosen for word in self._candidates[other].words):
            return False
        left = self._task.source.draft.quota - (self._count(tuple(chosen)) or 0)
        return left <= 0 or (self._count((place,)) or 0) > left

    def _count(self, places: tuple[int, ...]) -> int | None:
        """Return how many words edits touch, ``None`` if a lock forbids them."""
        if places not in self._touched:
            self._touched[places] = self._find_count(places)
        return self._touched[places]

    def _find_count(self, places: tuple[int, ...]) -> int | None:
        if len(places) > 1 and self._are_apart(places):
            earlier, last = self._count(places[:-1]), self._count(places[-1:])
            return None if earlier is None or last is None else earlier + last
        edits = _in_order([self._candidates[place] for place in places])
        return self._task.perturber.count_touched(self._task.source, edits)


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
