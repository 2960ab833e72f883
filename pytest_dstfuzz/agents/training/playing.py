"""How the agent plays while it learns: what it decides, and what is remembered of it.

Who learns between rounds alone has the dialogues of a round played in parts, each by itself: the
weights are those of the beginning of the round, and every random stream is named by the round and
the number of the dialogue in it. A part is thus the same whoever plays it and whenever. Nothing
here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.policy import FIRST, LATER, Policy, PolicyChoice
from pytest_dstfuzz.agents.training.asking import TrainingPredictor
from pytest_dstfuzz.agents.training.environment import (
    REWARDS,
    AttemptOutcome,
    Environment,
    EnvironmentStep,
    Observation,
    environment_spec,
)
from pytest_dstfuzz.agents.training.replay import ReplayBatch
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of

SEED_BOUND: Final = 2**63
#: One dialogue of a round: its stream, and how many transformations are associated.
Scheduled = tuple[np.random.Generator, int]


def design_seed(seed: int, number: int) -> int:
    """Return the seed of the rules of a round, which has a number from 0."""
    return derive(seed, "agent", "design", number) % SEED_BOUND


def scheduled(
    seed: int, number: int, keys: Iterable[int], ks: Sequence[int], first: int = 0
) -> dict[int, Scheduled]:
    """Return what is drawn for dialogues of a round; key 0 is number ``first`` in the round."""
    episodes = {}
    for key in keys:
        rng = stream(seed, "agent", "act", number, first + key)
        episodes[key] = rng, int(rng.choice(ks))
    return episodes


def decide(
    policy: Policy,
    observations: Mapping[int, Observation],
    episodes: Mapping[int, Scheduled],
    epsilon: float,
) -> dict[int, PolicyChoice]:
    """Choose an action for each dialogue; ``epsilon`` is the share of uniform ones."""
    decisions = {}
    for key, (view, trace) in observations.items():
        rng, k = episodes[key]
        # As it will be used, but for epsilon.
        explore = replace(LATER if trace.attempts else FIRST, epsilon=epsilon)
        decisions[key] = policy.choose(view, trace, k, rng, explore)
    return decisions


def remembered(
    before: Observation, choice: PolicyChoice, k: int, step: EnvironmentStep, reward: float
) -> ReplayBatch:
    """Return one step as the replay memory has it, of no first dimension."""
    view, trace = step.observation
    return ReplayBatch(
        state=choice.state,
        vector=choice.vector,
        available=before.view.available.astype(np.float32),
        chosen=choice.chosen.astype(np.float32),
        k=np.asarray(k),
        reward=np.asarray(reward, np.float32),
        next_state=view.state(trace, k),
        next_available=view.available.astype(np.float32),
        terminated=np.asarray(step.terminated, np.float32),
    )


class PlayedMove(NamedTuple):
    """What one attempt of a dialogue came to."""

    step: ReplayBatch  #: Of no first dimension.
    broken: bool  #: Whether it broke its turn.


def played_moves(
    environment: Environment,
    observations: Mapping[int, Observation],
    episodes: Mapping[int, Scheduled],
    reward: Callable[[AttemptOutcome], float],
    policy: Callable[[], Policy],
    epsilon: float,
) -> Iterator[dict[int, PlayedMove]]:
    """Play dialogues side by side to their ends; yield an attempt at each that is not at it.

    ``policy`` is asked anew before each time: whoever takes the moves may learn from them.
    """
    while observations:
        decisions = decide(policy(), observations, episodes, epsilon)
        taken = environment.step({key: item.action for key, item in decisions.items()})
        yield {
            key: PlayedMove(
                remembered(
                    observations[key],
                    decisions[key],
                    episodes[key][1],
                    step,
                    reward(step.outcome),
                ),
                step.outcome.broken,
            )
            for key, step in taken.items()
        }
        observations = {
            key: step.observation
            for key, step in taken.items()
            if not (step.terminated or step.truncated)
        }


class RoundPart(NamedTuple):
    """Some dialogues of a round, to be played side by side."""

    number: int  #: Of the round, from 0.
    first: int  #: Number in the round of the first of them, from 0.
    dialogues: tuple[int, ...]  #: Places in the training data.
    #: Answers to the clean turns of each of them, in their order.
    clean: tuple[tuple[Answer, ...], ...]
    epsilon: float  #: Share of uniform actions.
    weights: Mapping[str, npt.NDArray[np.float32]]  #: As `Policy` takes them.


class PlayedPart(NamedTuple):
    """What came of a part."""

    #: As the replay memory has them: dialogue after dialogue, each in its own order.
    steps: tuple[ReplayBatch, ...]
    broken: int  #: Turns that were broken.
    calls: int  #: Contexts asked for; each distinct one is counted once.


@dataclass(frozen=True, slots=True)
class PlayRules:
    """All that does not change from part to part; called, it makes who plays by them."""

    settings: Settings  #: Of the tracker.
    asked_about: DialogueSet  #: The data that the tracker is made for.
    training: DialogueSet  #: What `RoundPart` has the places of.
    validity: str  #: Validity profile.
    attack: str  #: Attack design.
    order: str  #: What position parameters count through.
    attempts: int  #: At each turn.
    reward: str  #: Name of the reward, see `REWARDS`.
    ks: tuple[int, ...]  #: Numbers of associated transformations to draw from.
    seed: int  #: Of the training.

    def __call__(self, tracker: Tracker | None = None) -> DialoguePlayer:
        """Load the tracker, where none is given, and all else.

        Raises:
            UserError: the tracker cannot be made.
        """
        return DialoguePlayer(self, tracker or tracker_for(self.settings, self.asked_about))


def about_players(tracker: Tracker) -> dict[str, str]:
    """Return what must be the same of all that play with a tracker for one learner."""
    return {
        "version of the package": __version__,
        "fingerprint of the tracker": fingerprint_of(tracker) or "",
        "fingerprint of the lexicon": load_lexicon().fingerprint,
    }


class DialoguePlayer:
    """Plays parts of rounds with a tracker; nothing is kept from one to the next."""

    def __init__(self, rules: PlayRules, tracker: Tracker) -> None:
        self._rules, self._tracker = rules, tracker
        self._spec = environment_spec(
            rules.training,
            load_lexicon(),
            validity=rules.validity,
            attack=rules.attack,
            order=rules.order,
            attempts=rules.attempts,
        )
        self._reward = REWARDS[rules.reward]

    @property
    def about(self) -> dict[str, str]:
        """What must be the same of all that play for one learner, see `about_players`."""
        return about_players(self._tracker)

    def play(self, part: RoundPart) -> PlayedPart:
        """Play the dialogues of a part to their ends.

        Raises:
            TrackerError: the tracker never answers.
        """
        rules = self._rules
        dialogues = [rules.training.dialogues[place] for place in part.dialogues]
        clean = {
            dialogue.context(turn.index): answer
            for dialogue, answers in zip(dialogues, part.clean, strict=True)
            for turn, answer in zip(dialogue.turns, answers, strict=True)
        }
        size = rules.settings.tracker.batch_size
        predictor = TrainingPredictor(self._tracker, rules.training, size, clean)
        environment = Environment(predictor, self._spec)
        policy = Policy(part.weights)
        observations = environment.reset(dialogues, design_seed(rules.seed, part.number))
        episodes = scheduled(rules.seed, part.number, observations, rules.ks, part.first)
        steps: dict[int, list[ReplayBatch]] = {key: [] for key in observations}
        broken = 0
        for moves in played_moves(
            environment, observations, episodes, self._reward, lambda: policy, part.epsilon
        ):
            for key, move in moves.items():
                steps[key].append(move.step)
                broken += move.broken
        made = tuple(step for key in sorted(steps) for step in steps[key])
        return PlayedPart(made, broken, predictor.calls)


class Rollouts(Protocol):
    """Those who play the parts of rounds, in this process or in others."""

    def begin(self, make: PlayRules, about: Mapping[str, str]) -> None:
        """Let them load what they need; who is not as ``about`` says may not play."""

    def played(self, parts: Sequence[RoundPart]) -> Iterator[tuple[int, PlayedPart]]:
        """Yield each part's place and what came of it, in any order, each once."""


class PlayedHere:
    """Parts are played one after the other in this process.

    ``tracker``: to be played with; ``None`` = the one that the rules name.
    """

    def __init__(self, tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        self._player: DialoguePlayer | None = None

    def begin(self, make: PlayRules, about: Mapping[str, str]) -> None:  # noqa: ARG002 - it is here
        """Load what is needed."""
        self._player = make(self._tracker)

    def played(self, parts: Sequence[RoundPart]) -> Iterator[tuple[int, PlayedPart]]:
        """Yield each part's place and what came of it."""
        if self._player is None:
            raise ValueError("nothing was begun")
        for place, part in enumerate(parts):
            yield place, self._player.play(part)
