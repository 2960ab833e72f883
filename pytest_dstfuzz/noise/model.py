"""The noise model: which slips people make in an utterance, and how likely each is.

An utterance falls into *sites*: a word with the gap before it, or two words that are often written
as one (`going to`); the last has what is after it, too. A site has at most one slip, whatever the
other sites have. A slip has a *weight*: how often it is expected at slip rate 1. At a slip rate
``r`` it happens with the probability ``r * weight``, and the site stays clean with what is left of
1; where all weights of a site are so large that less than 0.1 would be left, they are made smaller
together. The weights of all words of the texts that a model was fitted to have the mean 1: there
``r`` is the expected number of slips per word. An utterance of long words has more.
"""

from __future__ import annotations

import hashlib
import json
import math
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.noise.letters import LETTER_KINDS, OTHER, Habits, letter_slips
from pytest_dstfuzz.noise.phrases import ANY_WORD, RESPELLED, Place, places, respelled, word_slips
from pytest_dstfuzz.noise.sites import Change, Changes, Site, Slip, distinct
from pytest_dstfuzz.noise.tables import ModelFile, plain, read_model_file
from pytest_dstfuzz.noise.utterance import NoisyUtterance
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import take_apart

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
