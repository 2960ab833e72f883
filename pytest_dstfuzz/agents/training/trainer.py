"""Trains the agent: plays dialogues in rounds, and updates the networks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.policies import COUNT, FIRST, LATER, Policy, PolicyChoice
from pytest_dstfuzz.agents.training.environment import (
    REWARDS,
    AttemptOutcome,
    Environment,
    EnvironmentStep,
    Observation,
    environment_spec,
)
from pytest_dstfuzz.agents.training.memory import Replay, ReplayBatch, TrainingPredictor
from pytest_dstfuzz.agents.training.multi_pdqn import LearnerConfig, MultiPDQN
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError, needs_extra, unknown_name
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.neural import threads
from pytest_dstfuzz.models.runs import SavedRun, moments
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of

SEED_BOUND: Final = 2**63
#: Random generator of a dialogue in a round, and the number of transformations to combine.
TurnDraw = tuple[np.random.Generator, int]


def design_seed(seed: int, number: int) -> int:
    """Return the seed for the environment of round ``number``, from 0."""
    return derive(seed, "agent", "design", number) % SEED_BOUND


def schedule_draws(
    seed: int, number: int, keys: Iterable[int], ks: Sequence[int], first: int = 0
) -> dict[int, TurnDraw]:
    """Draw a random generator and a number of transformations for each dialogue.

    ``keys`` number the dialogues of one part of the round. ``first`` is the position of key 0 in
    the round. So the draws do not depend on how the round is divided.
    """
    episodes = {}
    for key in keys:
        rng = stream(seed, "agent", "act", number, first + key)
        episodes[key] = rng, int(rng.choice(ks))
    return episodes


def decide(
    policy: Policy,
    observations: Mapping[int, Observation],
    episodes: Mapping[int, TurnDraw],
    epsilon: float,
) -> dict[int, PolicyChoice]:
    """Choose an action for each dialogue. ``epsilon`` is the share of uniformly random actions."""
    decisions = {}
    for key, (view, trace) in observations.items():
        rng, k = episodes[key]
        # As in a search, except for epsilon.
        explore = replace(LATER if trace.attempts else FIRST, epsilon=epsilon)
        decisions[key] = policy.choose(view, trace, k, rng, explore)
    return decisions


def build_step(
    before: Observation, choice: PolicyChoice, k: int, step: EnvironmentStep, reward: float
) -> ReplayBatch:
    """Return one step of an episode for the replay memory, without a batch dimension."""
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
    """The result of one attempt in a dialogue: the training step and whether it succeeded."""

    step: ReplayBatch  #: Without a batch dimension.
    broken: bool  #: Whether the attempt broke its turn.


def play_moves(
    environment: Environment,
    observations: Mapping[int, Observation],
    episodes: Mapping[int, TurnDraw],
    reward: Callable[[AttemptOutcome], float],
    policy: Callable[[], Policy],
    epsilon: float,
) -> Iterator[dict[int, PlayedMove]]:
    """Play dialogues in parallel to their ends. Yield the attempts.

    Each yielded mapping holds one attempt of every unfinished dialogue. ``policy`` is called before
    each step, so that the caller may learn between steps.
    """
    while observations:
        decisions = decide(policy(), observations, episodes, epsilon)
        taken = environment.step({key: item.action for key, item in decisions.items()})
        yield {
            key: PlayedMove(
                build_step(
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
    """Some dialogues of a round, which are played in parallel."""

    number: int  #: Index of the round.
    first: int  #: Position of the first dialogue in the round.
    dialogues: tuple[int, ...]  #: Indices into the training data.
    #: Answers to the clean turns of each dialogue, in order.
    clean: tuple[tuple[Answer, ...], ...]
    epsilon: float  #: Share of uniform actions.
    weights: Mapping[str, npt.NDArray[np.float32]]  #: In the format of `Policy`.


class PlayedPart(NamedTuple):
    """The result of playing one part of a round."""

    #: Steps for the replay memory, dialogue by dialogue, each in the order of play.
    steps: tuple[ReplayBatch, ...]
    broken: int  #: Number of broken turns.
    calls: int  #: Number of distinct contexts sent to the tracker.


@dataclass(frozen=True, slots=True)
class PlayRules:
    """The settings that all parts share. Call the object to make a player."""

    settings: Settings  #: Settings of the tracker.
    asked_about: DialogueSet  #: Data that the tracker is made for.
    training: DialogueSet  #: Dialogues that `RoundPart` refers to.
    validity: str  #: Validity profile.
    attack: str  #: Attack design.
    order: str  #: Order of the position parameters.
    attempts: int  #: Attempts per turn.
    reward: str  #: Name of the reward, see `REWARDS`.
    ks: tuple[int, ...]  #: Numbers of combined transformations to draw from.
    seed: int  #: Seed of the training.

    def __call__(self, tracker: Tracker | None = None) -> DialoguePlayer:
        """Return a player with a tracker. If none is given, load the tracker of the settings.

        Raises:
            UserError: the tracker cannot be made.
        """
        return DialoguePlayer(self, tracker or tracker_for(self.settings, self.asked_about))


def about_players(tracker: Tracker) -> dict[str, str]:
    """Return the properties that all players of one training must share.

    They are the package's version and the fingerprints of the tracker and the lexicon.
    """
    return {
        "version of the package": __version__,
        "fingerprint of the tracker": fingerprint_of(tracker) or "",
        "fingerprint of the lexicon": load_lexicon().fingerprint,
    }


class DialoguePlayer:
    """Plays parts of rounds with a tracker. It keeps no state between parts."""

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
        """The properties that all players of a training must share, see `about_players`."""
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
        episodes = schedule_draws(rules.seed, part.number, observations, rules.ks, part.first)
        steps: dict[int, list[ReplayBatch]] = {key: [] for key in observations}
        broken = 0
        for moves in play_moves(
            environment, observations, episodes, self._reward, lambda: policy, part.epsilon
        ):
            for key, move in moves.items():
                steps[key].append(move.step)
                broken += move.broken
        made = tuple(step for key in sorted(steps) for step in steps[key])
        return PlayedPart(made, broken, predictor.calls)


class Rollouts(Protocol):
    """Plays the parts of rounds, in this process or in others."""

    def begin(self, make: PlayRules, about: Mapping[str, str]) -> None:
        """Prepare the players.

        A player must not play if its properties differ from ``about``, see `about_players`.
        """

    def played(self, parts: Sequence[RoundPart]) -> Iterator[tuple[int, PlayedPart]]:
        """Yield the index of each part with its result, in any order."""


class PlayedHere:
    """Plays the parts one after the other in this process.

    ``tracker`` is the tracker to play with. If it is ``None``, the settings of the rules name it.
    """

    def __init__(self, tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        self._player: DialoguePlayer | None = None

    def begin(self, make: PlayRules, about: Mapping[str, str]) -> None:  # noqa: ARG002 - same process
        """Load the player, and its tracker if necessary."""
        self._player = make(self._tracker)

    def played(self, parts: Sequence[RoundPart]) -> Iterator[tuple[int, PlayedPart]]:
        """Yield the index of each part with its result."""
        if self._player is None:
            raise ValueError("nothing was started")
        for place, part in enumerate(parts):
            yield place, self._player.play(part)


#: Number of rounds in the running average.
_RUNNING: Final = 5
_NETWORKS: Final = ("actor", "critic", "actor_target", "critic_target")
_OPTIMISERS: Final = ("actor_optimiser", "critic_optimiser")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """The settings of a training run of the agent."""

    #: Maximum number of contexts sent to the tracker, including clean turns.
    calls: int = 40_000
    attempts: int = 8  #: Attempts per turn, until one breaks it.
    dialogues: int = 48  #: Dialogues per round.
    reward: str = "broken"  #: Name of the reward, see `REWARDS`.
    #: Numbers of combined transformations. One is drawn for each episode.
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    replay: int = 10_000  #: Capacity of the replay memory in steps.
    batch: int = 128  #: Steps per update.
    learning_starts: int = 500  #: Steps before the first update.
    train_frequency: int = 2  #: Steps between two updates.
    epsilon_end: float = 0.01  #: Final share of uniform actions. The first is 1.
    #: The share of uniform actions falls linearly over this share of the calls. Calls for the clean
    #: turns do not count.
    exploration_fraction: float = 0.25
    seed: int = 0  #: Seed of every draw, also for the learner.
    learner: LearnerConfig = field(default_factory=LearnerConfig)  #: Networks and rates.

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        for name in ("calls", "attempts", "dialogues", "replay", "batch", "train_frequency"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.ks or not set(self.ks) <= set(range(1, COUNT + 1)):
            raise UserError(f"ks must be numbers from 1 to {COUNT}, not {self.ks}")
        if self.reward not in REWARDS:
            raise unknown_name("reward", self.reward, REWARDS)


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one round."""

    number: int  #: Number of the round, from 1.
    calls: int  #: Contexts asked in this round.
    calls_so_far: int  #: Contexts asked until its end.
    epsilon: float  #: Share of uniform actions.
    attempts: int  #: Number of steps.
    broken: int  #: Number of broken turns.
    critic_loss: float  #: Mean over the updates, or 0 without updates.
    actor_loss: float  #: Mean over the updates, or 0 without updates.


