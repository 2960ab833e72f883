"""The environment that the agent learns in: dialogues, side by side.

An episode is a dialogue, a step an attempt at one of its turns. Attempts go in passes, as
in a campaign: number 0 of every turn, then number 1, ...; a turn that is broken gets no
further ones. As in Gymnasium, an episode is ``terminated`` when nothing is left to break,
and ``truncated`` when its attempts are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_dstfuzz.agents.features import Trace, TurnView
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, SlotChange
from pytest_dstfuzz.perturb.designs import replaces
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.types import Action, Variant
from pytest_dstfuzz.relations.difference import impurity_difference
from pytest_dstfuzz.relations.protocol import Relation
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.training.reward import AttemptOutcome

#: Answers contexts; ``None`` where the tracker failed.
Predict = Callable[[Sequence[Context]], Sequence[Prediction | None]]


class Observation(NamedTuple):
    """What the agent sees: a turn, and what its earlier attempts showed."""

    view: TurnView
    trace: Trace


class EnvironmentStep(NamedTuple):
    """What came of one action.

    Attributes:
        observation: of the next step; of this one where the episode is over.
        outcome: for the reward.
        terminated: every turn is broken, or cannot be.
        truncated: the attempts are used up.
    """

    observation: Observation
    outcome: AttemptOutcome
    terminated: bool
    truncated: bool


@dataclass(slots=True)
class _Turn:
    index: int
    clean: Prediction | None
    observation: Observation
    broken: bool = False
    #: Text of a valid variant -> what it changed when it was run.
    texts: dict[str, tuple[SlotChange, ...]] = field(default_factory=dict)
    #: Number of the attempt -> its variant.
    variants: dict[int, Variant] = field(default_factory=dict)


@dataclass(slots=True)
class _Episode:
    dialogue: Dialogue
    seed: int
    turns: list[_Turn]
    attempts: int
    number: int = 0
    place: int = 0
    #: What the attempts of this number changed at earlier turns.
    history: set[SlotChange] = field(default_factory=set)

    @property
    def turn(self) -> _Turn:
        return self.turns[self.place]

    def advance(self) -> bool:
        """Go to the next turn to attempt; returns whether there is one."""
        while self.number < self.attempts:
            self.place += 1
            if self.place == len(self.turns):
                self.place, self.number = -1, self.number + 1
                self.history = set()
                continue
            if not self.turn.broken and self.turn.clean is not None:
                return True
        return False


class Environment:
    """Episodes of several dialogues, stepped together so that batches are full.

    Args:
        predict: the tracker.
        perturber: makes the variants.
        relation: what must hold.
        attack: attack design.
        attempts: at each turn.
    """

    def __init__(
        self,
        predict: Predict,
        perturber: Perturber,
        relation: Relation,
        *,
        values: Callable[[Dialogue, int, Prediction | None], tuple[str, ...]],
        attack: str = "hybrid",
        attempts: int = 8,
    ) -> None:
        self._predict = predict
        self._perturber = perturber
        self._relation = relation
        self._values = values
        self._attack = attack
        self._attempts = attempts
        self._episodes: dict[int, _Episode] = {}

    def reset(self, dialogues: Sequence[Dialogue], seed: int) -> dict[int, Observation]:
        """Begin an episode with each dialogue; returns the observations by episode.

        Dialogues in which nothing can be broken have no episode.
        """
        contexts = [d.context(turn.index) for d in dialogues for turn in d.turns]
        answers = iter(self._predict(contexts))
        self._episodes = {}
        for key, dialogue in enumerate(dialogues):
            turns = [self._turn(dialogue, turn.index, next(answers)) for turn in dialogue.turns]
            episode = _Episode(dialogue, seed, turns, self._attempts, place=-1)
            if episode.advance():
                self._episodes[key] = episode
        return {key: episode.turn.observation for key, episode in self._episodes.items()}

    def step(self, actions: Mapping[int, Action]) -> dict[int, EnvironmentStep]:
        """Carry one action out in each episode that is not over."""
        contexts: dict[int, Context] = {}
        variants: dict[int, Variant] = {}
        carried: dict[int, frozenset[SlotChange]] = {}
        for key, action in actions.items():
            episode = self._episodes[key]
            turn = episode.turn
            variant = self._perturber.apply(turn.observation.view.source, action)
            turn.variants[episode.number] = variants[key] = variant
            if variant.valid and variant.text not in turn.texts:
                users = self._users(episode)
                # In a clean context nothing can have been carried into it.
                carried[key] = frozenset(episode.history if users else ())
                users[turn.index] = variant.text
                contexts[key] = episode.dialogue.context(turn.index, users)
        predictions = dict(
            zip(contexts, self._predict(list(contexts.values())), strict=True) if contexts else ()
        )
        return {
            key: self._finish(key, variant, carried.get(key), predictions.get(key))
            for key, variant in variants.items()
        }

    def _turn(self, dialogue: Dialogue, index: int, clean: Prediction | None) -> _Turn:
        turn = dialogue.turns[index]
        values = self._values(dialogue, index, clean)
        source = self._perturber.prepare(turn.user, values, turn.system)
        view = TurnView(source, self._perturber.menus(source), clean, turn.system, index)
        observation = Observation(view, Trace(len(source.words)))
        applies = clean is not None and self._relation.applies(clean.state, turn.state)
        return _Turn(index, clean if applies else None, observation)

    def _users(self, episode: _Episode) -> dict[int, str]:
        """Return the earlier turns that are seen perturbed: index -> text."""
        users: dict[int, str] = {}
        for turn in episode.turns[: episode.place]:
            # A turn that was broken before this pass has no variant in it, and is seen clean.
            past = turn.variants.get(episode.number)
            if past is None or not past.valid:
                continue
            if replaces(
                self._attack, episode.seed, episode.dialogue.id, episode.number, turn.index
            ):
                users[turn.index] = past.text
        return users

    def _finish(
        self,
        key: int,
        variant: Variant,
        carried: frozenset[SlotChange] | None,
        prediction: Prediction | None,
    ) -> EnvironmentStep:
        """Judge an attempt and go on to the next; ``carried`` is ``None`` if it was not run."""
        episode = self._episodes[key]
        turn = episode.turn
        impurity = 0.0
        changes: tuple[SlotChange, ...] = ()
        if prediction is not None and turn.clean is not None and carried is not None:
            impurity = impurity_difference(turn.clean, prediction)
            label = episode.dialogue.turns[turn.index].state
            verdict = self._relation.judge(turn.clean.state, prediction.state, label)
            changes = verdict.changes
            turn.broken = verdict.kind == "violation" and not carried.issuperset(changes)
        if variant.valid:
            # A duplicate takes over the changes of the variant whose text it shares.
            episode.history.update(turn.texts.setdefault(variant.text, changes))
        turn.observation.trace.add(
            turn.observation.view.source,
            variant,
            impurity,
            answered=prediction is not None,
            changes=len(changes),
        )
        ran = carried is not None
        outcome = AttemptOutcome(ran, turn.broken, impurity, variant.edit_w, variant.edit_c)
        goes_on = episode.advance()
        if not goes_on:
            del self._episodes[key]
        over = all(turn.broken or turn.clean is None for turn in episode.turns)
        return EnvironmentStep(
            observation=episode.turn.observation if goes_on else turn.observation,
            outcome=outcome,
            terminated=over,
            truncated=not goes_on and not over,
        )
