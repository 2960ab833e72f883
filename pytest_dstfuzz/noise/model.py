"""The noise models: where slips may be, how likely each is, and mixtures."""

from __future__ import annotations

import hashlib
import json
import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from itertools import accumulate, chain
from os.path import commonprefix
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.config.parsers import weighed
from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.noise.casual import ANY_WORD, RESPELLED, Place, places, respelled, word_slips
from pytest_dstfuzz.noise.tables import (
    LETTER_KINDS,
    OTHER,
    SLIP_KINDS,
    Habits,
    ModelFile,
    NoiseKind,
    Tables,
    letter_slips,
    plain,
    read_model_file,
)
from pytest_dstfuzz.perturb.words import Edit, take_apart

#: Largest probability that a site has a slip.
MOST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Slip(Edit):
    """What a person may do to a word, as an edit of the clean utterance."""

    #: As models have it: `keyboard`, `missing`, `blank`, `texting` ...
    kind: str
    #: How often it is expected at slip rate 1; its probability at the rate ``r`` is ``r * weight``,
    #: but where the weights of its site are very large together: see `Site.share`.
    weight: float

    @property
    def edit(self) -> Edit:
        """The edit alone."""
        return Edit(
            self.transformation, self.operator, self.start, self.end, self.before, self.after
        )


class Change(NamedTuple):
    """What a kind does to a text: ``text[start:end]`` becomes ``after``."""

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
    """Changes of one text that all give different texts; equal to themselves alone."""

    #: What is changed.
    text: str
    changes: tuple[Change, ...]
    #: Whether they are all that happens to one word, wherever it stands.
    of_word: bool = False

    @cached_property
    def sums(self) -> tuple[float, ...]:
        """Sums of their weights, up to each."""
        return tuple(accumulate(change.weight for change in self.changes))

    @cached_property
    def texts(self) -> Mapping[str, float]:
        """What they give -> weight."""
        return {change.put_into(self.text): change.weight for change in self.changes}

    @cached_property
    def longer(self) -> tuple[int, ...]:
        """By how many characters they make the text longer, sorted."""
        return tuple(sorted({len(text) - len(self.text) for text in self.texts}))

    @property
    def weight(self) -> float:
        """All their weights together."""
        return self.sums[-1] if self.sums else 0.0


class Kept(NamedTuple):
    """Changes given that some others do not happen."""

    changes: Changes
    #: The weights of those others.
    lost: tuple[float, ...]


