"""Training of the agent against a tracker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_dstfuzz.agents.environment import Environment, Observation
from pytest_dstfuzz.agents.multi_pdqn import LearnerConfig, MultiPDQN
from pytest_dstfuzz.agents.policy import COUNT, Choice, Exploration
from pytest_dstfuzz.agents.replay import Batch, Replay
from pytest_dstfuzz.agents.reward import reward_by_name
from pytest_dstfuzz.dialogue.types import Dialogue
from pytest_dstfuzz.seeding import derive, stream


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How to train."""

    calls: int = 40_000
    attempts: int = 8
    dialogues: int = 48
    reward: str = "broken"
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    replay: int = 20_000
    batch: int = 128
    warm_up: int = 500
    steps_an_update: int = 4
    epsilon_end: float = 0.05
    epsilon_share: float = 0.4
    seed: int = 0
    learner: LearnerConfig = field(default_factory=LearnerConfig)


class Trainer:
    """Plays episodes and learns from them."""

    def __init__(
        self,
        config: TrainingConfig,
        environment: Environment,
        dialogues: Sequence[Dialogue],
        calls: Callable[[], int],
    ) -> None:
        self.config = config
        self.environment = environment
        self.dialogues = list(dialogues)
        self.calls = calls
        self.learner = MultiPDQN(config.learner)
        self.replay = Replay(config.replay)
        self.round = 0
        self.steps = 0
        self.updates = 0
        self.reward = reward_by_name(config.reward)
        self.seconds = {"choose": 0.0, "env": 0.0, "update": 0.0}

    def _groups(self) -> list[Dialogue]:
        size = self.config.dialogues
        per_epoch = max(1, len(self.dialogues) // size)
        epoch, place = divmod(self.round, per_epoch)
        order = stream(self.config.seed, "train", "order", epoch).permutation(len(self.dialogues))
        return [self.dialogues[i] for i in order[place * size : (place + 1) * size]]

    def play(self) -> tuple[int, int]:
        c = self.config
        done = self.calls() / c.calls
        eps = max(c.epsilon_end, 1.0 - done / c.epsilon_share * (1 - c.epsilon_end))
        group = self._groups()
        seed = derive(c.seed, "train", "design", self.round) % 2**63
        obs = self.environment.reset(group, seed)
        rngs = {key: stream(c.seed, "train", "act", self.round, key) for key in obs}
        ks = {key: int(rngs[key].choice(c.ks)) for key in obs}
        update_rng = stream(c.seed, "train", "replay", self.round)
        broken = made = 0
        losses = []
        while obs:
            t = time.perf_counter()
            policy = self.learner.policy()
            choices: dict[int, Choice] = {}
            states = {}
            for key, o in obs.items():
                states[key] = o.view.state(o.trace, ks[key])
                explore = Exploration(eps, 16, 0.2, 0.3 if o.trace.attempts else 0.0)
                choices[key] = policy.choose(o.view, o.trace, ks[key], rngs[key], explore)
            self.seconds["choose"] += time.perf_counter() - t
            t = time.perf_counter()
            steps = self.environment.step({key: ch.action for key, ch in choices.items()})
            self.seconds["env"] += time.perf_counter() - t
            obs = {}
            for key, step in steps.items():
                made += 1
                broken += step.outcome.broken
                ch = choices[key]
                over = step.terminated or step.truncated
                self.replay.add(
                    Batch(
                        states[key],
                        ch.vector,
                        ch.choices,
                        ch.chosen,
                        ks[key],
                        self.reward(step.outcome),
                        step.observation.view.state(step.observation.trace, ks[key]),
                        step.observation.view.available,
                        step.terminated,
                    )
                )
                if not over:
                    obs[key] = step.observation
            t = time.perf_counter()
            self.steps += len(steps)
            if len(self.replay) >= c.warm_up:
                while self.updates * c.steps_an_update < self.steps - c.warm_up:
                    losses.append(self.learner.update(self.replay.draw(update_rng, c.batch)))
                    self.updates += 1
            self.seconds["update"] += time.perf_counter() - t
        self.round += 1
        self.last = (
            eps,
            float(np.mean([l[0] for l in losses])) if losses else 0.0,
            float(np.mean([l[1] for l in losses])) if losses else 0.0,
        )
        return made, broken
