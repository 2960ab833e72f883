"""Noise models: the possible slips, their probabilities, and mixtures of models."""

from __future__ import annotations

import hashlib
import json
import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from itertools import accumulate, chain, combinations, groupby
from operator import itemgetter
from os.path import commonprefix
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.config.parsers import parse_weight
from pytest_dstfuzz.errors import UserError, did_you_mean
from pytest_dstfuzz.files import content_of, names_file
from pytest_dstfuzz.noise.casual import ANY_WORD, RESPELLED, Place, places, respell_word, word_slips
from pytest_dstfuzz.noise.tables import (
    LETTER_KINDS,
    MISSPELLING,
    SLIP_KINDS,
    TWO,
    LetterSlip,
    ModelFile,
    NoiseKind,
    Tables,
    letter_slips,
    plain,
    read_model_file,
)
from pytest_dstfuzz.perturb.words import Edit, take_apart

#: Maximum probability of a slip at a site.
MOST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Slip(Edit):
    """A possible slip in a word, as an edit of the clean utterance."""

    #: The kind in models: `keyboard`, `missing`, `blank`, `texting` ...
    kind: str
    #: Expected number at slip rate 1. The probability at the rate ``r`` is ``r * weight``, unless
    #: the weights of the site have a very large sum: see `Site.share`.
    weight: float

    @property
    def edit(self) -> Edit:
        """The edit without kind and weight."""
        return Edit(
            self.transformation, self.operator, self.start, self.end, self.before, self.after
        )