def distinct(text: str, changes: Iterable[Change], *, of_word: bool = False) -> Changes:
    """Make those of one that give the same text: their weights are added.

    The likeliest of them says kind and place. What gives the text itself, or has no weight, is
    left out.
    """
    best: dict[str, Change] = {}
    sums: dict[str, float] = {}
    for change in changes:
        made = change.put_into(text)
        if change.weight <= 0.0 or made == text:
            continue
        known = best.setdefault(made, change)
        if known is not change:  # Few texts come about in two ways.
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
    #: Its part of the clean utterance, in code points.
    start: int
    end: int
    #: Where in the utterance a text begins -> changes of it, at least one; of all no two give the
    #: same.
    parts: tuple[tuple[int, Changes], ...]

    #: Weight of what is not allowed, where probabilities are on that condition.
    _lost: float = 0.0

    @cached_property
    def weight(self) -> float:
        """Expected slips at slip rate 1; without those that are not allowed."""
        total = 0.0
        for _, part in self.parts:
            total += part.weight
        return total

    def given(self, found: Sequence[Kept]) -> Site:
        """Return the site given that of each of its parts no changes happen but those kept."""
        pairs = zip(self.parts, found, strict=True)
        parts = tuple((at, kept.changes) for (at, _), kept in pairs if kept.changes.changes)
        lost = math.fsum(chain.from_iterable([kept.lost for kept in found]))
        return Site(self.utterance, self.start, self.end, parts, self._lost + lost)

    def probability_given(self, rate: float) -> float:
        """Return how likely the condition is that the site was put under; 1 without one."""
        return 1.0 - self._factor(rate) * self._lost

    @property
    def clean(self) -> str:
        """What it is in the clean utterance."""
        return self.utterance[self.start : self.end]

    @cached_property
    def slips(self) -> tuple[Slip, ...]:
        """What can happen here, in a fixed order."""
        return tuple(
            self._slip(offset, change) for offset, part in self.parts for change in part.changes
        )

    @property
    def texts(self) -> Mapping[str, float]:
        """What the site can come out as, but for clean -> weight."""
        return {
            made.join(self._around(at, part)): weight
            for at, part in self.parts
            for made, weight in part.texts.items()
        }

    def _factor(self, rate: float) -> float:
        both = self.weight + self._lost
        return min(rate, MOST / both) if both else 0.0

    def share(self, rate: float) -> float:
        """Return what weights are multiplied by to be probabilities, at a slip rate."""
        return self._factor(rate) / self.probability_given(rate)

    def probability(self, rate: float) -> float:
        """Return how likely any slip is here, at a slip rate."""
        return self.share(rate) * self.weight

    def weight_of(self, text: str) -> float:
        """Return the weight of what makes the site a text, 0 where nothing does."""
        for at, part in self.parts:
            head, tail = self._around(at, part)
            inside = len(text) - len(tail)
            if inside >= len(head) and text.startswith(head) and text.endswith(tail):
                weight = part.texts.get(text[len(head) : inside])
                if weight is not None:
                    return weight
        return 0.0

    def _around(self, at: int, part: Changes) -> tuple[str, str]:
        """Return what of the site is before a part, and what is after it."""
        return self.utterance[self.start : at], self.utterance[at + len(part.text) : self.end]

    def chance(self, text: str, rate: float) -> float:
        """Return how likely the site comes out as a text."""
        if text == self.clean:
            return 1.0 - self.probability(rate)
        return self.share(rate) * self.weight_of(text)

    @cached_property
    def longest(self) -> int:
        """How long it can come out."""
        longer = [part.longer[-1] for _, part in self.parts]
        return self.end - self.start + max([0, *longer])

    def readings(self, text: str, rate: float) -> Mapping[int, float]:
        """Return with how many characters a text may begin with the site -> how likely."""
        share, size = self.share(rate), self.end - self.start
        found = {size: 1.0 - share * self.weight} if text.startswith(self.clean) else {}
        for at, part in self.parts:
            head, tail = self._around(at, part)
            if not text.startswith(head):
                continue
            for more in part.longer:
                inside = size + more - len(tail)
                if text.startswith(tail, inside):
                    weight = part.texts.get(text[len(head) : inside])
                    if weight is not None:
                        found[size + more] = share * weight
        return {length: found[length] for length in sorted(found) if found[length]}

    def pick(self, number: float, rate: float) -> Slip | None:
        """Return the slip that a number from 0 to 1 draws; ``None`` where the site stays clean."""
        share = self.share(rate)
        if number >= share * self.weight:
            return None
        place = number / share
        # The last one where rounding says that none is left.
        reach = tuple(accumulate([part.weight for _, part in self.parts]))
        index = min(bisect_right(reach, place), len(reach) - 1)
        offset, part = self.parts[index]
        place -= reach[index - 1] if index else 0.0
        inside = min(bisect_right(part.sums, place), len(part.sums) - 1)
        return self._slip(offset, part.changes[inside])

    def _slip(self, offset: int, change: Change) -> Slip:
        start, end = offset + change.start, offset + change.end
        before = self.utterance[start:end]
        return Slip(
            *SLIP_KINDS[change.kind], start, end, before, change.after, change.kind, change.weight
        )


#: What was read at sites that is kept of an utterance.
_MOST_READINGS: Final = 1 << 9


class _Step(NamedTuple):
    """What is known of a text once some sites were read."""

    #: Where the next site may begin -> how likely the text is up to there, over `log_scale`.
    reached: Mapping[int, float]
    log_scale: float
    #: How many characters of the text were looked at.
    looked: int


