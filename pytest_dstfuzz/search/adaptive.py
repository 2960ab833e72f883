"""The search ``adaptive``, which learns during a run which edits break the bot."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.values import canonical
from pytest_dstfuzz.perturb.words import Edit, Variant, word_list
from pytest_dstfuzz.search.candidates import (
    Candidate,
    Composer,
    candidates_of,
    find_mention,
    touched_words,
)
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Lesson,
    Proposal,
    Search,
    SearchTask,
    TriedVariant,
    TurnSearch,
)

Floats = npt.NDArray[np.float64]

NAME: Final = "adaptive"
#: Maximum number of dialogues that the search learns from.
LESSONS: Final = 64
#: Kinds of words: lock of `Mask.reasons` -> name. Other words are fillers or contents.
_KINDS: Final = {
    "value": "value",
    "number": "number",
    "name": "name",
    "cue": "cue",
    "reference": "cue",
    "negation": "polarity",
    "dontcare": "polarity",
    "affirmation": "polarity",
}
_WORDS: Final = ("value", "number", "name", "cue", "polarity", "filler", "content")
#: Kinds of edits: operator -> name. Other operators mistype letters.
_ACTS: Final = {
    "blank": "blank",
    "case": "case",
    "punctuation": "mark",
    "full_stop": "mark",
    "apostrophe": "mark",
    "diacritic": "look-alike",
    "homoglyph": "look-alike",
    "misspelling": "letters",
}
#: The same by transformation, for operators of whole words.
_WHOLE: Final = {"word_insert": "added", "word_replace": "replaced", "word_drop": "dropped"}
_EDITS: Final = ("letters", "blank", "case", "mark", "look-alike", "added", "replaced", "dropped")
#: Upper limits of the classes of the distance to a value, in words.
_RINGS: Final = (0, 1, 3, 98)
_PLAIN: Final = (
    *("one", "length", "in answer", "in system turn", "rarity", "turn length"),
    *("first letter", "known result"),
)
#: Features of earlier dialogues and of earlier attempts at the turn.
_PAST: Final = ("word", "word and edit", "operator", "kind and edit", "slot and edit")
_TRIED: Final = ("tried word", "tried edit", "attempts")
#: The names of the features of an edit.
FEATURES: Final = (
    *_PLAIN,
    *(f"word: {name}" for name in _WORDS),
    *(f"edit: {name}" for name in _EDITS),
    *(f"distance: {number}" for number in range(len(_RINGS) + 1)),
    *(f"past: {name}" for name in _PAST),
    *_TRIED,
)
_INDEX: Final = {name: place for place, name in enumerate(FEATURES)}
_ACT_FEATURES: Final = [_INDEX[f"edit: {name}"] for name in _EDITS]
_FIRST_OF_EDIT: Final = FEATURES.index("first letter")
_FIRST_PAST: Final = FEATURES.index(f"past: {_PAST[0]}")
_FIRST_TRIED: Final = FEATURES.index(_TRIED[0])
#: Number of imaginary edits with the usual rate, behind each rate that the search has seen.
_SMOOTHED: Final = 2.0
#: Limits of the logarithm of a rate, relative to the usual one.
_LOWEST, _HIGHEST = -1.5, 3.0
#: Number of imaginary variants behind the usual rate of broken variants, and this rate.
_BEFORE: Final = (20.0, 0.15)
#: Maximum number of Newton steps, and the change of the weights at which they end.
_STEPS, _ENOUGH = 25, 1e-7
#: Digits of the weights. Sums may differ in the last digits between numbers of threads.
_DIGITS: Final = 6


class EditKey(NamedTuple):
    """A key that groups edits. Edits with the same key often cause the same weakness."""

    word: str  #: A name in `_WORDS`.
    act: str  #: A name in `_EDITS`.
    slot: str  #: The slot whose value is nearest, or ``""``.


class EditCounts:
    """Counts of trials and violations, by the names of an edit."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[str, ...]] = Counter()
        self.broken: dict[tuple[str, ...], float] = {}

    def add(self, names: Iterable[tuple[str, ...]], broken: float) -> None:
        """Count an edit, and its share in a violation, under all its names."""
        for name in names:
            self.tried[name] += 1
            if broken:
                self.broken[name] = self.broken.get(name, 0.0) + broken

    def ratio(self, name: tuple[str, ...]) -> float:
        """Return the logarithm of a rate relative to the mean rate, or 0 without data."""
        if name not in self.tried:
            return 0.0
        usual = (self.broken.get((), 0.0) + 0.1) / (self.tried[()] + 1.0)
        rate = (self.broken.get(name, 0.0) + _SMOOTHED * usual) / (self.tried[name] + _SMOOTHED)
        return min(max(math.log(rate / usual), _LOWEST), _HIGHEST)


