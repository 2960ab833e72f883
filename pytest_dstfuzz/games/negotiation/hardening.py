"""Iterative adversarial training: a negotiator and who attacks it learn in turn.

After Cheng et al. (2019, formula 9). The attack is the one by policy gradient: its reward is its
score less the target's, and it takes what the target leaves. The target learns from games against
it, with the opposite reward, and from as many games against a partner, where both have to agree: an
attack always agrees, and a target that learnt from it alone would learn to take everything.
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
    played,
)
from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE
from pytest_dstfuzz.models.runs import Progress, SavedRun, check_output, write_run

#: The attack as it is at the end, beside the hardened negotiator.
ATTACK_FILE: Final = "attack.safetensors"
_RUN: Final = "dstfuzz.negotiator.hardened"
#: What a resumed run may change.
_CHANGEABLE: Final = ("resume", "output", "rounds", "judged")
_ATTACK: Final = LearningGames("attack", "advantage", 0)
_DEFENCE: Final = LearningGames("defence", "advantage", 1)
_PLAIN: Final = LearningGames("plain", "score")


@dataclass(frozen=True, kw_only=True)
class HardenConfig(GradientConfig):
    """How to harden a negotiator."""

    data: Path  #: Talks of people, to keep the language.
    target: Path  #: The negotiator that is hardened.
    attack: Path  #: The attack that it begins with, such as one that was trained against it.
    partner: Path  #: Who it plays as well, where both have to agree.
    output: Path
    rounds: int = 8
    steps: int = 20  #: Of a round and each kind of games.
    resume: bool = False


@dataclass(frozen=True)
class HardenedRound:
    """What came of a round, in games of scenarios that no training draws."""

    round: int
    advantage: float  #: Of the attack, which learns too.
    score: float  #: Of the target against its partner.
    agreement: float  #: With its partner.
    games: int  #: That were played to train, so far.


def harden(config: HardenConfig, progress: Progress) -> tuple[HardenedRound, ...]:
    """Train a negotiator against an attack that is trained against it, step by step.

    After each round all that a resumed run needs is written; resumed, it does what it would have
    done without the interruption.

    Raises:
        UserError: a file is missing, or the three know other words.
    """
    check_output(config.output, resume=config.resume)
    target, attack = load_network(config.target), load_network(config.attack)
    partner = load_network(config.partner)
    if not target.words == attack.words == partner.words:
        raise UserError(
            f"{config.target}, {config.attack} and {config.partner} know other words: train all "
            "three on the same data"
        )
    rows = load_negotiations(config.data).train
    pair = PolicyGradient(target, config, rows), PolicyGradient(attack, config, rows)
    history: list[HardenedRound] = []
    identity = {k: str(v) for k, v in asdict(config).items() if k not in _CHANGEABLE}
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
        attacked = played(attack, target, config.judged, JUDGED_SEED, complement=0)
        plain = played(target, partner, config.judged, JUDGED_SEED)
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
