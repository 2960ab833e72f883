"""Policy gradient for a negotiator: towards its own score, or towards its advantage.

After Lewis et al. (2017) and Cheng et al. (2019): what was said last counts most (gamma 0.95),
rewards are taken against a running mean, and steps on talks of people keep the language. An
attack has its score less the target's as reward, and takes what the target leaves. The steps are
Adam's, of a lower rate than the sources' plain ones (0.1 for 4 passes over the scenarios).
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
    forbidden,
    load_network,
    save_network,
)
from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE, row_loss
from pytest_dstfuzz.games.negotiation.tables import TableTalk, talk
from pytest_dstfuzz.models.runs import Progress, SavedRun, check_output, moments, write_run
from pytest_dstfuzz.seeding import derive, stream

_RUN: Final = "dstfuzz.negotiator.reinforced"
#: What a resumed run may change.
_CHANGEABLE: Final = ("resume", "output", "rounds", "judged")
#: Share of a new batch in the running mean of the rewards.
_NEW: Final = 0.05
#: Seed of the games after each round.
JUDGED_SEED: Final = 7

#: What the reward is: the own score, or what it is above the other's.
Aim = Literal["score", "advantage"]


@dataclass(frozen=True)
class LearningGames:
    """What a negotiator learns from: games of one kind."""

    name: str  #: Of the stream of draws.
    aim: Aim = "score"
    #: Who takes what the other leaves: 0 = the learner, 1 = its partner, ``None`` = neither.
    complement: int | None = None

    @classmethod
    def of(cls, aim: Aim) -> Self:
        """Return the games of an aim: who attacks takes what the target leaves."""
        return cls("", aim, 0 if aim == "advantage" else None)


@dataclass(frozen=True, kw_only=True)
class GradientConfig:
    """How a step learns."""

    tables: int = 64  #: Games of a step.
    learning_rate: float = 3e-4
    gradient_clip: float = 1.0
    gamma: float = 0.95
    temperature: float = 0.5
    supervised_every: int = 4  #: Steps of games for each on talks of people.
    batch_size: int = 16  #: Rows of those.
    seed: int = 0
    judged: int = 256  #: Games after each round that say how it went; nothing is chosen by them.


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(GradientConfig):
    """How to train a negotiator by games against another."""

    data: Path  #: Talks of people, to keep the language.
    start: Path  #: The network that is trained further.
    partner: Path  #: The one that it plays against, which stays.
    output: Path
    aim: Aim = "score"
    rounds: int = 8
    steps: int = 40  #: Of a round.
    resume: bool = False


@dataclass(frozen=True)
class ReinforcedRound:
    """What came of a round, in games of scenarios that no training draws."""

    round: int
    score: float
    other: float
    agreement: float
    games: int  #: That were played to train, so far.


class PolicyGradient:
    """One negotiator that learns from games; what it knows is in `tensors` and ``means``."""

    def __init__(
        self,
        network: NegotiatorNetwork,
        config: GradientConfig,
        rows: Sequence[NegotiationRow],
    ) -> None:
        self.network, self._config, self._rows = network, config, rows
        self.adam = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
        self.means: dict[str, float] = {}  #: Of the rewards, running, by the name of the games.

    def step(
        self, partner: NegotiatorNetwork, number: int, games: LearningGames, *, people: bool = True
    ) -> TableTalk:
        """Play a batch of games against a partner, and learn from them.

        Every few steps it learns from talks of people as well, where ``people`` says so.
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
        """Return the loss whose gradient is that of the policy, a mean over games."""
        network, config = self.network, self._config
        goal = network.encode_goal(found.goals)
        outputs = network.read(network.embedding(found.words), goal).outputs
        logits = network.next_words(outputs[:, :-1]) / config.temperature
        words, said = found.words[:, 1:], found.said[:, 1:]
        first = said & ~found.said[:, :-1]
        for place in (True, False):
            mask = torch.zeros(logits.shape[-1], dtype=torch.bool)
            mask[forbidden(network, first=place)] = True
            logits = logits.masked_fill((first == place)[..., None] & mask, -1e9)
        chances = logits.log_softmax(-1).gather(-1, words[..., None])[..., 0]
        # The last word of this side counts whole, the one before it gamma, and so on.
        after = said.flip(1).cumsum(1).flip(1) - said.long()
        weight = config.gamma ** after.float() * said
        total: Tensor = -(chances * weight * gain[:, None]).sum() / len(gain)
        return total

    def _learn(self, loss: Tensor) -> None:
        self.adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # theirs has no types
        nn.utils.clip_grad_norm_(self.network.parameters(), self._config.gradient_clip)
        self.adam.step()

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield the weights and what the optimiser keeps of them, by name."""
        for name, parameter in self.network.named_parameters():
            state = moments(self.adam, parameter)
            yield f"{prefix}weight.{name}", parameter
            yield f"{prefix}first.{name}", state["exp_avg"]
            yield f"{prefix}second.{name}", state["exp_avg_sq"]
            yield f"{prefix}step.{name}", state["step"]


def played(
    network: NegotiatorNetwork,
    partner: NegotiatorNetwork,
    games: int,
    seed: int,
    *,
    complement: int | None = None,
) -> GameFigures:
    """Let a network play against another in scenarios that no training draws.

    The network is the adversary of the figures; see `talk` for ``complement``.
    """
    if not 0 <= seed < TRAINING_SEED:
        raise UserError(
            f"the seed of games that count is from 0 to {TRAINING_SEED - 1:,}, not {seed}"
        )
    generator = torch.Generator().manual_seed(derive(seed, "played") % 2**63)
    scenarios = DealGame().scenarios(games, seed)
    found = talk(scenarios, network, partner, generator, complement=complement)
    scores = [
        GameScores(own, other)
        for own, other in zip(found.own.tolist(), found.other.tolist(), strict=True)
    ]
    return GameFigures.of(scores, int(found.agreed.sum()))


def train_reinforced(config: ReinforceConfig, progress: Progress) -> tuple[ReinforcedRound, ...]:
    """Train a negotiator by games, and keep what the last round made of it.

    After each round all that a resumed run needs is written; resumed, it does what it would have
    done without the interruption.

    Raises:
        UserError: a file is missing, or the two know other words.
    """
    check_output(config.output, resume=config.resume)
    network, partner = load_network(config.start), load_network(config.partner)
    if network.words != partner.words:
        raise UserError(f"{config.start} and {config.partner} know other words: train both alike")
    learner = PolicyGradient(network, config, load_negotiations(config.data).train)
    games = LearningGames.of(config.aim)
    history: list[ReinforcedRound] = []
    identity = {k: str(v) for k, v in asdict(config).items() if k not in _CHANGEABLE}
    if config.resume:
        saved = SavedRun.resumed(config.output, _RUN, identity, learner.tensors())
        history = saved.history(ReinforcedRound)
        learner.means = saved.built(dict[str, float], saved.about["means"])
        progress(f"resumed after round {len(history)}")
    while len(history) < config.rounds:
        for step in range(config.steps):
            learner.step(partner, len(history) * config.steps + step, games)
        figures = played(network, partner, config.judged, JUDGED_SEED, complement=games.complement)
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