@dataclass(frozen=True)
class Belief:
    """The search's present estimate: a normal distribution of the weights of the features."""

    mean: Floats  #: [FEATURES]
    precision: Floats  #: [FEATURES, FEATURES], the inverse of the covariance.

    @cached_property
    def _spread(self) -> npt.NDArray[np.floating[Any]]:
        """The matrix that gives independent standard normal numbers the covariance."""
        return np.linalg.inv(np.linalg.cholesky(self.precision).T)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw the weights: [FEATURES] (Thompson sampling)."""
        noise = self._spread @ rng.standard_normal(len(self.mean))
        found: Floats = self.mean + np.round(noise, _DIGITS)
        return found

    def fit(self, rows: Floats, labels: Floats, weights: Floats) -> Belief:
        """Return the estimate after some edits, by logistic regression (Laplace's approximation).

        Args:
            rows: the features of the edits, [edits, FEATURES].
            labels: the share of each edit in a violation, [edits], in [0, 1].
            weights: how much each edit counts, [edits].
        """
        mean, curved = self.mean, self.precision
        for _ in range(_STEPS):
            chances = sigmoid(rows @ mean)
            curved = self.precision + (rows.T * (weights * chances * (1.0 - chances))) @ rows
            slope = rows.T @ (weights * (labels - chances)) - self.precision @ (mean - self.mean)
            step = np.linalg.solve(curved, slope)
            # A long step may overshoot.
            step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-9))
            mean = mean + step
            if float(np.abs(step).max()) < _ENOUGH:
                break
        return Belief(np.round(mean, _DIGITS), np.round(curved, _DIGITS))


def sigmoid(values: Floats) -> Floats:
    """Return the logistic function of each value."""
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(values, -30.0, 30.0)))
    return found


@cache
def shipped_prior() -> Belief:
    """Return the estimate before the first answer, learned on several bots."""
    path = Path(__file__).parents[1] / "resources" / "search" / "adaptive.json"
    stored = json.loads(read_text(path))
    mean = [float(stored["mean"].get(name, 0.0)) for name in FEATURES]
    precision = [float(stored["precision"].get(name, 1.0)) for name in FEATURES]
    return Belief(np.array(mean), np.diag(np.array(precision)))


class AdaptiveSearch(Search):
    """Learns from the first dialogues of the run which edits break the bot under test.

    The search is a contextual bandit. A logistic regression estimates the probability that an edit
    breaks the relation. Its features have the same meaning for every bot. Its weights are drawn
    from their posterior distribution (Thompson sampling), so that edits with little data are tried,
    too. Edits that would repeat a known weakness get a lower value.
    """

    name = NAME
    adaptive = waits = True
    associates = False
    order = "distance"
    lessons = LESSONS

    def __init__(self, seed: int, k: int, prior: Belief | None = None) -> None:  # noqa: ARG002 - the word quota limits the edits
        self.seed = seed
        self.belief = prior or shipped_prior()
        self.past = Past()

    @property
    def learned(self) -> str:
        """A text that identifies what the search has learned."""
        return self.past.fingerprint

    def learn(self, lessons: Sequence[Lesson]) -> AdaptiveSearch:
        """Return a search that has also learned from the results of some dialogues."""
        other = AdaptiveSearch(self.seed, 0, self.belief)
        other.past = self.past.with_lessons(lessons, self.now.mean)
        other.belief = self.belief
        return other

    @cached_property
    def now(self) -> Belief:
        """The belief after all lessons."""
        return self.past.belief(self.belief)

    def turn(self, task: SearchTask) -> AdaptiveTurn:
        """Return an object that proposes variants of one turn."""
        return AdaptiveTurn(self, task)


@dataclass(slots=True)
class Past:
    """The edits of finished dialogues, and their results."""

    counts: EditCounts = field(default_factory=EditCounts)
    #: How often violations of a key were found.
    found: Counter[EditKey] = field(default_factory=Counter)
    #: Numbers of tried and of broken variants.
    variants: int = 0
    broken: int = 0
    rows: list[Floats] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """A text that identifies the edits and their results."""
        if not self.rows:
            return ""
        told = np.concatenate([np.ravel(self.rows), self.labels, self.weights])
        found = repr(sorted(self.found.items())).encode()
        return hashlib.sha256(np.round(told, _DIGITS).tobytes() + found).hexdigest()[:12]

    @property
    def usual(self) -> float:
        """The share of variants that break the relation."""
        count, share = _BEFORE
        return (self.broken + count * share) / (self.variants + count)

    def belief(self, prior: Belief) -> Belief:
        """Return the estimate of the weights after these edits."""
        if not self.rows:
            return prior
        return prior.fit(np.array(self.rows), np.array(self.labels), np.array(self.weights))

    def with_lessons(self, lessons: Sequence[Lesson], believed: Floats) -> Past:
        """Return a copy that also includes some more dialogues.

        Args:
            lessons: the results of the dialogues.
            believed: the weights before the lessons: [FEATURES].
        """
        other = Past(EditCounts(), Counter(self.found), self.variants, self.broken)
        other.counts.tried = Counter(self.counts.tried)
        other.counts.broken = dict(self.counts.broken)
        other.rows, other.labels = [*self.rows], [*self.labels]
        other.weights = [*self.weights]
        for lesson in lessons:
            other._add(lesson, self, believed)
        return other

    def _add(self, lesson: Lesson, before: Past, believed: Floats) -> None:
        """Record the variants of a turn. Features describe what was known before the lessons."""
        view = EditView(lesson.task, _edits_of(lesson.task, lesson.tried), before.counts)
        held: list[list[int]] = []
        for one in lesson.tried:
            made = view.made(one.edits)
            self.variants += 1
            self.broken += one.broken
            if made:
                rows = view.rows(held)[made]
                labels, weights = _credit(one, made, {*view.made(one.needed)}, rows @ believed)
                for place, row, label, weight in zip(made, rows, labels, weights, strict=True):
                    if not weight:
                        continue
                    self.rows.append(row)
                    self.labels.append(label)
                    self.weights.append(weight)
                    self.counts.add(((), *view.names(place)), label)
                    if label >= _BLAMED:
                        self.found[view.keys[place]] += 1
            if not one.broken:
                held.append(made)


#: Minimum share in a violation for an edit that counts as a cause.
_BLAMED: Final = 0.3


def _credit(
    one: TriedVariant, made: Sequence[int], needed: set[int], scores: Floats
) -> tuple[list[float], list[float]]:
    """Return each edit's share in a violation, and its weight as evidence.

    If the minimal version of a violation is known, its edits share the violation. The other edits
    are no evidence. Otherwise all edits share the violation by their estimated probabilities.
    """
    if not one.broken:
        return [0.0] * len(made), [1.0] * len(made)
    if needed & {*made}:
        both = [place in needed for place in made]
        share = 1.0 / sum(both)
        return [share * is_needed for is_needed in both], [float(is_needed) for is_needed in both]
    chances = sigmoid(scores)
    return (chances / chances.sum()).tolist(), [1.0] * len(made)


def _edits_of(task: SearchTask, tried: Iterable[TriedVariant]) -> tuple[Candidate, ...]:
    """Return the different edits of some variants as candidates."""
    found: dict[tuple[int, int, str], Candidate] = {}
    for one in tried:
        for edit in _single(one.edits):
            if words := touched_words(task.source, edit.start, edit.end):
                made = Candidate(edit, words, 0.0)
                found.setdefault(made.name, made)
    return tuple(found[name] for name in sorted(found))


def _single(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield each edit as if it were the only one."""
    for edit, (start, end) in zip(edits, source_spans(edits), strict=True):
        yield replace(edit, start=start, end=end)


def _act_of(edit: Edit) -> str:
    """Return the kind of an edit, a name in `_EDITS`."""
    return _ACTS.get(edit.operator) or _WHOLE.get(edit.transformation, "letters")


def _operator_name(edit: Edit) -> tuple[str, str, str]:
    """Return the name that counts the results of an operator."""
    return "operator", edit.transformation, edit.operator


class EditView:
    """The features of some single edits of one turn."""

    def __init__(self, task: SearchTask, candidates: Sequence[Candidate], past: EditCounts) -> None:
        self.candidates = tuple(candidates)
        self._facts = facts = _TurnFacts(task)
        # Many edits are of the same kind at the same words, and share most features.
        groups: dict[tuple[tuple[int, ...], str], int] = {}
        of_group = np.array(
            [
                groups.setdefault((one.words, _act_of(one.edit)), len(groups))
                for one in self.candidates
            ],
            dtype=np.int64,
        )
        group_keys = [facts.key(*group) for group in groups]
        #: For each edit, its key.
        self.keys = [group_keys[number] for number in of_group]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(group_keys))}
        #: The different keys, and the index of each edit's key among them.
        self.different = tuple(numbers)
        self.key_numbers = np.array([numbers[key] for key in group_keys], dtype=np.int64)[of_group]
        ratio = cache(past.ratio)
        rows = np.zeros((len(groups), len(FEATURES)))
        touched = np.zeros((len(groups), len(task.source.words)))
        about_words = cache(facts.of_words)
        for row, here, (words, act), key in zip(rows, touched, groups, group_keys, strict=True):
            row[:] = about_words(words)
            row[_INDEX[f"edit: {act}"]] = 1.0
            here[list(words)] = 1.0
            if past.tried:
                row[_FIRST_PAST:_FIRST_TRIED] = [
                    ratio(name) if name else 0.0 for name in facts.names(words[0], key)
                ]
        #: [candidates, FEATURES], without earlier attempts.
        self._rows: Floats = rows[of_group]
        for row, one in zip(self._rows, self.candidates, strict=True):
            row[_FIRST_OF_EDIT : len(_PLAIN)] = facts.of_edit(one)
        if past.tried:
            operators = [ratio(_operator_name(one.edit)) for one in self.candidates]
            self._rows[:, _FIRST_PAST + _PAST.index("operator")] = operators
        self._touched = touched[of_group]
        self._acts = self._rows[:, _ACT_FEATURES]

    @cached_property
    def _places(self) -> dict[tuple[int, int, str], int]:
        return {one.name: place for place, one in enumerate(self.candidates)}

    def names(self, place: int) -> tuple[tuple[str, ...], ...]:
        """Return the names that count the results of a candidate, as in `_PAST`."""
        one = self.candidates[place]
        names = self._facts.names(one.words[0], self.keys[place])
        return tuple(name or _operator_name(one.edit) for name in names)

    def made(self, edits: Sequence[Edit]) -> list[int]:
        """Return the indices of the candidates that some edits contain."""
        spans = source_spans(edits)
        names = ((*span, edit.after) for span, edit in zip(spans, edits, strict=True))
        return sorted({self._places[name] for name in names if name in self._places})

    def often(self, tried: Sequence[Sequence[int]]) -> Floats:
        """Return how often attempts edited the words of each candidate: [candidates].

        Args:
            tried: the indices of the edits of each attempt.
        """
        often = np.zeros(self._touched.shape[1])
        for made in tried:
            often += self._touched[list(made)].max(axis=0, initial=0.0)
        found: Floats = (self._touched * often).max(axis=1, initial=0.0)
        return found

    def often_with_act(self, tried: Sequence[Sequence[int]]) -> Floats:
        """Return how often attempts had an edit of the kind of each candidate: [candidates].

        Args:
            tried: the indices of the edits of each attempt.
        """
        often = np.zeros(self._acts.shape[1])
        for made in tried:
            often += self._acts[list(made)].max(axis=0, initial=0.0)
        found: Floats = self._acts @ often
        return found

    def rows(self, tried: Sequence[Sequence[int]], often: Floats | None = None) -> Floats:
        """Return the features after some unsuccessful attempts: [candidates, FEATURES].

        Args:
            tried: the indices of the edits of each attempt.
            often: the result of `often` if it is known.
        """
        found = self._rows.copy()
        if tried and len(found):
            for made in tried:
                found[list(made), _FIRST_TRIED + 1] += 1.0
            words = self.often(tried) if often is None else often
            found[:, _FIRST_TRIED] = np.minimum(words, 4.0) / 2
            found[:, _FIRST_TRIED + 1] = np.minimum(found[:, _FIRST_TRIED + 1], 2.0)
            found[:, _FIRST_TRIED + 2] = math.log1p(len(tried))
        return found


