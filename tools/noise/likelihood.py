"""How well a model foresees slips that people made: bits per slip, against any edit alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.evidence import SlipEvidence
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import slip_between
from pytest_dstfuzz.perturb.words import one_letter_away

#: What happened -> in words, in the order of tables. They do not depend on a model.
HAPPENED: Final[Mapping[str, str]] = {
    "missing": "a letter missing",
    "repeat": "a letter twice",
    "keyboard_insert": "a key beside hit as well",
    "inserted": "another letter too many",
    "keyboard": "a key beside hit instead",
    "confusion": "another letter instead",
    "swap": "two letters swapped",
    "blank": "a blank missing",
    "split": "a blank put in",
    "two": "two letters",
}


class Score(NamedTuple):
    """One slip that happened."""

    #: One of `HAPPENED`.
    what: str
    #: -log2 of its probability, given that the word slips; infinite where it has none.
    model: float
    #: The same if all texts one letter away, or without a blank, are equally likely; infinite for
    #: other texts.
    uniform: float
    #: log2 of how much likelier than the mean word the word was to slip.
    where: float


def scores(model: NoiseModel, slips: Iterable[SlipEvidence]) -> list[Score]:
    """Return what a model and uniform edits say of slips."""
    return [_score(model, slip.word, slip.typed) for slip in slips]


def _score(model: NoiseModel, word: str, typed: str) -> Score:
    site = model.of(word).sites[-1]
    weight = site.texts.get(typed[site.start :], 0.0)
    alike = one_letter_away(word.rpartition(" ")[2])
    made = " " in word or typed in alike
    return Score(
        happened(word, typed, model.file.tables.keyboard),
        -math.log2(weight / site.weight) if weight else math.inf,
        math.log2(len(alike) + (" " in word)) if made else math.inf,
        math.log2(site.weight) if site.weight else -math.inf,
    )


def happened(word: str, typed: str, keyboard: Mapping[str, str]) -> str:
    """Return what happened to a word, a key of `HAPPENED`."""
    if " " in word:
        return "blank"
    slip = slip_between(word, typed, keyboard)
    return slip.kind if slip else "two"


def mean(values: Iterable[float]) -> float:
    """Return the mean; 0 of nothing."""
    found = list(values)
    return math.fsum(found) / len(found) if found else 0.0
