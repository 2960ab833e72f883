"""Trains a negotiator by policy gradient, to maximise its score or its advantage.

The method follows Lewis et al. (2017) and Cheng et al. (2019): the last words count most (gamma
0.95), rewards are relative to a running mean, and steps on human talks preserve the language. The
reward of an attack is its advantage: its score minus the target's score. The attack gets all items
that the target does not take. The optimiser is Adam. Its rate is lower than the rate of the plain
steps in the sources (0.1 for 4 passes over the scenarios).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, Self

import torch
from torch import Tensor, nn

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.deal import TRAINING_SEED, DealGame
from pytest_dstfuzz.games.game import GameFigures, GameScores
from pytest_dstfuzz.games.negotiation.corpus import NegotiationRow, load_negotiations
from pytest_dstfuzz.games.negotiation.network import (
    NegotiatorNetwork,
    list_forbidden,
    load_network,
    save_network,
)
from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE, row_loss
from pytest_dstfuzz.games.negotiation.tables import TableTalk, talk
from pytest_dstfuzz.models.runs import (
    Progress,
    SavedRun,
    check_output,
    describe_run,
    locks_output,
    moments,
    write_run,
)
from pytest_dstfuzz.seeding import derive, stream

_RUN: Final = "dstfuzz.negotiator.reinforced"
#: Settings that a resumed run may change.
_CHANGEABLE: Final = ("resume", "output", "rounds", "judged")
#: Weight of a new batch in the running mean of the rewards.
_NEW: Final = 0.05
#: Seed of the evaluation games after each round.
JUDGED_SEED: Final = 7

#: The reward: the own score, or the own score minus the other's.
Aim = Literal["score", "advantage"]


@dataclass(frozen=True)
class LearningGames:
    """A kind of games to learn from, with its reward and its rules."""

    name: str  #: The name of the random stream.
    aim: Aim = "score"
    #: The side that takes the rest: 0 = the learner, 1 = its partner, ``None`` = neither.
    complement: int | None = None

    @classmethod
    def of(cls, aim: Aim) -> Self:
        """Return the games for an aim.

        In games of an attack, the attack gets the items that the other side leaves.
        """
        return cls("", aim, 0 if aim == "advantage" else None)


@dataclass(frozen=True, kw_only=True)
class GradientConfig:
    """The settings of the training steps."""

    tables: int = 64  #: Games in a step.
    learning_rate: float = 3e-4
    gradient_clip: float = 1.0
    gamma: float = 0.95
    temperature: float = 0.5
    supervised_every: int = 4  #: Number of game steps for each step on human talks.
    batch_size: int = 16  #: Rows in a step on human talks.
    seed: int = 0
    judged: int = 256  #: Evaluation games after each round; they do not affect the training.


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(GradientConfig):
    """The settings for training a negotiator by games against another."""

    data: Path  #: Human talks, to preserve the language.
    start: Path  #: The network to train further.
    partner: Path  #: The opponent, which does not change.
    output: Path
    aim: Aim = "score"
    rounds: int = 8
    steps: int = 40  #: Steps in a round.
    resume: bool = False


@dataclass(frozen=True)
class ReinforcedRound:
    """The results of a round, measured in scenarios outside of the training."""

    round: int
    score: float
    other: float
    agreement: float
    games: int  #: Training games so far.


class PolicyGradient:
    """A negotiator that learns from games. Its state is in `tensors` and ``means``."""

    def __init__(
        self,
        network: NegotiatorNetwork,
        config: GradientConfig,
        rows: Sequence[NegotiationRow],
    ) -> None:
        self.network, self._config, self._rows = network, config, rows
        self.adam = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
        self.means: dict[str, float] = {}  #: Name of the games -> running mean of the rewards.

    def step(
        self, partner: NegotiatorNetwork, number: int, games: LearningGames, *, people: bool = True
    ) -> TableTalk:
        """Play a batch of games against a partner and learn from them.

        If ``people`` is true, the negotiator also learns from human talks every few steps.
        """
        config = self._config
        seed = derive(config.seed, "reinforce", games.name, number) % 2**63
        generator = torch.Generator().manual_seed(seed)
        scenarios = DealGame().scenarios(config.tables, TRAINING_SEED + seed % 2**31)
        found = talk(
            scenarios,
            self.network,
            partner,
            generator,
            temperature=config.temperature,
            complement=games.complement,
        )
        reward = found.own - found.other if games.aim == "advantage" else found.own
        mean = self.means.get(games.name, float(reward.mean()))
        self._learn(self._loss(found, reward - mean))
        self.means[games.name] = mean + _NEW * (float(reward.mean()) - mean)
        if people and config.supervised_every and number % config.supervised_every == 0:
            rng = stream(seed, "rows")
            places = rng.integers(0, len(self._rows), config.batch_size)
            self._learn(row_loss(self.network, [self._rows[place] for place in places.tolist()]))
        return found

    def _loss(self, found: TableTalk, gain: Tensor) -> Tensor:
        """Return the policy gradient loss as the mean over games."""
        network, config = self.network, self._config
        goal = network.encode_goal(found.goals)
        outputs = network.read(network.embedding(found.words), goal).outputs
        logits = network.next_words(outputs[:, :-1]) / config.temperature
        words, said = found.words[:, 1:], found.said[:, 1:]
        first = said & ~found.said[:, :-1]
        for place in (True, False):
            mask = torch.zeros(logits.shape[-1], dtype=torch.bool)
            mask[list_forbidden(network, first=place)] = True
            logits = logits.masked_fill((first == place)[..., None] & mask, -1e9)
        chances = logits.log_softmax(-1).gather(-1, words[..., None])[..., 0]
        # The last word of this side has weight 1, the word before it gamma, and so on.
        after = said.flip(1).cumsum(1).flip(1) - said.long()
        weight = config.gamma ** after.float() * said
        total: Tensor = -(chances * weight * gain[:, None]).sum() / len(gain)
        return total

    def _learn(self, loss: Tensor) -> None:
        self.adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no type here
        nn.utils.clip_grad_norm_(self.network.parameters(), self._config.gradient_clip)
        self.adam.step()

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield the weights and the state of the optimiser, each with its name."""
        for name, parameter in self.network.named_parameters():
            state = moments(self.adam, parameter)
            yield f"{prefix}weight.{name}", parameter
            yield f"{prefix}first.{name}", state["exp_avg"]
            yield f"{prefix}second.{name}", state["exp_avg_sq"]
            yield f"{prefix}step.{name}", state["step"]


