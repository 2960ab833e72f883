"""Training of the agent: rounds of episodes, and an update every few steps.

A round plays one episode with each of some dialogues, side by side, so that the tracker
gets full batches. Every stream of random numbers is derived from the seed and the round;
with the state of the trainer a round is a function of what came before it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pytest_dstfuzz.agents.policy import COUNT, Policy
from pytest_dstfuzz.agents.training.environment import REWARDS, Environment
from pytest_dstfuzz.agents.training.multi_pdqn import LearnerConfig, MultiPDQN
from pytest_dstfuzz.agents.training.playing import SEED_BOUND, design_seed, played_moves, scheduled
from pytest_dstfuzz.agents.training.replay import Replay
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import UserError, needs_extra, unknown_name
from pytest_dstfuzz.models.neural import threads
from pytest_dstfuzz.models.runs import SavedRun, moments
from pytest_dstfuzz.seeding import derive, stream

#: Rounds that the running figure is taken over.
_RUNNING: Final = 5
_NETWORKS: Final = ("actor", "critic", "actor_target", "critic_target")
_OPTIMISERS: Final = ("actor_optimiser", "critic_optimiser")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How to train."""

    #: Contexts that the tracker may be asked for, those of clean turns included.
    calls: int = 40_000
    attempts: int = 8  #: At each turn, until one breaks it.
    dialogues: int = 48  #: Played side by side in a round.
    reward: str = "broken"  #: Name of the reward, see `REWARDS`.
    #: Numbers of associated transformations; one is drawn for each episode.
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    replay: int = 10_000  #: Steps that are remembered.
    batch: int = 128  #: Steps of one update.
    learning_starts: int = 500  #: Steps before the first update.
    train_frequency: int = 2  #: Steps between two updates.
    epsilon_end: float = 0.01  #: Share of uniform actions at the end; it begins at 1.
    #: Share of the calls, without those for the clean turns, over which that share falls, as a
    #: straight line.
    exploration_fraction: float = 0.25
    seed: int = 0  #: Of every draw; it takes the place of the learner's.
    learner: LearnerConfig = field(default_factory=LearnerConfig)  #: Networks and rates.

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in ("calls", "attempts", "dialogues", "replay", "batch", "train_frequency"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.ks or not set(self.ks) <= set(range(1, COUNT + 1)):
            raise UserError(f"ks must be numbers from 1 to {COUNT}, not {self.ks}")
        if self.reward not in REWARDS:
            raise unknown_name("reward", self.reward, REWARDS)


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round."""

    number: int  #: Of the round, from 1.
    calls: int  #: Contexts asked for in it.
    calls_so_far: int  #: Contexts asked for until its end.
    epsilon: float  #: Share of uniform actions.
    attempts: int  #: Steps that were made.
    broken: int  #: Turns that were broken.
    critic_loss: float  #: Mean over the updates; 0 without any.
    actor_loss: float  #: Likewise.


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a training has come, see `LearningTrainer`."""

    calls_before: int
    dialogues_begun: int
    steps: int
    updates: int


@dataclass(frozen=True, slots=True)
class TrainerState:
    """What a trainer is between two rounds, its tensors apart."""

    counters: Counters
    history: tuple[Round, ...]


class PlayedRound(NamedTuple):
    """What came of the dialogues of a round."""

    steps: int
    broken: int  #: Turns.
    calls: int  #: Contexts asked for.
    losses: Sequence[tuple[float, float]]  #: Of critic and actor, of each update.


class LearningTrainer(ABC):
    """Has dialogues played in rounds, and learns; when it learns is for those that inherit."""

    def __init__(
        self, config: TrainingConfig, dialogues: Sequence[Dialogue], device: str = "cpu"
    ) -> None:
        self.config = config
        seed = derive(config.seed, "agent", "weights") % SEED_BOUND
        self.learner = MultiPDQN(replace(config.learner, seed=seed), device)
        self.replay = Replay(config.replay)
        self.history: list[Round] = []
        #: Contexts asked for before the first round, and what the whole run has come to.
        self.calls_before = 0
        self.dialogues_begun = self.updates = 0
        self.dialogues = tuple(dialogues)

    @abstractmethod
    def play(self, group: Sequence[int], epsilon: float) -> PlayedRound:
        """Play the dialogues at some places, and make the updates that are due.

        ``epsilon`` is the share of uniform actions.
        """

    @property
    def calls(self) -> int:
        """Contexts asked for until the end of the last round."""
        return self.history[-1].calls_so_far if self.history else self.calls_before

    @property
    def finished(self) -> bool:
        """Whether what is left of the calls pays for no further dialogue."""
        return not self._group()

    @property
    def epsilon(self) -> float:
        """Share of uniform actions in the next round."""
        config, before = self.config, self.calls_before
        # Asking for the clean turns teaches nothing.
        done = (self.calls - before) / max(1, config.calls - before)
        fall = done / config.exploration_fraction if config.exploration_fraction > 0 else math.inf
        return max(config.epsilon_end, 1.0 - fall * (1.0 - config.epsilon_end))

    @property
    def state(self) -> TrainerState:
        """What a resumed run needs, beside the tensors."""
        before, begun, steps = self.calls_before, self.dialogues_begun, self.replay.added
        return TrainerState(Counters(before, begun, steps, self.updates), tuple(self.history))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all that was learned and is remembered, to be read or filled."""
        for network in _NETWORKS:
            for name, tensor in getattr(self.learner, network).state_dict().items():
                yield f"{network}.{name}", tensor
        # Before their first step the optimisers have gathered nothing.
        for name in _OPTIMISERS if self.updates else ():
            optimiser: torch.optim.Optimizer = getattr(self.learner, name)
            parameters = [weight for group in optimiser.param_groups for weight in group["params"]]
            for number, parameter in enumerate(parameters):
                for kind, tensor in moments(optimiser, parameter).items():
                    yield f"{name}.{number}.{kind}", tensor
        for column, values in self.replay.columns.items():
            yield f"replay.{column}", torch.from_numpy(values[: len(self.replay)])

    def restore(self, state: TrainerState, saved: SavedRun) -> None:
        """Bring a fresh trainer, to the last bit, to where a run was when its state was written."""
        counters, self.history = state.counters, list(state.history)
        self.calls_before, self.dialogues_begun = counters.calls_before, counters.dialogues_begun
        self.replay.added, self.updates = counters.steps, counters.updates
        saved.fill(self.tensors())

    def broken_per_1000_calls(self) -> float:
        """Return the turns broken for every 1,000 calls of the last few rounds."""
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
                f"the training diverged in round {number + 1}: its loss is no number any more"
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
        """Return the places of the dialogues of the next round.

        All dialogues come in a drawn order before any comes again. No more are begun than
        what is left of the calls pays for at the worst.
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
        """Make the updates that are due; returns the losses of critic and actor."""
        config = self.config
        due = (self.replay.added - config.learning_starts) // config.train_frequency
        losses = []
        with threads(1):
            while self.updates < due:
                losses.append(self.learner.update(self.replay.draw(rng, config.batch)))
                self.updates += 1
        return losses


class AgentTrainer(LearningTrainer):
    """Learns between attempts; ``calls`` says how many contexts were asked for."""

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
        """Play dialogues side by side, learning all the while."""
        config, number, asked = self.config, len(self.history), self._calls()
        dialogues = [self.dialogues[place] for place in group]
        observations = self._environment.reset(dialogues, design_seed(config.seed, number))
        episodes = scheduled(config.seed, number, observations, config.ks)
        replayed = stream(config.seed, "agent", "replay", number)
        steps = broken = 0
        losses: list[tuple[float, float]] = []
        for moves in played_moves(
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
    """Writes an event for every figure of a round, at the number of calls so far."""

    def __init__(self, folder: Path) -> None:
        with needs_extra("--tensorboard", "tensorboard", "torch", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra
        try:
            self._writer = SummaryWriter(str(folder))
        except OSError as error:
            raise UserError(f"cannot write events to {folder}: {error.strerror}") from error

    def add(self, item: Round, broken_per_1000_calls: float) -> None:
        """Write the figures of a round and the running yield."""
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
        """Write what is left."""
        self._writer.close()