class _TurnFacts:
    """The facts about the words of a turn, as the features need them."""

    def __init__(self, task: SearchTask) -> None:
        self._lexicon: Lexicon = load_lexicon()
        self._source = source = task.source
        self._words = [token.lower for token in source.draft.tokens]
        same = [canonical(word) for word in self._words]
        state = {} if task.clean is None else dict(task.clean.state)
        answer = {canonical(word) for value in state.values() for word in word_list(str(value))}
        system = {
            canonical(word) for word in word_list(task.dialogue.turns[task.turn_index].system)
        }
        self._answered = [word in answer for word in same]
        self._said = [word in system for word in same]
        mentions = {slot: find_mention(same, str(value)) for slot, value in sorted(state.items())}
        said = [(slot, place) for slot, places in mentions.items() for place in places]
        #: For each word, the slot of the nearest mention, and its kind.
        self._slots = [
            min(((abs(place - word), slot) for slot, place in said), default=(0, ""))[1]
            for word in range(len(self._words))
        ]
        self._kinds = [self._kind(place) for place in range(len(self._words))]
        self._length = min(len(self._words), 40) / 20

    def key(self, words: Sequence[int], act: str) -> EditKey:
        """Return the key of edits of some words, given their kind in `_EDITS`."""
        return EditKey(self._kinds[words[0]], act, self._slots[words[0]])

    def names(self, first: int, key: EditKey) -> tuple[tuple[str, ...], ...]:
        """Return the names that count the results of edits with a key, as in `_PAST`.

        The name of the operator is empty, because edits with the same key may differ in it.

        Args:
            first: the index of the first word of the edits.
            key: the key.
        """
        word = self._words[first]
        return (
            ("word", word),
            ("word and edit", word, key.act),
            (),
            ("kind and edit", key.word, key.act),
            ("slot and edit", key.slot, key.act),
        )

    def of_words(self, words: tuple[int, ...]) -> Floats:
        """Return the features that depend only on the words of an edit: [FEATURES]."""
        first, found = words[0], np.zeros(len(FEATURES))
        rank = self._lexicon.frequency_rank(self._words[first])
        found[:_FIRST_OF_EDIT] = [
            1.0,
            min(len(self._words[first]), 12) / 6,
            any(self._answered[place] for place in words),
            any(self._said[place] for place in words),
            math.log1p(5_000 if rank is None else min(rank, 5_000)) / 4,
            self._length,
        ]
        distance = min(self._source.draft.tokens[place].distance for place in words)
        ring = sum(distance > limit for limit in _RINGS)
        found[[_INDEX[f"word: {self._kinds[first]}"], _INDEX[f"distance: {ring}"]]] = 1.0
        return found

    def of_edit(self, one: Candidate) -> tuple[bool, bool]:
        """Return the other features of `_PLAIN`."""
        edit, source = one.edit, self._source
        start = source.parts.starts[one.words[0]]
        end = source.parts.ends[one.words[-1]]
        low, high = min(start, edit.start), max(end, edit.end)
        made = source.text[low : edit.start] + edit.after + source.text[edit.end : high]
        words = (made,) if made.isalpha() else word_list(made)
        return edit.start <= start < edit.end, all(map(self._lexicon.is_word, words))

    def _kind(self, place: int) -> str:
        reason = self._source.mask.reasons[place]
        if kind := _KINDS.get(reason):
            return kind
        return "filler" if self._words[place] in self._lexicon.stop_words else "content"


