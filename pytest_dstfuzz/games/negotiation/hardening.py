"""Iterative adversarial training: a negotiator and an attack on it learn in turns.

The method follows Cheng et al. (2019, formula 9). The attack is trained by policy gradient. Its
reward is its score minus the target's, and it gets all items that the target does not take. The
target learns from games against the attack, with the opposite reward. It also learns from equally
many games against a partner, and both must agree there. An attack always agrees, so without the
partner the target would learn to take everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from torch import Tensor

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.negotiation.corpus import load_negotiations
from pytest_dstfuzz.games.negotiation.network import load_network, save_network
from pytest_dstfuzz.games.negotiation.reinforce import (
    JUDGED_SEED,
    GradientConfig,
    LearningGames,
    PolicyGradient,
    play_games,
)
from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE
from pytest_dstfuzz.models.runs import (
    Progress,
    SavedRun,
    check_output,
    describe_run,
    locks_output,
    write_run,
)

#: The file of the final attack, next to the hardened negotiator.
ATTACK_FILE: Final = "attack.safetensors"
_RUN: Final = "dstfuzz.negotiator.hardened"
#: Settings that a resumed run may change.
_CHANGEABLE: Final = ("resume", "output", "rounds", "judged")
_ATTACK: Final = LearningGames("attack", "advantage", 0)
_DEFENCE: Final = LearningGames("defence", "advantage", 1)
_PLAIN: Final = LearningGames("plain", "score")


@dataclass(frozen=True, kw_only=True)
class HardenConfig(GradientConfig):
    """The settings for hardening a negotiator."""

    data: Path  #: Human talks, to preserve the language.
    target: Path  #: The negotiator to harden.
    attack: Path  #: The initial attack, for example one that was trained against the target.
    partner: Path  #: The partner for games in which both must agree.
    output: Path
    rounds: int = 8
    steps: int = 20  #: Steps in a round, for each kind of games.
    resume: bool = False


@dataclass(frozen=True)
class HardenedRound:
    """The results of a round, measured in scenarios outside of the training."""

    round: int
    advantage: float  #: Of the attack, which also learns.
    score: float  #: Of the target against its partner.
    agreement: float  #: Between the target and its partner.
    games: int  #: Training games so far.


@locks_output
def harden(config: HardenConfig, progress: Progress) -> tuple[HardenedRound, ...]:
    """Train a negotiator and an attack on it in turns.

    The state is written after each round, so a resumed run gives the same result as an
    uninterrupted one.

    Raises:
        UserError: a file is missing, or the three networks have different vocabularies.
    """
    check_output(config.output, resume=config.resume)
    target, attack = load_network(config.target), load_network(config.attack)
    partner = load_network(config.partner)
    if not target.words == attack.words == partner.words:
        raise UserError(
            f"{config.target}, {config.attack} and {config.partner} have different vocabularies: "
            "train all three on the same data"
        )
    rows = load_negotiations(config.data).train
    pair = PolicyGradient(target, config, rows), PolicyGradient(attack, config, rows)
    history: list[HardenedRound] = []
    identity = describe_run(config, _CHANGEABLE)
    if config.resume:
        saved = SavedRun.resumed(config.output, _RUN, identity, _tensors(pair))
        history = saved.history(HardenedRound)
        for learner, means in zip(pair, saved.about["means"], strict=True):
            learner.means = saved.built(dict[str, float], means)
        progress(f"resumed after round {len(history)}")
    while len(history) < config.rounds:
        for step in range(config.steps):
            number = len(history) * config.steps + step
            pair[0].step(attack, number, _DEFENCE)
            pair[0].step(partner, number, _PLAIN, people=False)
            pair[1].step(target, number, _ATTACK)
        games = 3 * (len(history) + 1) * config.steps * config.tables
        attacked = play_games(attack, target, config.judged, JUDGED_SEED, complement=0)
        plain = play_games(target, partner, config.judged, JUDGED_SEED)
        advantage = attacked.advantage.value
        history.append(
            HardenedRound(len(history) + 1, advantage, plain.adversary, plain.agreement, games)
        )
        progress(
            f"round {len(history)}/{config.rounds}: the attack has {advantage:+.2f}; the target "
            f"scores {plain.adversary:.2f} with its partner, agreed {plain.agreement:.3f}, "
            f"{games:,} games"
        )
        about = {
            "identity": identity,
            "history": [asdict(item) for item in history],
            "means": [learner.means for learner in pair],
        }
        save_network(config.output / MODEL_FILE, target, {"history": about["history"]})
        save_network(config.output / ATTACK_FILE, attack, {"history": about["history"]})
        write_run(config.output, _RUN, about, _tensors(pair))
    return tuple(history)


def _tensors(pair: tuple[PolicyGradient, PolicyGradient]) -> Iterator[tuple[str, Tensor]]:
    for name, learner in zip(("target.", "attack."), pair, strict=True):
        yield from learner.tensors(name)
