"""Hardens agents that learn: trains an agent and its attacker in turn, in any game.

This is the iterative adversarial training of Cheng et al. (2019, formula 9). The agents decide how
they learn. `pytest_dstfuzz.games.negotiation.hardening` does the same for the shipped networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.adversaries import VoicedAdversary
from pytest_dstfuzz.games.attack import unlike
from pytest_dstfuzz.games.game import (
    Game,
    GameFigures,
    Goal,
    GoalAgent,
    GoalSelection,
    Scenario,
    TalkLine,
    name_of,
)
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame
from pytest_dstfuzz.seeding import derive

#: Seeds of training scenarios are above this number.
_TRAINING: Final = 1 << 20


@dataclass(frozen=True)
class LearnedGame:
    """A finished game, from the view of the side that learns from it."""

    goal: Goal  #: The goal of this side.
    talk: tuple[TalkLine, ...]
    selection: GoalSelection  #: The selection of the agent under test.
    reward: float  #: Higher is better.


@runtime_checkable
class LearningAgent(GoalAgent, Protocol):
    """An agent that also learns from its games."""

    def learn(self, games: Sequence[LearnedGame]) -> None:
        """Change the behaviour so that games like these bring more reward."""
        ...


@dataclass(frozen=True)
class HardenedAgentRound:
    """The figures after a round, in scenarios that do not occur in the training."""

    round: int  #: From 1.
    attack: GameFigures  #: Of the attacker against the agent. Both have learned.
    partner: GameFigures | None  #: Of the partner against the agent; ``None`` without a partner.
    games: int  #: Games played for learning so far.


def harden_agent(
    game: Game,
    agent: LearningAgent,
    attacker: LearningAgent,
    *,
    partner: GoalAgent | None = None,
    rounds: int = 8,
    games: int = 64,
    judged: int = 100,
    seed: int = 0,
) -> tuple[HardenedAgentRound, ...]:
    """Train an agent and its attacker in turn, and return the figures after each round.

    In a round, the agent first learns from games against the attacker. Its reward is its own score
    minus the attacker's. If there is a partner, the agent also learns from as many games against
    it, with its own score as the reward. So it does not forget how to deal with ordinary users.
    Then the attacker learns from new games. Its reward is its score minus the agent's.

    Args:
        game: the rules, the scenarios and the scores.
        agent: the agent to harden.
        attacker: an agent that speaks for the other side. If it returns a selection, it closes the
            talk.
        partner: an ordinary agent for the other side, which does not learn.
        rounds: number of rounds.
        games: number of games for each learner in a round.
        judged: number of games for the figures after a round.
        seed: seed of the scenarios.

    Raises:
        UserError: an agent cannot learn, or a number is too small.
    """
    for one, role in ((agent, "agent"), (attacker, "attacker")):
        if isinstance(one, type) or not isinstance(one, LearningAgent):
            raise UserError(
                f"the {role} {name_of(one)!r} cannot learn: it must be an object with start(goal), "
                "reply(history) and learn(games)"
            )
    for name, value in (("rounds", rounds), ("games", games), ("judged", judged)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    judging = list(game.scenarios(judged, seed))
    history: list[HardenedAgentRound] = []
    count = 0
    for number in range(1, rounds + 1):
        tables = {"defence": attacker, "plain": partner, "attack": attacker}
        for name, other in tables.items():
            if other is None:
                continue
            scenarios = _training_scenarios(game, judging, games, derive(seed, name, number))
            played = _played(game, agent, other, scenarios, seed)
            count += len(played)
            learner = attacker if name == "attack" else agent
            learner.learn([_learned(one, _REWARDS[name], mine=name == "attack") for one in played])
        against = _played(game, agent, attacker, judging, seed)
        plain = None if partner is None else _figures(_played(game, agent, partner, judging, seed))
        history.append(HardenedAgentRound(number, _figures(against), plain, count))
    return tuple(history)


#: Kind of games -> the reward of the learner.
_REWARDS: Final[dict[str, Callable[[PlayedGame], float]]] = {
    "defence": lambda played: -played.advantage,
    "plain": lambda played: played.scores.target,
    "attack": lambda played: played.advantage,
}


def _training_scenarios(
    game: Game, judging: Sequence[Scenario], count: int, seed: int
) -> list[Scenario]:
    """Return scenarios with other goals than those of the figures.

    Raises:
        UserError: all scenarios of the game have the same goals.
    """
    found = unlike(game.scenarios(count, _TRAINING + seed % _TRAINING), judging)
    if not found:
        raise UserError(
            f"the game {game.name!r} has no scenario for the training: scenarios(count, seed) must "
            "return other goals for another seed"
        )
    return found


def _played(
    game: Game, agent: GoalAgent, other: GoalAgent, scenarios: Sequence[Scenario], seed: int
) -> list[PlayedGame]:
    arena = Arena(game, agent, seed, AdversarySide(voice=other))
    speaks = VoicedAdversary(arena)
    return [arena.hear(one, speaks.speaker(one)) for one in scenarios]


def _learned(
    played: PlayedGame, reward: Callable[[PlayedGame], float], *, mine: bool
) -> LearnedGame:
    """Return a game for the attacker (``mine``) or for the agent under test."""
    scenario = played.scenario
    return LearnedGame(
        scenario.adversary if mine else scenario.target,
        tuple(TalkLine(target != mine, text) for target, text in played.lines),
        played.selection,
        reward(played),
    )


def _figures(played: Sequence[PlayedGame]) -> GameFigures:
    return GameFigures.of([one.scores for one in played])