class Change(NamedTuple):
    """A change of one kind: ``text[start:end]`` becomes ``after``."""

    kind: str
    start: int
    end: int
    after: str
    weight: float

    def put_into(self, text: str) -> str:
        """Return the text with the change."""
        return text[: self.start] + self.after + text[self.end :]


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of one text with different results. Objects are compared by identity."""

    #: The text before the changes.
    text: str
    changes: tuple[Change, ...]
    #: Whether these are all changes of a single word, independent of its place.
    of_word: bool = False

    @cached_property
    def sums(self) -> tuple[float, ...]:
        """Cumulative sums of the weights."""
        return tuple(accumulate(map(_WEIGHT, self.changes)))

    @cached_property
    def by_text(self) -> Mapping[str, Change]:
        """Changed text -> change."""
        text, found = self.text, dict[str, Change]()
        for change in self.changes:  # This is `Change.put_into`, for thousands of changes.
            _, start, end, after, _ = change
            found[text[:start] + after + text[end:]] = change
        return found

    @cached_property
    def longer(self) -> tuple[int, ...]:
        """The sorted differences in length between changed texts and the original."""
        return tuple(sorted({len(after) - end + start for _, start, end, after, _ in self.changes}))

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return self.sums[-1] if self.sums else 0.0

    def between(self, head: str, text: str, tail: str) -> Change | None:
        """Return the change after which ``text`` is the changed text between two others."""
        inside = len(text) - len(tail)
        if len(head) > inside or not (text.startswith(head) and text.endswith(tail)):
            return None
        return self.by_text.get(text[len(head) : inside])

    @cached_property
    def _ranked(self) -> dict[tuple[int, tuple[int, ...]], Sequence[_Ranked]]:
        """Arguments of `likely` -> its result."""
        return {}

    def likely(self, most: int, ends: tuple[int, ...]) -> Sequence[_Ranked]:
        """Return the most likely changes of each operator at each word, the most likely first.

        Args:
            most: maximum number of changes per operator and word. Of equally likely changes, the
                first in the text is taken, then the one whose new text sorts first.
            ends: the ends of the words in the text. A change belongs to the first word that ends
                after its start.
        """
        if (most, ends) not in self._ranked:
            self._ranked[most, ends] = self._rank(most, ends)
        return self._ranked[most, ends]

    def _rank(self, most: int, ends: tuple[int, ...]) -> Sequence[_Ranked]:
        groups: dict[tuple[tuple[str, str], int], list[Change]] = {}
        for kind, of_kind in groupby(self.changes, _KIND):
            name, some = SLIP_KINDS[kind], [*of_kind]
            if not ends or max(map(_START, some)) < ends[0]:
                groups.setdefault((name, 0), []).extend(some)
                continue
            for change in some:
                number = bisect_right(ends, change.start)
                groups.setdefault((name, number), []).append(change)
        found = []
        for group, some in groups.items():
            if len(some) > most:
                some.sort(key=_WEIGHT, reverse=True)
                least = some[most - 1].weight
                some = [change for change in some if change.weight >= least]  # noqa: PLW2901
            found += [(*group, change) for change in sorted(some, key=_likeliest)[:most]]
        return found


def _likeliest(change: Change) -> tuple[float, int, int, str]:
    """Return a key that sorts changes by decreasing weight, then by their place and new text."""
    return -change.weight, change.start, change.end, change.after


#: The operator of a change, the index of its word, and the change.
_Ranked = tuple[tuple[str, str], int, Change]
_KIND, _START, _WEIGHT = map(itemgetter, (0, 1, 4))


class ConditionalChanges(NamedTuple):
    """Changes under the condition that some other changes do not happen."""

    changes: Changes
    #: The weights of the other changes.
    lost: tuple[float, ...]


def distinct(text: str, changes: Iterable[Change], *, of_word: bool = False) -> Changes:
    """Merge changes with equal results, and add up their weights.

    The most likely change sets the kind and the place. Changes without effect or without weight are
    dropped.
    """
    best: dict[str, Change] = {}
    sums: dict[str, float] = {}
    for change in changes:
        made = change.put_into(text)
        if change.weight <= 0.0 or made == text:
            continue
        known = best.setdefault(made, change)
        if known is not change:  # This is rare, since few texts arise in two ways.
            sums[made] = sums.get(made, known.weight) + change.weight
            if known.weight < change.weight:
                best[made] = change
    for made, weight in sums.items():
        best[made] = best[made]._replace(weight=weight)
    return Changes(text, tuple(best.values()), of_word)


@dataclass(frozen=True)
class Site:
    """A part of an utterance that takes at most one slip."""

    utterance: str
    #: Its range in the clean utterance, in code points.
    start: int
    end: int
    #: Offset in the utterance -> changes of the text there, at least one. No two changes of a
    #: site give the same text.
    parts: tuple[tuple[int, Changes], ...]

    #: The weight of the excluded slips if probabilities are conditional.
    _lost: float = 0.0

    @cached_property
    def weight(self) -> float:
        """Expected number of slips at slip rate 1, without excluded slips."""
        total = 0.0
        for _, part in self.parts:
            total += part.weight
        return total

    def given(self, found: Sequence[ConditionalChanges]) -> Site:
        """Return the site under the condition that only the changes in ``kept`` happen."""
        pairs = zip(self.parts, found, strict=True)
        parts = tuple((at, kept.changes) for (at, _), kept in pairs if kept.changes.changes)
        lost = math.fsum(chain.from_iterable([kept.lost for kept in found]))
        return Site(self.utterance, self.start, self.end, parts, self._lost + lost)

    def probability_given(self, rate: float) -> float:
        """Return the probability of the condition from `given`, or 1 without a condition."""
        return 1.0 - self._factor(rate) * self._lost

    @property
    def clean(self) -> str:
        """The text of the site in the clean utterance."""
        return self.utterance[self.start : self.end]

    @cached_property
    def slips(self) -> tuple[Slip, ...]:
        """All possible slips, in a fixed order."""
        return tuple(
            self.slip(offset, change) for offset, part in self.parts for change in part.changes
        )

    @property
    def texts(self) -> Mapping[str, float]:
        """Text of the site after a slip -> weight."""
        return {
            made.join(self._around(at, part)): change.weight
            for at, part in self.parts
            for made, change in part.by_text.items()
        }

    def _factor(self, rate: float) -> float:
        both = self.weight + self._lost
        return min(rate, MOST / both) if both else 0.0

    def share(self, rate: float) -> float:
        """Return the factor from weights to probabilities, at a slip rate."""
        return self._factor(rate) / self.probability_given(rate)

    def probability(self, rate: float) -> float:
        """Return the probability of any slip at this site, at a slip rate."""
        return self.share(rate) * self.weight

    def weight_of(self, text: str) -> float:
        """Return the weight of the slip that changes the site to a text, or 0."""
        for at, part in self.parts:
            head, tail = self._around(at, part)
            if change := part.between(head, text, tail):
                return change.weight
        return 0.0

    def _around(self, at: int, part: Changes) -> tuple[str, str]:
        """Return the text of the site before and after a part."""
        return self.utterance[self.start : at], self.utterance[at + len(part.text) : self.end]

    def chance(self, text: str, rate: float) -> float:
        """Return the probability that the site becomes a text."""
        if text == self.clean:
            return 1.0 - self.probability(rate)
        return self.share(rate) * self.weight_of(text)

    @cached_property
    def longest(self) -> int:
        """The maximum length of the site's text, with or without a slip."""
        longer = [part.longer[-1] for _, part in self.parts]
        return self.end - self.start + max([0, *longer])

    def readings(self, text: str, rate: float) -> Mapping[int, float]:
        """Map the length of each prefix of a text to the probability that the site produces it."""
        share, size = self.share(rate), self.end - self.start
        found = {size: 1.0 - share * self.weight} if text.startswith(self.clean) else {}
        for at, part in self.parts:
            head, tail = self._around(at, part)
            if not text.startswith(head):
                continue
            for more in part.longer:
                inside = size + more - len(tail)
                if not text.startswith(tail, inside):
                    continue
                if change := part.by_text.get(text[len(head) : inside]):
                    found[size + more] = share * change.weight
        return {length: found[length] for length in sorted(found) if found[length]}

    def pick(self, number: float, rate: float) -> Slip | None:
        """Return the slip for a random ``number`` from 0 to 1, or ``None`` for no slip."""
        share = self.share(rate)
        if number >= share * self.weight:
            return None
        place = number / share
        # Rounding may leave no slip. If so, take the last.
        reach = tuple(accumulate([part.weight for _, part in self.parts]))
        index = min(bisect_right(reach, place), len(reach) - 1)
        offset, part = self.parts[index]
        place -= reach[index - 1] if index else 0.0
        inside = min(bisect_right(part.sums, place), len(part.sums) - 1)
        return self.slip(offset, part.changes[inside])

    def slip(self, offset: int, change: Change) -> Slip:
        """Return a change of the part at an offset as a slip of the utterance."""
        start, end = offset + change.start, offset + change.end
        before = self.utterance[start:end]
        return Slip(
            *SLIP_KINDS[change.kind], start, end, before, change.after, change.kind, change.weight
        )