def play_games(
    network: NegotiatorNetwork,
    partner: NegotiatorNetwork,
    games: int,
    seed: int,
    *,
    complement: int | None = None,
) -> GameFigures:
    """Let two networks play in scenarios outside of the training.

    In the figures, ``network`` is the adversary and ``partner`` the target. For ``complement`` see
    `talk`.
    """
    if not 0 <= seed < TRAINING_SEED:
        raise UserError(f"the seed must be from 0 to {TRAINING_SEED - 1:,}, not {seed}")
    generator = torch.Generator().manual_seed(derive(seed, "played") % 2**63)
    scenarios = DealGame().scenarios(games, seed)
    found = talk(scenarios, network, partner, generator, complement=complement)
    scores = [
        GameScores(own, other)
        for own, other in zip(found.own.tolist(), found.other.tolist(), strict=True)
    ]
    return GameFigures.of(scores, int(found.agreed.sum()))


@locks_output
def train_reinforced(config: ReinforceConfig, progress: Progress) -> tuple[ReinforcedRound, ...]:
    """Train a negotiator by games. Keep its network after the last round.

    The state is written after each round, so a resumed run gives the same result as an
    uninterrupted one.

    Raises:
        UserError: a file is missing, or the two networks have different vocabularies.
    """
    check_output(config.output, resume=config.resume)
    network, partner = load_network(config.start), load_network(config.partner)
    if network.words != partner.words:
        raise UserError(
            f"{config.start} and {config.partner} have different vocabularies: train both on the "
            "same data"
        )
    learner = PolicyGradient(network, config, load_negotiations(config.data).train)
    games = LearningGames.of(config.aim)
    history: list[ReinforcedRound] = []
    identity = describe_run(config, _CHANGEABLE)
    if config.resume:
        saved = SavedRun.resumed(config.output, _RUN, identity, learner.tensors())
        history = saved.history(ReinforcedRound)
        learner.means = saved.built(dict[str, float], saved.about["means"])
        progress(f"resumed after round {len(history)}")
    while len(history) < config.rounds:
        for step in range(config.steps):
            learner.step(partner, len(history) * config.steps + step, games)
        figures = play_games(
            network, partner, config.judged, JUDGED_SEED, complement=games.complement
        )
        count = (len(history) + 1) * config.steps * config.tables
        history.append(
            ReinforcedRound(
                len(history) + 1, figures.adversary, figures.target, figures.agreement, count
            )
        )
        progress(
            f"round {len(history)}/{config.rounds}: {figures.adversary:.2f} : {figures.target:.2f}"
            f", agreed {figures.agreement:.3f}, {count:,} games"
        )
        about = {
            "identity": identity,
            "history": [asdict(item) for item in history],
            "means": learner.means,
        }
        save_network(config.output / MODEL_FILE, network, {"history": about["history"]})
        write_run(config.output, _RUN, about, learner.tensors())
    return tuple(history)