@dataclass(frozen=True, slots=True)
class Counters:
    """The progress of a training, see `LearningTrainer`."""

    calls_before: int
    dialogues_begun: int
    steps: int
    updates: int


@dataclass(frozen=True, slots=True)
class TrainerState:
    """The state of a trainer between two rounds, without its tensors."""

    counters: Counters
    history: tuple[Round, ...]


class PlayedRound(NamedTuple):
    """The results of playing the dialogues of one round."""

    steps: int
    broken: int  #: Number of broken turns.
    calls: int  #: Number of contexts asked.
    losses: Sequence[tuple[float, float]]  #: Losses of critic and actor for each update.


class LearningTrainer(ABC):
    """Plays dialogues in rounds, and learns. Subclasses decide when the networks are updated."""

    def __init__(
        self, config: TrainingConfig, dialogues: Sequence[Dialogue], device: str = "cpu"
    ) -> None:
        self.config = config
        seed = derive(config.seed, "agent", "weights") % SEED_BOUND
        self.learner = MultiPDQN(replace(config.learner, seed=seed), device)
        self.replay = Replay(config.replay)
        self.history: list[Round] = []
        #: Contexts asked before the first round, then the totals of the whole run.
        self.calls_before = 0
        self.dialogues_begun = self.updates = 0
        self.dialogues = tuple(dialogues)

    @abstractmethod
    def play(self, group: Sequence[int], epsilon: float) -> PlayedRound:
        """Play the dialogues at the indices ``group``. Make the updates that are due.

        ``epsilon`` is the share of uniformly random actions.
        """

    @property
    def calls(self) -> int:
        """Number of contexts sent to the tracker until the end of the last round."""
        return self.history[-1].calls_so_far if self.history else self.calls_before

    @property
    def finished(self) -> bool:
        """Whether the remaining calls are too few for another dialogue."""
        return not self._group()

    @property
    def epsilon(self) -> float:
        """Share of uniformly random actions in the next round."""
        config, before = self.config, self.calls_before
        # Calls for the clean turns do not count.
        done = (self.calls - before) / max(1, config.calls - before)
        fall = done / config.exploration_fraction if config.exploration_fraction > 0 else math.inf
        return max(config.epsilon_end, 1.0 - fall * (1.0 - config.epsilon_end))

    @property
    def state(self) -> TrainerState:
        """The state for resuming a run, without the tensors."""
        before, begun, steps = self.calls_before, self.dialogues_begun, self.replay.added
        return TrainerState(Counters(before, begun, steps, self.updates), tuple(self.history))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all learned weights and the replay memory, to save or to restore them."""
        for network in _NETWORKS:
            for name, tensor in getattr(self.learner, network).state_dict().items():
                yield f"{network}.{name}", tensor
        # Optimisers have no moments before their first step.
        for name in _OPTIMISERS if self.updates else ():
            optimiser: torch.optim.Optimizer = getattr(self.learner, name)
            parameters = [weight for group in optimiser.param_groups for weight in group["params"]]
            for number, parameter in enumerate(parameters):
                for kind, tensor in moments(optimiser, parameter).items():
                    yield f"{name}.{number}.{kind}", tensor
        for column, values in self.replay.columns.items():
            yield f"replay.{column}", torch.from_numpy(values[: len(self.replay)])

    def restore(self, state: TrainerState, saved: SavedRun) -> None:
        """Restore the exact state of a run in a new trainer."""
        counters, self.history = state.counters, list(state.history)
        self.calls_before, self.dialogues_begun = counters.calls_before, counters.dialogues_begun
        self.replay.added, self.updates = counters.steps, counters.updates
        saved.fill(self.tensors())

    def broken_per_1000_calls(self) -> float:
        """Return the number of broken turns per 1,000 calls in the last rounds."""
        last = self.history[-_RUNNING:]
        calls = sum(item.calls for item in last)
        return 1000 * sum(item.broken for item in last) / calls if calls else 0.0

    def run_round(self) -> Round:
        """Play the next round and learn from it."""
        number, group, epsilon = len(self.history), self._group(), self.epsilon
        played = self.play(group, epsilon)
        losses = played.losses
        critic_loss, actor_loss = np.mean(losses, axis=0).tolist() if losses else (0.0, 0.0)
        if not (math.isfinite(critic_loss) and math.isfinite(actor_loss)):
            raise UserError(
                f"the training diverged in round {number + 1}: its loss is not a number"
            )
        self.dialogues_begun += len(group)
        so_far = self.calls + played.calls
        self.history.append(
            Round(
                number=number + 1,
                calls=played.calls,
                calls_so_far=so_far,
                epsilon=epsilon,
                attempts=played.steps,
                broken=played.broken,
                critic_loss=critic_loss,
                actor_loss=actor_loss,
            )
        )
        return self.history[-1]

    def _group(self) -> list[int]:
        """Return the indices of the dialogues in the next round.

        All dialogues are used once, in random order, before any dialogue is repeated. The number of
        dialogues is limited: the remaining calls must suffice even if no attempt breaks a turn.
        """
        epoch, place = divmod(self.dialogues_begun, len(self.dialogues))
        drawn = stream(self.config.seed, "agent", "order", epoch).permutation(len(self.dialogues))
        left = self.config.calls - self.calls
        group: list[int] = []
        for index in drawn[place : place + self.config.dialogues].tolist():
            left -= len(self.dialogues[index].turns) * self.config.attempts
            if left < 0:
                break
            group.append(index)
        return group

    def learn(self, rng: np.random.Generator) -> list[tuple[float, float]]:
        """Make the updates that are due. Return the losses of the critic and the actor.

        An update is due after every ``train_frequency`` new steps.
        """
        config = self.config
        due = (self.replay.added - config.learning_starts) // config.train_frequency
        losses = []
        with threads(1):
            while self.updates < due:
                losses.append(self.learner.update(self.replay.draw(rng, config.batch)))
                self.updates += 1
        return losses


class AgentTrainer(LearningTrainer):
    """Plays the dialogues itself, and learns between attempts.

    ``calls`` returns the number of contexts sent to the tracker so far.
    """

    def __init__(
        self,
        config: TrainingConfig,
        environment: Environment,
        dialogues: Sequence[Dialogue],
        calls: Callable[[], int],
        device: str = "cpu",
    ) -> None:
        super().__init__(config, dialogues, device)
        self._environment = environment
        self._calls = calls
        self._reward = REWARDS[config.reward]

    def play(self, group: Sequence[int], epsilon: float) -> PlayedRound:
        """Play dialogues in parallel, and learn after each step."""
        config, number, asked = self.config, len(self.history), self._calls()
        dialogues = [self.dialogues[place] for place in group]
        observations = self._environment.reset(dialogues, design_seed(config.seed, number))
        episodes = schedule_draws(config.seed, number, observations, config.ks)
        replayed = stream(config.seed, "agent", "replay", number)
        steps = broken = 0
        losses: list[tuple[float, float]] = []
        for moves in play_moves(
            self._environment,
            observations,
            episodes,
            self._reward,
            lambda: Policy(self.learner.weights()),
            epsilon,
        ):
            for move in moves.values():
                self.replay.add(move.step)
            steps += len(moves)
            broken += sum(move.broken for move in moves.values())
            losses += self.learn(replayed)
        return PlayedRound(steps, broken, self._calls() - asked, losses)


class TensorBoardLogger:
    """Writes TensorBoard events for every round. The step of an event is the number of calls."""

    def __init__(self, folder: Path) -> None:
        with needs_extra("--tensorboard", "tensorboard", "torch", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra
        try:
            self._writer = SummaryWriter(str(folder))
        except OSError as error:
            raise UserError(f"cannot write events to {folder}: {error.strerror}") from error

    def add(self, item: Round, broken_per_1000_calls: float) -> None:
        """Write the results of a round, and the running average of broken turns."""
        figures = {
            "turns broken per 1,000 calls": broken_per_1000_calls,
            "turns broken": item.broken,
            "attempts": item.attempts,
            "epsilon": item.epsilon,
            "loss/critic": item.critic_loss,
            "loss/actor": item.actor_loss,
        }
        for name, value in figures.items():
            self._writer.add_scalar(name, value, item.calls_so_far)
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the writer."""
        self._writer.close()