class AdaptiveTurn(TurnSearch):
    """Proposes the variants of one turn for `AdaptiveSearch`."""

    def __init__(self, search: AdaptiveSearch, task: SearchTask) -> None:
        self._search = search
        self._task = task
        #: Text of a variant -> the indices of its edits among the candidates.
        self._known: dict[str, list[int]] = {}

    @cached_property
    def _view(self) -> EditView:
        task = self._task
        rng = task.stream(NAME, self._search.seed, "candidates")
        candidates = candidates_of(task.perturber, task.source, rng)
        return EditView(task, candidates, self._search.past.counts)

    @cached_property
    def _composer(self) -> Composer:
        return Composer(self._task, self._view.candidates)

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the most promising variant, or the clean utterance to skip this pass."""
        task, view, past = self._task, self._view, self._search.past
        if not view.candidates:
            return skip(task)
        tried = [one for one in seen if one.answered]
        held = [self._made(one.proposal.variant) for one in tried if not one.broken]
        broken = [self._made(one.proposal.variant) for one in tried if one.broken]
        rng = task.stream(NAME, self._search.seed, number, draw)
        weights = self._search.now.draw(rng)
        often = view.often(held)
        chances = sigmoid(view.rows(held, often) @ weights)
        worth = chances * (self._novelty(broken) if broken else self._first_novelty)
        worth *= AGAIN_AT_WORD**often * AGAIN_WITH_ACT ** view.often_with_act(held)
        needed = past.usual * threshold(number, task.variants, broken=bool(broken))
        # No variant has more edits than the quota. The margin is far above the rounding errors.
        best = np.sort(worth)[-task.source.draft.quota :]
        if _worth_of(best) < needed - _MARGIN:
            return skip(task)
        chosen = self._composer.choose(worth)
        if not chosen or _worth_of(worth[chosen]) < needed:
            return skip(task)
        return Proposal(self._composer.variant(chosen), NO_ACTION)

    def _made(self, variant: Variant) -> list[int]:
        """Return the indices of the candidates that a variant contains."""
        if variant.text not in self._known:
            self._known[variant.text] = self._view.made(variant.edits)
        return self._known[variant.text]

    @cached_property
    def _first_novelty(self) -> Floats:
        return self._novelty(())

    def _novelty(self, broken: Sequence[Sequence[int]]) -> Floats:
        """Return the discount of each candidate after some violations: [candidates]."""
        keys, found = self._view.keys, self._search.past.found
        here = Counter(keys[place] for made in broken for place in made)
        discounts: Floats = np.array(
            [
                (1.0 + found.get(key, 0) + here.get(key, 0)) ** -NOVELTY
                for key in self._view.different
            ]
        )
        return discounts[self._view.key_numbers]


#: Difference of worth that no rounding error reaches.
_MARGIN: Final = 1e-9


def _worth_of(edits: Floats) -> float:
    """Return the worth of a variant from the worths of its edits."""
    return 1.0 - float(np.prod(1.0 - edits))


#: Exponent of the discount for an edit with the number of violations that have its key.
NOVELTY: Final = 0.3
#: Discount factor for an edit, per attempt that edited its word without effect.
AGAIN_AT_WORD: Final = 0.5
#: Discount factor for an edit, per attempt at the turn with an edit of its kind, without effect.
AGAIN_WITH_ACT: Final = 0.7
#: Required worth of a variant in the first pass, relative to the usual share of broken variants.
FIRST: Final = 1.0
#: Exponent of its decrease over the passes.
FALL: Final = 2.0
#: Required worth at a turn that broke already.
AGAIN: Final = 1.0


def threshold(number: int, variants: int, *, broken: bool) -> float:
    """Return how promising a variant must be in a pass, relative to the average.

    The result falls from pass to pass, to 0 in the last pass. If the turn already broke, the result
    does not fall.

    Args:
        number: index of the pass, 0 to ``variants - 1``.
        variants: number of passes.
        broken: whether the turn already broke.
    """
    left = 1.0 - number / (variants - 1) if variants > 1 else 0.0
    return float(max(FIRST * left**FALL, AGAIN * broken))


def skip(task: SearchTask) -> Proposal:
    """Propose the clean utterance, to skip the pass. It is not sent to the tracker."""
    text = task.source.text
    return Proposal(Variant(text, text, (), 0.0, 0.0, "vacuous"), NO_ACTION)