@dataclass(frozen=True)
class NoisyUtterance:
    """The sites of an utterance, which slip or do not slip whatever the others do."""

    text: str
    #: In reading order; together they are all of the text. None where it has no word.
    sites: tuple[Site, ...]

    def given(self, kept: Callable[[Site], Sequence[Kept]]) -> NoisyUtterance:
        """Return the utterance given that no slip happens but those that are allowed.

        All probabilities of what is returned are on that condition; `probability_given` says
        how likely it is.

        Args:
            kept: returns what is allowed of each part of a site.
        """
        return NoisyUtterance(self.text, tuple([site.given(kept(site)) for site in self.sites]))

    def probability_given(self, rate: float) -> float:
        """Return how likely the condition is that the utterance was put under; 1 without one."""
        _check_rate(rate)
        return math.prod(site.probability_given(rate) for site in self.sites)

    def probability_clean(self, rate: float) -> float:
        """Return how likely nothing slips, at a slip rate in [0, 1]."""
        _check_rate(rate)
        return math.prod(1.0 - site.probability(rate) for site in self.sites)

    def log_probability(self, text: str, rate: float) -> float:
        """Return how likely the utterance comes out as ``text``, as a natural logarithm.

        It is the sum over all ways in which slips can make that text: the order of edits, and
        which of them an operator made, do not matter.

        Args:
            text: the variant; the clean utterance is one.
            rate: expected slips per word, in [0, 1].

        Returns:
            ``-inf`` for what cannot come about.
        """
        _check_rate(rate)
        if not self.sites:
            return 0.0 if text == self.text else -math.inf
        # Up to its first change it is read as the clean utterance is.
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
        """Read one more site of a text; ``None`` where it cannot be read on."""
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
        # Kept near 1: the product over a long utterance would be too small for a float.
        top = max(further.values())
        reached = {at: probability / top for at, probability in further.items()}
        return _Step(reached, step.log_scale + math.log(top), looked)

    def _clean_steps(self, rate: float) -> Sequence[_Step]:
        """Read the clean utterance, as far as that does not depend on where it ends."""
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

    # Not `lru_cache`: an object whose cache calls it back is only freed by Python's search for
    # what is unreachable, and utterances by the hundred would wait for that.

    @cached_property
    def _clean(self) -> dict[float, Sequence[_Step]]:
        """Slip rate -> the clean utterance as it is read."""
        return {}

    @cached_property
    def _readings(self) -> dict[tuple[int, str, float], Mapping[int, float]]:
        """Site, text from it on and slip rate -> what is read; of most it is so in all variants."""
        return {}

    def draw(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw what a person makes of it at a slip rate; no edits where nothing slips.

        The edits are from the last to the first, so that each stands at its place of the clean
        utterance. One number of the generator is used for each site, whatever is drawn.
        """
        _check_rate(rate)
        numbers = generator.random(len(self.sites))
        slips = (
            site.pick(float(number), rate) for site, number in zip(self.sites, numbers, strict=True)
        )
        return tuple(reversed([slip.edit for slip in slips if slip is not None]))

    def single(self, rate: float) -> tuple[tuple[Slip, float], ...]:
        """Return the outcomes in which one slip happens and no other, with their probabilities."""
        _check_rate(rate)
        clean = [1.0 - site.probability(rate) for site in self.sites]
        before = [1.0, *accumulate(clean, operator.mul)]
        after = [1.0, *accumulate(reversed(clean), operator.mul)][::-1]
        return tuple(
            (slip, before[index] * after[index + 1] * site.share(rate) * slip.weight)
            for index, site in enumerate(self.sites)
            for slip in site.slips
        )

    def probability_several(self, rate: float) -> float:
        """Return how likely two sites or more slip."""
        _check_rate(rate)
        return self._several(rate)[0][0]

    def draw_several(self, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw what a person makes of it who slips twice or more; see `draw`.

        Raises:
            ValueError: that cannot be: less than two sites can slip.
        """
        needed, odds = 2, self._several(rate)
        if not odds[0][0]:
            raise ValueError(f"{self.text!r} cannot have two slips")
        slips = []
        for index, (site, number) in enumerate(
            zip(self.sites, generator.random(len(self.sites)), strict=True)
        ):
            # Given what is still needed: the chance that this site slips is another one.
            chance = site.probability(rate)
            rest = odds[index + 1][2 - max(needed - 1, 0)] * chance
            given = rest / odds[index][2 - needed]
            if number < given:
                # What is left of the number is uniform again, and chooses the slip.
                place = min(float(number / given) * chance, math.nextafter(chance, 0.0))
                if (slip := site.pick(place, rate)) is not None:
                    slips.append(slip.edit)
                needed = max(needed - 1, 0)
        return tuple(reversed(slips))

    def _several(self, rate: float) -> list[tuple[float, float, float]]:
        """Return how likely the sites from each on have two slips, one, and any number, or more."""
        found = [(0.0, 0.0, 1.0)]
        for site in reversed(self.sites):
            chance, (two, one, any_) = site.probability(rate), found[-1]
            found.append(
                (chance * one + (1.0 - chance) * two, chance * any_ + (1.0 - chance) * one, 1.0)
            )
        return found[::-1]


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise UserError(f"the slip rate is {rate:g}: slips per word, a number from 0 to 1")


#: The models that ship.
SHIPPED: Final = ("typing", "casual", "speech")
_FOLDER: Final = resources.files("pytest_dstfuzz") / "resources" / "noise"


class NoiseModel:
    """What slips people make, and how likely they are.

    Args:
        file: its content, as `load` reads it.
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        scales = {kind.name: kind.scale for kind in file.kinds}
        # What is never drawn leaves its share to the others.
        drawn = 1.0 - math.fsum(kind.share for kind in file.kinds if kind.name == OTHER)
        others = {kind: scale / drawn for kind, scale in scales.items() if drawn and kind != OTHER}
        self._scales = {True: scales, False: others}
        self._habits = Habits(file.tables.keyboard, file.tables.confusions)
        self._words = lru_cache(maxsize=1 << 13)(self._word_changes)
        # Words differ, what their slips have in common does not.
        self._factor = lru_cache(maxsize=1 << 14)(self._product)
        again = self.file.tables.words.get("restart", {}).get(ANY_WORD, {})
        #: So many words at the start of an utterance are said again at most.
        self.again = max(map(int, filter(str.isdecimal, again)), default=0)
        # What is around a word comes again as two words that stand together do.
        self._here = lru_cache(maxsize=1 << 14)(self._parts)
        self._known = lru_cache(maxsize=1 << 8)(self._find)

    @classmethod
    def load(cls, name: str) -> NoiseModel:
        """Return a shipped model, or the one in a file.

        Raises:
            UserError: there is no such model or file, or the file is no sound noise model.
        """
        path = Path(name).expanduser()
        if name in SHIPPED:
            path = Path(str(_FOLDER / f"{name}.json"))
        elif not path.exists():
            guess = nearest(name, SHIPPED)
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise UserError(
                f"there is no noise model {name!r}.{hint} Give one of {', '.join(SHIPPED)}, or the "
                "path of a file that `dstfuzz fit-noise` wrote"
            )
        return cls(read_model_file(path))

    @property
    def name(self) -> str:
        """Name of the model, for reports."""
        return self.file.name

    @property
    def slip_rate(self) -> float:
        """Expected slips per word, where a run names no other rate."""
        return self.file.slip_rate

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that the probabilities depend on."""
        content = {**plain(self.file), "sources": [], "name": ""}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def of(self, utterance: str, *, every: bool = False) -> NoisyUtterance:
        """Return what can become of an utterance: its sites, densities and draws.

        Args:
            utterance: any text; one without words has no site, and no slips.
            every: also the slips of the kind `other`, any letter at all, which are there to give
                what people typed a likelihood: they are never drawn.
        """
        return self._known(utterance, every)

    def slips(self, utterance: str) -> tuple[tuple[Slip, ...], ...]:
        """Return the slips of each site of an utterance, in a fixed order.

        No two slips of a site give the same text: of several kinds that do, the likeliest names
        the slip, and their weights are added.
        """
        return tuple(site.slips for site in self.of(utterance).sites)

    def probability_clean(self, utterance: str, rate: float) -> float:
        """Return how likely an utterance is typed as it is; see `NoisyUtterance`."""
        return self.of(utterance).probability_clean(rate)

    def log_probability(self, utterance: str, text: str, rate: float) -> float:
        """Return how likely an utterance comes out as ``text``; see `NoisyUtterance`."""
        return self.of(utterance).log_probability(text, rate)

    def draw(self, utterance: str, generator: np.random.Generator, rate: float) -> tuple[Edit, ...]:
        """Draw what a person makes of an utterance; see `NoisyUtterance`."""
        return self.of(utterance).draw(generator, rate)

    def _find(self, utterance: str, every: bool) -> NoisyUtterance:
        found: list[Site] = []
        start = 0
        for place in places(utterance, self.file.tables):
            left = place.parts.words[place.first - 1].text if place.first else ""
            end = len(utterance) if place.ends else place.words[-1].end
            reach = end if place.first else max(end, *place.parts.ends[: self.again + 1])
            ahead = utterance[end:reach]
            parts = self._here(
                left, utterance[start:end], ahead, len(place.words), place.ends, every
            )
            moved = tuple([(start + at, part) for at, part in parts])
            found.append(Site(utterance, start, end, moved))
            start = end
        return NoisyUtterance(utterance, tuple(found))

    def _parts(
        self, left: str, clean: str, ahead: str, count: int, ends: bool, every: bool
    ) -> tuple[tuple[int, Changes], ...]:
        """Return the changes of the words of a site, and those of what is around them.

        Args:
            left: the word before it; ``""`` at the start of the utterance.
            clean: the text of the site.
            ahead: at the start, what follows as far as it may be said again.
            count: the number of its words.
            ends: whether it is the last site.
            every: see `of`.
        """
        start, text, first = len(left), left + clean + ahead, int(bool(left))
        place = Place(text, take_apart(text), first, first + count - 1, ends)
        around = distinct(
            clean,
            (
                Change(kind, slip.start - start, slip.end - start, slip.after, scale * slip.value)
                for kind, scale in self._scales[every].items()
                if kind not in LETTER_KINDS and kind not in RESPELLED
                for slip in word_slips(kind, place, self.file.tables)
            ),
        )
        words = [(word.start - start, self._words(word.text, every)) for word in place.words]
        alone = Site(clean, 0, len(clean), tuple(words))
        if count == 1 and not any(map(alone.weight_of, around.texts)):
            return tuple((at, part) for at, part in [*words, (0, around)] if part.changes)
        # A slip of a word and one of what is around it, or of two words, give the same text.
        moved = [
            change._replace(start=change.start + at, end=change.end + at)
            for at, part in [*words, (0, around)]
            for change in part.changes
        ]
        return ((0, distinct(clean, moved)),) if moved else ()

    def _word_changes(self, word: str, every: bool) -> Changes:
        """Return what happens to a word as typed, wherever it stands."""
        scales, factor = self._scales[every], self._factor
        changes = []
        for kind, start, end, after, features in letter_slips(word, self._habits, every=every):
            weight = factor(kind, features) * scales.get(kind, 0.0)
            changes.append(Change(kind, start, end, after, weight))
        for kind in RESPELLED:
            for form, value in respelled(word, self.file.tables.words.get(kind, {})):
                weight = value * scales.get(kind, 0.0)
                changes.append(Change(kind, 0, len(word), form, weight))
        return distinct(word, changes, of_word=True)

    def _product(self, kind: str, features: tuple[str, ...]) -> float:
        """Return how likely a slip of letters is, before its kind is weighed."""
        known = self.file.tables.factors.get(kind, {})
        return math.prod(known.get(feature, 1.0) for feature in features)


@lru_cache(maxsize=8)
def load_models(names: tuple[str, ...]) -> NoiseModel:
    """Return the model of some names or paths, each with its weight: ``("typing:3", "casual")``.

    Raises:
        UserError: there is no such model or file, or one is named twice.
    """
    given = [weighed(text) for text in names]
    for name, _ in given:
        if [other for other, _ in given].count(name) > 1:
            raise UserError(f"the noise model {name!r} is named twice")
    models = [NoiseModel.load(name) for name, _ in given]
    if len(models) == 1:
        return models[0]
    return NoiseModel(mixed([model.file for model in models], [weight for _, weight in given]))


def mixed(files: Sequence[ModelFile], weights: Sequence[float]) -> ModelFile:
    """Return a model whose slips are those of several, shared by their weights.

    A kind that several have is made as the first of them does, as often as all of them together.
    So are keys and letters that are confused.
    """
    total = math.fsum(weights)
    shares: dict[str, float] = {}
    kinds: dict[str, NoiseKind] = {}
    keyboard: dict[str, str] = {}
    confusions: dict[str, str] = {}
    factors: dict[str, dict[str, float]] = {}
    words: dict[str, dict[str, dict[str, float]]] = {}
    for file, weight in zip(files, weights, strict=True):
        tables = file.tables
        keyboard = {**tables.keyboard, **keyboard}
        confusions = {**tables.confusions, **confusions}
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
        tables=Tables(keyboard, confusions, factors, words),
    )