#: Dialogues per part. An answer of a tracker may depend on its batch, so the number is the same in
#: every run. A round of 48 dialogues has work for 12 workers.
PART: Final = 4


class RoundTrainer(LearningTrainer):
    """Lets other players play the dialogues. Learns after each round.

    Args:
        config: settings of the training.
        rollouts: players that are ready to play.
        dialogues: all training dialogues, in the order of ``PlayRules.training``.
        clean: returns the answers to the clean turns of a dialogue.
        device: device of the networks.
    """

    def __init__(
        self,
        config: TrainingConfig,
        rollouts: Rollouts,
        dialogues: Sequence[Dialogue],
        clean: Callable[[Dialogue], tuple[Answer, ...]],
        device: str = "cpu",
    ) -> None:
        super().__init__(config, dialogues, device)
        self._rollouts, self._clean = rollouts, clean

    def play(self, group: Sequence[int], epsilon: float) -> PlayedRound:
        """Let the players play the dialogues, then learn from all steps."""
        parts = self._parts(group, epsilon)
        came: dict[int, PlayedPart] = dict(self._rollouts.played(parts))
        played = [came[place] for place in range(len(parts))]
        steps = [step for part in played for step in part.steps]
        for step in steps:
            self.replay.add(step)
        losses = self.learn(stream(self.config.seed, "agent", "replay", len(self.history)))
        broken = sum(part.broken for part in played)
        return PlayedRound(len(steps), broken, sum(part.calls for part in played), losses)

    def _parts(self, group: Sequence[int], epsilon: float) -> list[RoundPart]:
        weights = self.learner.weights()
        parts = []
        for first in range(0, len(group), PART):
            places = tuple(group[first : first + PART])
            clean = tuple(self._clean(self.dialogues[place]) for place in places)
            parts.append(RoundPart(len(self.history), first, places, clean, epsilon, weights))
        return parts
