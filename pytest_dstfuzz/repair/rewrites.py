"""Training data: rewrites of labelled turns, each with the right state after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dstfuzz import BeliefState, Context, Dialogue, DialogueSet, Outcome, Settings, UserError
from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.relations.relation import (
    BySearch,
    Expectation,
    Inapplicable,
    Relation,
    Scene,
    Scenes,
    begin,
    list_rewrites,
)
from pytest_dstfuzz.repair.examples import repair_answer
from pytest_dstfuzz.seeding import stream

#: Attempts to find a valid variant of an utterance.
_ATTEMPTS = 5


@dataclass(frozen=True)
class LabelledRewrite:
    """A rewrite of a turn, with the labels before and after the rewrite."""

    relation: str
    clean: Context
    before: BeliefState  #: Label of the clean turn.
    seen: Context
    after: BeliefState  #: A state that is right for the rewrite.
    expected: Expectation  #: The change from ``before`` to all right states.

    def holds(self, found: Outcome) -> bool:
        """Return whether a predicted state is right for the rewrite."""
        return self.expected.judge(self.before, found).kind == "held"


class RewriteSource:
    """Draws rewrites of labelled dialogues by the relations that edit single turns.

    The labels replace the tracker's answers, so the rewrites are those for a perfect tracker. If a
    relation leaves its edits to a search, they are drawn at random, as by the search ``random``.
    """

    def __init__(self, data: DialogueSet, relations: str, seed: int) -> None:
        """Prepare the rewrites of dialogues that have a label at every turn.

        Raises:
            UserError: a relation does not exist, edits whole dialogues, or cannot apply to the
                data.
        """
        self.relations = relations_named(relations, data, "state")
        for relation in self.relations:
            if relation.unit != "turn":
                raise UserError(
                    f"the relation {relation.name!r} edits whole dialogues: name relations that "
                    "edit single turns"
                )
            if why := relation.impossible(data):
                raise UserError(f"the relation {relation.name!r} does not apply: {why}")
        variant = Settings().variant
        lexicon = load_lexicon()
        self._data, self._seed, self._k = data, seed, variant.transformations
        self._perturber = Perturber.of(variant, data, lexicon)
        self._scenes = Scenes(data, lexicon, self._perturber.guards, seed)
        self._places = [
            (dialogue, turn.index)
            for dialogue in data.dialogues
            if all(turn.state is not None for turn in dialogue.turns)
            for turn in dialogue.turns
        ]

    def draw(self, count: int, *names: str | int) -> list[LabelledRewrite]:
        """Return at most ``count`` rewrites of each relation, at most one for each turn.

        The rewrites depend only on the seed and on ``names``.
        """
        return [one for relation in self.relations for one in self._of(relation, count, *names)]

    def _of(self, relation: Relation, count: int, *names: str | int) -> Iterator[LabelledRewrite]:
        rng = stream(self._seed, "rewrites", relation.name, *names)
        left = count
        for place in rng.permutation(len(self._places)):
            if left == 0:
                return
            found = self._rewrite(relation, *self._places[int(place)], rng)
            if found is not None:
                left -= 1
                yield found

    def _rewrite(
        self, relation: Relation, dialogue: Dialogue, index: int, rng: np.random.Generator
    ) -> LabelledRewrite | None:
        """Return one rewrite of a turn, or ``None`` if the relation does not apply to it."""
        scene = self._scenes.labelled(relation.name, dialogue, index)
        before = BeliefState(scene.now)
        begun = begin(relation, scene)
        if isinstance(begun, Inapplicable):
            return None
        if isinstance(begun, BySearch):
            text = self._variant(scene, rng)
            seen = None if text is None else scene.said(text)
            expected = Expectation()
        else:
            found = [
                one
                for one in list_rewrites(begun)
                if one.reference == scene.context and not one.between
            ]
            one = found[int(rng.integers(len(found)))] if found else None
            seen, expected = (None, Expectation()) if one is None else (one.seen, one.expected)
        after = repair_answer(before, expected.deltas)
        if seen is None or isinstance(after, str):
            return None
        return LabelledRewrite(
            relation.name, scene.context, before, seen, BeliefState(after), expected
        )

    def _variant(self, scene: Scene, rng: np.random.Generator) -> str | None:
        """Return a valid variant of the utterance, or ``None`` if none was found."""
        perturber, turn = self._perturber, scene.turn
        source = perturber.prepare(turn.user, lock_values(self._data, turn, None), turn.system)
        for _ in range(_ATTEMPTS):
            variant = perturber.apply(source, perturber.space.sample(rng, self._k))
            if variant.valid:
                return variant.text
        return None


def list_contexts(rewrites: Sequence[LabelledRewrite]) -> list[Context]:
    """Return the clean and the rewritten context of each rewrite, as `pick_broken` needs them."""
    return [context for one in rewrites for context in (one.clean, one.seen)]


def pick_broken(
    drawn: Sequence[LabelledRewrite], states: Sequence[Outcome], count: int
) -> tuple[list[LabelledRewrite], int]:
    """Return at most ``count`` rewrites of each relation, first those that break the tracker.

    ``states`` are the tracker's answers to `list_contexts`. The second value is the number of
    rewrites that break the tracker. If the clean answer is wrong by the label, the label may be
    wrong, so the rewrite does not count.
    """
    broken = [
        clean == one.before and not one.holds(found)
        for one, clean, found in zip(drawn, states[::2], states[1::2], strict=True)
    ]
    taken: Counter[str] = Counter()
    used = []
    for place in sorted(range(len(drawn)), key=lambda place: not broken[place]):
        one = drawn[place]
        taken[one.relation] += 1
        if taken[one.relation] <= count:
            used.append(one)
    return used, sum(broken)


def rank_of_round(clean: float, least: float, rewritten: float) -> tuple[float, float]:
    """Return a key for the best round of a training: the highest accuracy on rewritten turns.

    Rounds whose accuracy on clean turns is less than ``least`` come last, by their distance.
    """
    return min(clean - least, 0.0), rewritten


def accuracy_on(rewrites: Sequence[LabelledRewrite], states: Sequence[Outcome]) -> float:
    """Return the share of rewrites with the expected state, as the mean over relations."""
    held = [one.holds(state) for one, state in zip(rewrites, states, strict=True)]
    return mean_over_relations(rewrites, held)


def mean_over_relations(rewrites: Sequence[LabelledRewrite], held: Sequence[bool]) -> float:
    """Return the share of rewrites that hold, as the mean over relations."""
    by_relation: dict[str, list[bool]] = {}
    for one, right in zip(rewrites, held, strict=True):
        by_relation.setdefault(one.relation, []).append(right)
    shares = [sum(of) / len(of) for of in by_relation.values()]
    return sum(shares) / len(shares) if shares else 0.0
