"""Which words of the context a question needs: a logistic regression on each of them.

It is the second form of our check of contexts, and no part of the package: it is trained when an
experiment runs, on one half of the dialogues, as its weights may not be shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.papers.canard import Rewrites
from pytest_dstfuzz.relations.contexts.needed import stands_alone
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion, opening_of, round_of
from pytest_dstfuzz.relations.contexts.texts import DEMONSTRATIVES, PERSONS, THINGS, read

Floats = npt.NDArray[np.float64]
#: Weight of the squared coefficients, and steps of Newton's method.
_PENALTY: Final = 1.0
_STEPS: Final = 12
#: Rounds away from which on all are alike.
_FAR: Final = 6


@dataclass(frozen=True, slots=True)
class ContextWords:
    """The words of a clean context that a question may need, and what is known of each."""

    words: tuple[str, ...]
    features: Floats  #: [words, features], the first of which is 1.


def candidates(gold: Rewrites, dialogue: Dialogue, index: int) -> ContextWords:
    """Return the words of opening and earlier rounds that the question does not say itself."""
    lexicon = gold.lexicon
    question = read(dialogue.turns[index].user, lexicon)
    answer = gold.words(round_of(dialogue, index).answer)
    title = read(opening_of(dialogue), lexicon)
    last: dict[str, int] = {}
    counts: dict[str, int] = {}
    names = {title.lowers[place] for place in title.names}
    asked_before: set[str] = set()
    for one in range(index):
        for place, text in enumerate(round_of(dialogue, one)):
            reading = read(text, lexicon)
            names |= {reading.lowers[at] for at in reading.names}
            for word in sorted(reading.content):
                last[word] = one
                counts[word] = counts.get(word, 0) + 1
            if one == index - 1 and not place:
                asked_before = set(reading.content)
    pointers = question.pointers()
    kinds = [
        bool(pointers & PERSONS),
        bool(pointers & THINGS),
        bool(pointers & DEMONSTRATIVES),
        stands_alone(question),
        len(question.lowers) < 4,
        not index,
    ]
    words = tuple(sorted((set(last) | title.content) - question.content))
    rows = []
    for word in words:
        away = min(index - last[word], _FAR) if word in last else _FAR + 1
        about = [
            word in title.content,
            word in names,
            word in answer,
            word in asked_before,
            away == 1,
            away <= 2,
            away > _FAR,
            word[:1].isdigit(),
        ]
        crossed = [float(one and kind) for one in about[:5] for kind in kinds]
        rows.append(
            [1.0, *map(float, about), *map(float, kinds), *crossed, counts.get(word, 0) / 5]
        )
    return ContextWords(words, np.array(rows))


@dataclass(frozen=True, slots=True)
class WordModel:
    """Coefficients, and from which probability on a word counts as needed."""

    weights: Floats
    threshold: float
    #: A question of which no word is as likely as this needs nothing.
    quiet: float
    gold: Rewrites

    def stands_alone(self, dialogue: Dialogue, index: int) -> bool:
        """Whether a question needs nothing of its clean context."""
        found = candidates(self.gold, dialogue, index)
        likely = _chances(found.features, self.weights) if found.words else np.zeros(1)
        return bool(likely.max() < self.quiet)

    def needed(self, dialogue: Dialogue, index: int) -> frozenset[str]:
        """Return the words of the clean context that a question needs."""
        found = candidates(self.gold, dialogue, index)
        if not found.words:
            return frozenset()
        likely = _chances(found.features, self.weights) >= self.threshold
        return frozenset(word for word, yes in zip(found.words, likely, strict=True) if yes)


class WordCheck:
    """The words that the model takes for needed stand before the question, or they do not."""

    name = "words"

    def __init__(self, model: WordModel) -> None:
        self._model = model
        self._needed: dict[tuple[str, int, bool], frozenset[str]] = {}

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether the rounds before a question have all that it needs."""
        key = asked.dialogue.id, asked.turn, bool(asked.opening)
        if key not in self._needed:
            self._needed[key] = self._model.needed(asked.dialogue, asked.turn)
        return self._needed[key] <= self._model.gold.brought(asked.dialogue, asked.before)


def train(gold: Rewrites, dialogues: Sequence[Dialogue]) -> WordModel:
    """Fit the coefficients by Newton's method; thresholds are those of the best F1 on them."""
    found, labels, ends, silent = [], [], [0], []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            one = candidates(gold, dialogue, turn.index)
            needed = gold.needed(dialogue, turn.index)
            if one.words:
                found.append(one.features)
                labels += [word in needed for word in one.words]
                ends.append(len(labels))
                silent.append(not gold.differs(dialogue, turn.index))
    rows, wanted = np.concatenate(found), np.array(labels, dtype=np.float64)
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chances = _chances(rows, weights)
        slope = rows.T @ (wanted - chances) - _PENALTY * weights
        curve = (rows * (chances * (1 - chances))[:, None]).T @ rows
        weights = weights + np.linalg.solve(curve + _PENALTY * np.eye(len(weights)), slope)
    chances = _chances(rows, weights)
    # A question is silent where its likeliest word is unlikely.
    largest = np.maximum.reduceat(chances, ends[:-1])
    quiet = 1 - _best_threshold(1 - largest, np.array(silent, dtype=np.float64))
    return WordModel(weights, _best_threshold(chances, wanted), quiet, gold)


def _chances(rows: Floats, weights: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-rows @ weights))
    return chances


def _best_threshold(chances: Floats, wanted: Floats) -> float:
    best, found = -1.0, 0.5
    for threshold in np.linspace(0.05, 0.95, 91):
        said = chances >= threshold
        right = float(wanted[said].sum())
        f1 = 2 * right / max(1.0, float(said.sum()) + float(wanted.sum()))
        if f1 > best:
            best, found = f1, float(threshold)
    return found
