"""All adversaries against one agent in one game: what a test of an agent plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.adversaries import GameAdversary
from pytest_dstfuzz.games.figures import GameFigures
from pytest_dstfuzz.games.fluency import perplexity
from pytest_dstfuzz.games.game import Game, GoalAgent, Scenario
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame
from pytest_dstfuzz.games.roster import ADVERSARIES, adversary_by_name, playing_against
from pytest_dstfuzz.games.shrinking import TurnedGame, shrink

#: Scenarios to learn on, which are not reported.
_LEARNING: Final = 20
#: Won games of an adversary that are shrunk, and the games that each of them may take.
_SHRUNK: Final = 3
_SHRINKING: Final = 120


@dataclass(frozen=True)
class AdversaryResult:
    """What one adversary reached."""

    name: str
    figures: GameFigures
    asked: int  #: Games that it played to learn and to search; those reported come on top.
    played: tuple[PlayedGame, ...]  #: The games of the figures.
    turned: tuple[TurnedGame, ...]  #: Some that it won, in their plainest form.
    #: Of its utterances in the reported games; ``None`` without a language model.
    perplexity: float | None = None


@dataclass(frozen=True)
class GameAttack:
    """How an agent is attacked."""

    games: int = 50  #: Scenarios that are reported, one game each.
    budget: int = 1_000  #: Games of each adversary: half to learn, half to search.
    seed: int = 0
    adversaries: tuple[str, ...] | None = None  #: Names; ``None`` = all that can play.

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if self.games < 1:
            raise UserError(f"games must be at least 1, not {self.games}")
        if self.budget < 0:
            raise UserError(f"budget must be at least 0, not {self.budget}")
        if self.seed < 0:
            raise UserError(f"seed must be at least 0, not {self.seed}")
        if self.adversaries and len(set(self.adversaries)) < len(self.adversaries):
            raise UserError(f"an adversary stands twice in {', '.join(self.adversaries)}")
        if self.adversaries == ():
            raise UserError(f"no adversary; there are {', '.join(ADVERSARIES)}")

    def run(
        self, agent: GoalAgent, game: Game, side: AdversarySide | None = None
    ) -> tuple[AdversaryResult, ...]:
        """Play; each adversary's games hang on the seed alone, not on the other adversaries."""
        side = side or AdversarySide()
        # Refused here, before anything is drawn.
        Arena(game, agent, self.seed, side)
        every = list(game.scenarios(self.games + _LEARNING, self.seed))
        ids = {scenario.id for scenario in every}
        if len(every) != self.games + _LEARNING or len(ids) != len(every):
            raise UserError(
                f"the game {game.name!r}: scenarios({self.games + _LEARNING}, seed) gave "
                f"{len(every)} with {len(ids)} ids; it would be as many as asked for, each with "
                "an id of its own"
            )
        # Made before any game, so that a wrong name costs none.
        names = playing_against(agent, side) if self.adversaries is None else self.adversaries
        made = [adversary_by_name(name, Arena(game, agent, self.seed, side)) for name in names]
        return tuple(self._result(one, every) for one in made)

    def _result(self, adversary: GameAdversary, every: Sequence[Scenario]) -> AdversaryResult:
        arena = adversary.arena
        reported = every[: self.games]
        # Where all goals are alike there is nothing that learning could know beforehand.
        learning = unlike(every[self.games :], reported) or every[self.games :]
        half = self.budget // 2
        if adversary.learns and half:
            adversary.learn(learning, half)
        each = half // self.games if adversary.searches else 0
        scripts = [(scenario, adversary.script(scenario, each)) for scenario in reported]
        asked = arena.games
        played = tuple(arena.fresh(scenario, script) for scenario, script in scripts)
        won = sorted(
            (game for game in played if game.advantage > 0),
            key=lambda game: (-game.advantage, len(game.script), game.scenario.id),
        )
        turned = tuple(shrink(arena, game, _SHRINKING) for game in won[:_SHRUNK])
        figures = GameFigures.of([game.scores for game in played])
        odd = [arena.fluency(game.scenario).surprise(game.lines) for game in played]
        nats, words = (sum(part) for part in zip(*odd, strict=True))
        own = perplexity(nats, int(words))
        return AdversaryResult(adversary.name, figures, asked, played, turned, own)


def unlike(scenarios: Sequence[Scenario], others: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios whose goals none of some others has: there learning is no peeking."""
    known = [(one.target, one.adversary, one.target_first) for one in others]
    return [one for one in scenarios if (one.target, one.adversary, one.target_first) not in known]