#: The negative probability, the range and the new text of a slip.
_Outcome = tuple[float, int, int, str]
#: Maximum number of cached readings per utterance.
_MOST_READINGS: Final = 1 << 9


class _Step(NamedTuple):
    """The state of the forward algorithm after some sites."""

    #: Start of the next site in the text -> probability of the text before, without `log_scale`.
    reached: Mapping[int, float]
    log_scale: float
    #: The number of characters that were inspected.
    looked: int


@dataclass(frozen=True)
class NoisyUtterance:
    """The sites of an utterance, with independent slips."""

    text: str
    #: In reading order. Together they cover the text, or there are none if it has no word.
    sites: tuple[Site, ...]

    def given(self, kept: Callable[[Site], Sequence[ConditionalChanges]]) -> NoisyUtterance:
        """Return the utterance on the condition that only allowed slips happen.

        All probabilities of the result are conditional. `probability_given` returns the
        probability of the condition.

        Args:
            kept: returns the allowed changes for each part of a site.
        """
        return NoisyUtterance(self.text, tuple([site.given(kept(site)) for site in self.sites]))

    def probability_given(self, rate: float) -> float:
        """Return the probability of the condition from `given`, or 1 without a condition."""
        _check_rate(rate)
        return math.prod(site.probability_given(rate) for site in self.sites)

    def probability_clean(self, rate: float) -> float:
        """Return the probability of no slip, at a slip rate in [0, 1]."""
        _check_rate(rate)
        return math.prod(1.0 - site.probability(rate) for site in self.sites)

    def log_probability(self, text: str, rate: float) -> float:
        """Return the log probability that the utterance becomes ``text``.

        The probability is the sum over all combinations of slips that give the text. The order of
        edits and their operators do not matter.

        Args:
            text: the variant, which may be the clean utterance.
            rate: expected slips per word, in [0, 1].

        Returns:
            The natural logarithm; ``-inf`` for an impossible text.
        """
        _check_rate(rate)
        if not self.sites:
            return 0.0 if text == self.text else -math.inf
        # Before its first change, the text reads like the clean utterance: use the cache.
        steps = self._clean_steps(rate)
        same = len(commonprefix((text, self.text)))  # noqa: RUF071 - texts, no paths
        read = bisect_right(steps, same, key=operator.attrgetter("looked")) - 1
        step = steps[read]
        for number in range(read, len(self.sites)):
            further = self._further(step, number, text, rate)
            if further is None:
                return -math.inf
            step = further
        found = step.reached.get(len(text), 0.0)
        return math.log(found) + step.log_scale if found else -math.inf

    def _further(self, step: _Step, number: int, text: str, rate: float) -> _Step | None:
        """Read one more site of a text. Return ``None`` if the text does not match."""
        site, looked, known = self.sites[number], step.looked, self._readings
        if len(known) >= _MOST_READINGS:
            known.clear()
        further: dict[int, float] = {}
        for at, probability in step.reached.items():
            end = at + site.longest
            looked = max(looked, end)
            piece = number, text[at:end], rate
            if (read := known.get(piece)) is None:
                read = known[piece] = site.readings(*piece[1:])
            for length, chance in read.items():
                further[at + length] = further.get(at + length, 0.0) + probability * chance
        if not further:
            return None
        # Rescale to 1: the product over a long utterance would underflow.
        top = max(further.values())
        reached = {at: probability / top for at, probability in further.items()}
        return _Step(reached, step.log_scale + math.log(top), looked)

    def _clean_steps(self, rate: float) -> Sequence[_Step]:
        """Read the clean utterance up to its last site, which may still change the result."""
        if rate not in self._clean:
            self._clean[rate] = self._read_clean(rate)
        return self._clean[rate]

    def _read_clean(self, rate: float) -> Sequence[_Step]:
        steps = [_Step({0: 1.0}, 0.0, 0)]
        for number in range(len(self.sites)):
            step = self._further(steps[-1], number, self.text, rate)
            if step is None or step.looked > len(self.text):
                break
            steps.append(step)
        return steps

    # Not `lru_cache`: it would make a reference cycle, so only the cyclic garbage collector
    # could free hundreds of utterances.

    @cached_property
    def _clean(self) -> dict[float, Sequence[_Step]]:
        """Slip rate -> steps of reading the clean utterance."""
        return {}

    @cached_property
    def _readings(self) -> dict[tuple[int, str, float], Mapping[int, float]]:
        """(Site, rest of the text, slip rate) -> readings, which most variants share."""
        return {}

    def draw(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw slips at a slip rate, as edits. The result may be empty.

        The edits are ordered from last to first, so the offsets of every edit refer to the clean
        utterance. Each site takes exactly one number from the generator.
        """
        _check_rate(rate)
        numbers = generator.random(len(self.sites))
        slips = (
            site.pick(float(number), rate) for site, number in zip(self.sites, numbers, strict=True)
        )
        return tuple(reversed([slip.edit for slip in slips if slip is not None]))

    def single(self, rate: float) -> tuple[tuple[Slip, float], ...]:
        """Return the outcomes with exactly one slip, with their probabilities."""
        slips = chain.from_iterable(site.slips for site in self.sites)
        return tuple(zip(slips, self.chances_of_one(rate), strict=True))

    def chances_of_one(self, rate: float) -> list[float]:
        """Return the probabilities of the outcomes with exactly one slip.

        `one` returns the slips. Most utterances have hundreds, and a sample takes few.
        """
        found: list[float] = []
        for site, factor in zip(self.sites, self._factors(rate), strict=True):
            for _, part in site.parts:
                found.extend([factor * change.weight for change in part.changes])
        return found

    def one(self, number: int) -> Slip:
        """Return the slip of the outcome ``number``, from 0, in `chances_of_one`."""
        for site in self.sites:
            for offset, part in site.parts:
                if number < len(part.changes):
                    return site.slip(offset, part.changes[number])
                number -= len(part.changes)
        raise IndexError(f"{self.text!r} has fewer slips")

    def likely(self, rate: float, most: int, ends: Sequence[int]) -> Iterator[tuple[Edit, float]]:
        """Yield the most likely outcomes of `single` for each operator and word.

        Args:
            rate: expected slips per word, in [0, 1].
            most: maximum number of outcomes per operator and word. Of equally likely outcomes, the
                first in the text is taken, then the one whose new text sorts first.
            ends: the ends of the words. A slip belongs to the first word that ends after its start,
                or to the last word.
        """
        groups: dict[tuple[tuple[str, str], int], list[_Outcome]] = {}
        last = len(ends) - 1
        for site, factor in zip(self.sites, self._factors(rate), strict=True):
            for offset, part in site.parts:
                first = bisect_right(ends, offset)
                stop = bisect_right(ends, offset + len(part.text), first)
                inside = tuple([end - offset for end in ends[first:stop]])
                for name, number, (_, start, end, after, weight) in part.likely(most, inside):
                    found = -factor * weight, offset + start, offset + end, after
                    groups.setdefault((name, min(first + number, last)), []).append(found)
        for (name, _), some in groups.items():
            for chance, start, end, after in sorted(some)[:most]:
                yield Edit(*name, start, end, self.text[start:end], after), -chance

    def _factors(self, rate: float) -> list[float]:
        """Return for each site the factor from the weight of a slip to its probability alone."""
        _check_rate(rate)
        clean = [1.0 - site.probability(rate) for site in self.sites]
        before = [1.0, *accumulate(clean, operator.mul)]
        after = [1.0, *accumulate(reversed(clean), operator.mul)][::-1]
        return [
            before[index] * after[index + 1] * site.share(rate)
            for index, site in enumerate(self.sites)
        ]

    def probability_several(self, rate: float) -> float:
        """Return the probability that at least two sites slip."""
        _check_rate(rate)
        return self._several(rate)[0][0]

    def draw_several(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw edits under the condition that at least two sites slip. See `draw`.

        Raises:
            ValueError: fewer than two sites can slip.
        """
        needed, odds = 2, self._several(rate)
        if not odds[0][0]:
            raise ValueError(f"{self.text!r} cannot have two slips")
        slips = []
        for index, (site, number) in enumerate(
            zip(self.sites, generator.random(len(self.sites)), strict=True)
        ):
            # The probability of a slip here, given the number of slips still needed.
            chance = site.probability(rate)
            rest = odds[index + 1][2 - max(needed - 1, 0)] * chance
            given = rest / odds[index][2 - needed]
            if number < given:
                # The rest of the number is again uniform, so it can choose the slip.
                place = min(float(number / given) * chance, math.nextafter(chance, 0.0))
                if (slip := site.pick(place, rate)) is not None:
                    slips.append(slip.edit)
                needed = max(needed - 1, 0)
        return tuple(reversed(slips))

    def _several(self, rate: float) -> list[tuple[float, float, float]]:
        """Return each suffix's probabilities of two or more slips, of one slip, and of none."""
        found = [(0.0, 0.0, 1.0)]
        for site in reversed(self.sites):
            chance, (two, one, any_) = site.probability(rate), found[-1]
            found.append(
                (chance * one + (1.0 - chance) * two, chance * any_ + (1.0 - chance) * one, 1.0)
            )
        return found[::-1]


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise UserError(f"the slip rate is {rate:g}, but must be from 0 to 1 (slips per word)")


#: The shipped models.
SHIPPED: Final = ("typing", "casual", "speech")
_FOLDER: Final = resources.files("pytest_dstfuzz") / "resources" / "noise"


class NoiseModel:
    """A model of people's slips and their probabilities.

    Args:
        file: the content of a model file, see `load`.
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self._scales = {kind.name: kind.scale for kind in file.kinds}
        shares = {kind.name: kind.share for kind in file.kinds}
        letters = math.fsum(shares.get(kind, 0.0) for kind in LETTER_KINDS)
        two, forms = shares.get(TWO, 0.0), shares.get(MISSPELLING, 0.0)
        #: The factor from the weight of a word's letter slips to that of all slips inside it.
        self._inside = (letters + two + forms) / letters if letters else 0.0
        #: The share of two letters in slips that are no known misspelling.
        self._two = two / (letters + two) if two else 0.0
        self._words = lru_cache(maxsize=1 << 13)(self._word_changes)
        # Words differ, but their slips share features.
        self._factor = lru_cache(maxsize=1 << 14)(self._product)
        again = self.file.tables.words.get("restart", {}).get(ANY_WORD, {})
        #: Maximum number of words at the start of an utterance that are repeated as a restart.
        self.again = max(map(int, filter(str.isdecimal, again)), default=0)
        # Changes around a word depend only on nearby words, so they repeat across utterances.
        self._here = lru_cache(maxsize=1 << 14)(self._parts)
        self._known = lru_cache(maxsize=1 << 8)(self._find)

    @classmethod
    def load(cls, name: str) -> NoiseModel:
        """Return a shipped model, or the model in a file.

        Raises:
            UserError: the model or the file does not exist, or the file is not a valid model.
        """
        path = Path(name).expanduser()
        if name in SHIPPED:
            path = Path(str(_FOLDER / f"{name}.json"))
        elif not path.exists():
            hint = did_you_mean(name, SHIPPED)
            raise UserError(
                f"unknown noise model {name!r}.{hint} Valid: {', '.join(SHIPPED)}, or the path of "
                "a file from `dstfuzz fit-noise`"
            )
        return cls(read_model_file(path))

    @property
    def name(self) -> str:
        """The name of the model, for reports."""
        return self.file.name

    @property
    def slip_rate(self) -> float:
        """Expected slips per word, if a run sets no other rate."""
        return self.file.slip_rate

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that affects probabilities."""
        content = {**plain(self.file), "sources": [], "name": ""}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def of(self, utterance: str) -> NoisyUtterance:
        """Return the possible outcomes of an utterance: its sites, probabilities and draws.

        A text without words has no sites and therefore no slips.
        """
        return self._known(utterance)

    def slips(self, utterance: str) -> tuple[tuple[Slip, ...], ...]:
        """Return the slips of each site of an utterance, in a fixed order.

        Each slip of a site gives a different text. If several kinds of slips give the same text,
        the slip gets the name of the most likely kind and the sum of their weights.
        """
        return tuple(site.slips for site in self.of(utterance).sites)

    def probability_clean(self, utterance: str, rate: float) -> float:
        """Return the probability that an utterance has no slip. See `NoisyUtterance`."""
        return self.of(utterance).probability_clean(rate)

    def log_probability(self, utterance: str, text: str, rate: float) -> float:
        """Return the log probability that an utterance becomes ``text``. See `NoisyUtterance`."""
        return self.of(utterance).log_probability(text, rate)

    def draw(self, utterance: str, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw the slips in an utterance, as edits. See `NoisyUtterance`."""
        return self.of(utterance).draw(generator, rate)

    def _find(self, utterance: str) -> NoisyUtterance:
        found: list[Site] = []
        start = 0
        for place in places(utterance, self.file.tables):
            left = place.parts.words[place.first - 1].text if place.first else ""
            end = len(utterance) if place.ends else place.words[-1].end
            reach = end if place.first else max(end, *place.parts.ends[: self.again + 1])
            ahead = utterance[end:reach]
            parts = self._here(left, utterance[start:end], ahead, len(place.words), place.ends)
            moved = tuple([(start + at, part) for at, part in parts])
            found.append(Site(utterance, start, end, moved))
            start = end
        return NoisyUtterance(utterance, tuple(found))

    def _parts(
        self, left: str, clean: str, ahead: str, count: int, ends: bool
    ) -> tuple[tuple[int, Changes], ...]:
        """Return the changes of the words of a site, and the changes around these words.

        Args:
            left: the word before the site; ``""`` at the start of the utterance.
            clean: the text of the site.
            ahead: for the first site, the following text that a restart may repeat.
            count: the number of words in the site.
            ends: whether this is the last site.
        """
        start, text, first = len(left), left + clean + ahead, int(bool(left))
        place = Place(text, take_apart(text), first, first + count - 1, ends)
        around = distinct(
            clean,
            (
                Change(kind, slip.start - start, slip.end - start, slip.after, scale * slip.value)
                for kind, scale in self._scales.items()
                if kind not in LETTER_KINDS and kind not in RESPELLED and kind != TWO
                for slip in word_slips(kind, place, self.file.tables)
            ),
        )
        words = [(word.start - start, self._words(word.text)) for word in place.words]
        alone = Site(clean, 0, len(clean), tuple(words))
        if count == 1 and not any(map(alone.weight_of, around.by_text)):
            return tuple((at, part) for at, part in [*words, (0, around)] if part.changes)
        # Slips of different words, or of a word and its surroundings, may give the same text.
        moved = [
            change._replace(start=change.start + at, end=change.end + at)
            for at, part in [*words, (0, around)]
            for change in part.changes
        ]
        return ((0, distinct(clean, moved)),) if moved else ()

    def _word_changes(self, word: str) -> Changes:
        """Return the changes of a word as typed, independent of its place."""
        scales, factor = self._scales, self._factor
        letters = []
        for kind, start, end, after, features in letter_slips(word, self.file.tables.keyboard):
            weight = factor(kind, features) * scales.get(kind, 0.0)
            if weight:
                letters.append(Change(kind, start, end, after, weight))
        changes = self._inside_word(word, letters)
        for kind in RESPELLED:
            if kind != MISSPELLING:
                for form, value in respell_word(word, self.file.tables.words.get(kind, {})):
                    weight = value * scales.get(kind, 0.0)
                    changes.append(Change(kind, 0, len(word), form, weight))
        return distinct(word, changes, of_word=True)

    def _inside_word(self, word: str, letters: Sequence[Change]) -> list[Change]:
        """Return the slips of letters in a word with its misspellings and slips of two letters.

        The weight of all slips of the word depends on its letters. A misspelling gets a share of
        this weight.
        """
        one = math.fsum(change.weight for change in letters)
        if not one:
            return []
        table = self.file.tables.words.get(MISSPELLING, {})
        forms = [*respell_word(word, table)] if MISSPELLING in self._scales else []
        known = math.fsum(share for _, share in forms)
        whole, rest = one * self._inside, 1.0 - known
        changes = [Change(MISSPELLING, 0, len(word), form, whole * share) for form, share in forms]
        pairs = [*_pairs(word, letters)] if self._two else []
        both = math.fsum(weight for _, weight in pairs)
        two = whole * rest * self._two if both else 0.0
        changes += [Change(TWO, 0, len(word), text, two * w / both) for text, w in pairs]
        scale = (whole * rest - two) / one
        return changes + [change._replace(weight=change.weight * scale) for change in letters]

    def weight_of(self, slip: LetterSlip) -> float:
        """Return the weight of a slip of a letter in any word. See `Slip.weight`."""
        return self._factor(slip.kind, slip.features) * self._scales.get(slip.kind, 0.0)

    def _product(self, kind: str, features: tuple[str, ...]) -> float:
        """Return the value of a letter slip before the scale of its kind."""
        known = self.file.tables.factors.get(kind, {})
        return math.prod(known.get(feature, 1.0) for feature in features)


#: Number of the most likely slips of letters in a word that happen two at a time.
_PAIRED: Final = 12


def _pairs(word: str, letters: Sequence[Change]) -> Iterator[tuple[str, float]]:
    """Yield a word with two of its likely slips, and the weight. The slips do not touch."""
    likely = sorted(letters, key=lambda change: -change.weight)[:_PAIRED]
    for one, other in combinations(sorted(likely, key=lambda change: change.start), 2):
        if one.end < other.start and " " not in one.after + other.after:
            yield one.put_into(other.put_into(word)), one.weight * other.weight


def load_models(names: tuple[str, ...]) -> NoiseModel:
    """Return the mixture of models, given by names or paths with weights.

    Raises:
        UserError: a model or a file does not exist, a name is repeated, or a name may be that of a
            shipped model and of a file.
    """
    given = tuple(parse_weight(text) for text in names)
    for name, _ in given:
        if [other for other, _ in given].count(name) > 1:
            raise UserError(f"the noise model {name!r} is named twice")
        if name in SHIPPED and names_file(name):
            raise UserError(
                f"the noise model {name!r} may be the shipped one or the file {name!r} in this "
                f"folder: write ./{name} for the file, or rename the file to use the shipped one"
            )
    contents = ("" if name in SHIPPED else content_of(name) for name, _ in given)
    return _load_models(given, tuple(contents))


@lru_cache(maxsize=8)
def _load_models(given: tuple[tuple[str, float], ...], contents: tuple[str, ...]) -> NoiseModel:
    """Return the mixture. Build it again only if the ``contents`` of its files changed."""
    del contents
    models = [NoiseModel.load(name) for name, _ in given]
    if len(models) == 1:
        return models[0]
    return NoiseModel(mix_models([model.file for model in models], [weight for _, weight in given]))


def mix_models(files: Sequence[ModelFile], weights: Sequence[float]) -> ModelFile:
    """Return the mixture of several models by weight.

    If several models have a kind, its tables come from the first of them, and its share from all.
    Likewise, the keys around a letter come from the first model that has the letter.
    """
    total = math.fsum(weights)
    shares: dict[str, float] = {}
    kinds: dict[str, NoiseKind] = {}
    keyboard: dict[str, str] = {}
    factors: dict[str, dict[str, float]] = {}
    words: dict[str, dict[str, dict[str, float]]] = {}
    for file, weight in zip(files, weights, strict=True):
        tables = file.tables
        keyboard = {**tables.keyboard, **keyboard}
        for kind in file.kinds:
            shares[kind.name] = shares.get(kind.name, 0.0) + kind.share * weight / total
            if kind.name in kinds:
                continue
            kinds[kind.name] = kind
            if kind.name in tables.factors:
                factors[kind.name] = dict(tables.factors[kind.name])
            if kind.name in tables.words:
                words[kind.name] = {word: dict(f) for word, f in tables.words[kind.name].items()}
    rates = [file.slip_rate * weight for file, weight in zip(files, weights, strict=True)]
    return ModelFile(
        format=files[0].format,
        name=",".join(file.name for file in files),
        slip_rate=math.fsum(rates) / total,
        sources=tuple(dict.fromkeys(source for file in files for source in file.sources)),
        kinds=tuple(replace(kind, share=shares[name]) for name, kind in kinds.items()),
        tables=Tables(keyboard, factors, words),
    )
