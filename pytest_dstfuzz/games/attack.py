"""Attacks of several adversaries on an agent, and the report on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import lock_file, read_versioned, write_json
from pytest_dstfuzz.games.adversaries import (
    ADVERSARIES,
    GameAdversary,
    adversary_by_name,
    playing_against,
)
from pytest_dstfuzz.games.game import Game, GameFigures, GoalAgent, Scenario, name_of, perplexity
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame, TurnedGame, shrink
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.printable import format_count, printable

#: Number of scenarios for learning, which are not reported.
_LEARNING: Final = 20
#: Maximum number of won games to shrink for an adversary, and the budget of games for each.
_SHRUNK: Final = 3
_SHRINKING: Final = 120


@dataclass(frozen=True)
class AdversaryResult:
    """The games and figures of one adversary."""

    name: str
    figures: GameFigures
    asked: int  #: The number of games to learn and to search, without the reported games.
    played: tuple[PlayedGame, ...]  #: The reported games.
    turned: tuple[TurnedGame, ...]  #: Some won games, minimised.
    #: Perplexity of its utterances in the reported games; ``None`` without a language model.
    perplexity: float | None = None


@dataclass(frozen=True)
class GameAttack:
    """The settings of an attack on an agent."""

    games: int = 50  #: The number of reported scenarios, with one game each.
    budget: int = 1_000  #: Games of each adversary: half for learning, half for searching.
    seed: int = 0
    adversaries: tuple[str, ...] | None = None  #: Names; ``None`` = all that can play.

    def __post_init__(self) -> None:
        """Raise an error if a setting is invalid."""
        if self.games < 1:
            raise UserError(f"games must be at least 1, not {self.games}")
        if self.budget < 0:
            raise UserError(f"budget must be at least 0, not {self.budget}")
        if self.seed < 0:
            raise UserError(f"seed must be at least 0, not {self.seed}")
        if self.adversaries and len(set(self.adversaries)) < len(self.adversaries):
            raise UserError(f"{', '.join(self.adversaries)} names an adversary twice")
        if self.adversaries == ():
            raise UserError(f"no adversary was named: choose from {', '.join(ADVERSARIES)}")

    def run(
        self, agent: GoalAgent, game: Game, side: AdversarySide | None = None
    ) -> tuple[AdversaryResult, ...]:
        """Let each adversary play all its games, and return the results.

        The games of an adversary depend on the seed, not on the other adversaries.
        """
        side = side or AdversarySide()
        # Check the game and the agent before anything is drawn.
        Arena(game, agent, self.seed, side)
        every = list(game.scenarios(self.games + _LEARNING, self.seed))
        ids = {scenario.id for scenario in every}
        if len(every) != self.games + _LEARNING or len(ids) != len(every):
            raise UserError(
                f"the game {game.name!r}: scenarios({self.games + _LEARNING}, seed) returned "
                f"{format_count(len(every), 'scenario')} with "
                f"{format_count(len(ids), 'different id')}; it must return the requested number, "
                f"each with its own id"
            )
        # Create all adversaries first, so that a wrong name costs no games.
        names = playing_against(agent, side) if self.adversaries is None else self.adversaries
        made = [adversary_by_name(name, Arena(game, agent, self.seed, side)) for name in names]
        return tuple(self._result(one, every) for one in made)

    def _result(self, adversary: GameAdversary, every: Sequence[Scenario]) -> AdversaryResult:
        arena = adversary.arena
        reported = every[: self.games]
        # If all goals are alike, learning cannot reveal those of the reported scenarios.
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
    """Return the scenarios whose goals do not occur in the other scenarios.

    So an adversary cannot memorise the reported scenarios.
    """
    known = [(one.target, one.adversary, one.target_first) for one in others]
    return [one for one in scenarios if (one.target, one.adversary, one.target_first) not in known]


#: Minimum number of games for an interval.
LEAST_GAMES: Final = 20
_VERSION: Final = 1
_KIND: Final = "file of remembered games"


@dataclass(frozen=True)
class GameReport:
    """The results of all adversaries against an agent. ``str()`` returns the terminal text."""

    agent: str
    game: str
    how: GameAttack
    results: tuple[AdversaryResult, ...]

    @property
    def worst(self) -> AdversaryResult:
        """The result of the adversary with the highest mean advantage."""
        return max(self.results, key=lambda result: result.figures.advantage.value)

    def assert_advantage_below(self, bound: float) -> None:
        """Fail if the mean advantage of an adversary may be ``bound`` or more.

        The mean is over scenarios, for each adversary separately. The true mean may be as high as
        the upper end of its 95 % interval.

        Raises:
            AssertionError: the upper end of an interval is not below the bound.
            UserError: there are too few games for an interval, or the bound is no number.
        """
        __tracebackhide__ = True
        if math.isnan(bound):
            raise UserError("the bound of an advantage is nan: give a number, such as 0.1")
        if self.how.games < LEAST_GAMES:
            raise UserError(
                f"{format_count(self.how.games, 'game')} give no interval: assert a bound on at "
                f"least {LEAST_GAMES} games, such as dst_game.play(agent, game, games=50)"
            )
        # An advantage without a value is not below anything.
        over = [one for one in self.results if not one.figures.advantage.high < bound]
        if over:
            names = ", ".join(f"{one.name} {one.figures.advantage.text()}" for one in over)
            raise AssertionError(f"the advantage is not below {bound:g}: {names}\n{self}")

    def remember(self, path: Path | str) -> int:
        """Add the shortened won games to a file. Return how many of them are new.

        The file is JSON and written atomically. `replay` plays the games of the file again.
        """
        target = Path(path)
        with lock_file(target):
            entries = _entries(target) if target.exists() else []
            known = {repr(_key(entry)) for entry in entries}
            new = []
            for result in self.results:
                for turned in result.turned:
                    entry = self._entry(turned)
                    if repr(_key(entry)) not in known:
                        known.add(repr(_key(entry)))
                        new.append(entry)
            if new:
                every = sorted([*entries, *new], key=lambda entry: repr(_key(entry)))
                write_json(target, {"games_version": _VERSION, "games": every})
        return len(new)

    def _entry(self, turned: TurnedGame) -> dict[str, Any]:
        played = turned.played
        return {
            "game": self.game,
            "agent": self.agent,
            "scenario": asdict(played.scenario),
            "lines": list(played.script),
            "advantage": played.advantage,
            "sentence": turned.sentence,
        }

    def to_json(self) -> dict[str, Any]:
        """Return all figures and won games as JSON."""
        return {
            "games_version": _VERSION,
            "agent": self.agent,
            "game": self.game,
            "how": asdict(self.how),
            "adversaries": [
                {
                    "name": one.name,
                    "asked": one.asked,
                    "figures": asdict(one.figures),
                    "perplexity": one.perplexity,
                    "won": [
                        {**self._entry(turned), "times": turned.times, "without": turned.without}
                        for turned in one.turned
                    ],
                }
                for one in self.results
            ],
        }

    def __str__(self) -> str:
        return printable("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        how = self.how
        yield (
            f"{self.agent} in {self.game}: {format_count(how.games, 'game')} against each "
            f"adversary, budget {how.budget}, seed {how.seed}"
        )
        odd = any(one.perplexity is not None for one in self.results)
        yield (
            f"{'adversary':<11} {'advantage [95 %]':<24} {'positive':<24} "
            f"{'adversary : target':<19} {'agreed':<7} {'asked':<6} {'perplexity' if odd else ''}"
        ).rstrip()
        for one in self.results:
            found = one.figures
            score = f"{found.adversary:.2f} : {found.target:.2f}"
            own = "" if one.perplexity is None else f"{one.perplexity:.1f}"
            yield (
                f"{one.name:<11} {found.advantage.text():<24} {found.positive.text():<24} "
                f"{score:<19} {100 * found.agreement:.0f} %   {one.asked:<6} {own}"
            ).rstrip()
        every = [turned for one in self.results for turned in one.turned]
        moved = sum(not turned.stays for turned in every)
        if moved:
            yield (
                f"{moved} of {format_count(len(every), 'won game')} ended differently when played "
                "again, so the agent does not depend only on its goal and the talk"
            )
        for turned in self.plainest():
            yield from _told(turned)

    def plainest(self, most: int = 3) -> list[TurnedGame]:
        """Return the won games with the most advantage, each decided by a different sentence."""
        every = [turned for one in self.results for turned in one.turned]
        every.sort(
            key=lambda one: (
                -one.played.advantage,
                len(one.played.script),
                sum(len(line.split()) for line in one.played.script),
                one.played.scenario.id,
            )
        )
        first: dict[str, TurnedGame] = {}
        for turned in every:
            first.setdefault(turned.sentence, turned)
        return list(first.values())[:most]


def _told(turned: TurnedGame) -> Iterator[str]:
    played = turned.played
    yield f"scenario {played.scenario.id}, target's goal {dict(played.scenario.target)}:"
    for target, text in played.lines:
        mark = "*" if not target and text == turned.sentence else " "
        yield f"  {mark} {'target' if target else 'adversary'}: {text}"
    yield (
        f"    target selects {played.selection}: {played.scores.adversary:g} for the adversary, "
        f"{played.scores.target:g} for the target"
    )
    if not turned.sentence:
        yield f"    the adversary scores {played.advantage:g} more although it says nothing"
        return
    times = "" if turned.times == 1 else f", said {turned.times} times"
    yield (
        f"    decided by {turned.sentence!r}{times}: the advantage is {played.advantage:g}, and "
        f"{turned.without:g} without it"
    )


@dataclass(frozen=True)
class ReplayedGame:
    """The result of a remembered game that was played again."""

    scenario: str
    sentence: str
    before: float  #: The advantage when the game was remembered.
    now: float

    @property
    def still_won(self) -> bool:
        """Whether the adversary still scores more than the target."""
        return self.now > 0


def replay(agent: GoalAgent, game: Game, path: Path | str) -> tuple[ReplayedGame, ...]:
    """Repeat the remembered games of this agent and game, in the order of the file.

    Raises:
        UserError: the file cannot be read, or has no game of this agent.
    """
    arena = Arena(game, agent, 0)
    found = []
    for number, entry in enumerate(_entries(Path(path)), start=1):
        if (entry.get("game"), entry.get("agent")) != (game.name, name_of(agent)):
            continue
        try:
            scenario = from_json(Scenario, entry["scenario"])
            script = tuple(map(str, entry["lines"]))
            before, sentence = float(entry["advantage"]), str(entry["sentence"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}, game {number} is damaged ({error})") from None
        try:
            now = arena.fresh(scenario, script).advantage
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}, game {number}: its goal does not fit the game {game.name!r} ({error!r})"
            ) from None
        found.append(ReplayedGame(scenario.id, sentence, before, now))
    if not found:
        raise UserError(f"{path} contains no game of the agent {name_of(agent)!r} in {game.name!r}")
    return tuple(found)


def _entries(path: Path) -> list[dict[str, Any]]:
    content = read_versioned(path, _KIND, "games_version", _VERSION)
    games = content.get("games")
    if not isinstance(games, list) or not all(isinstance(entry, dict) for entry in games):
        raise DataError(f"{path} is not a {_KIND}: 'games' must be a list of objects")
    return games


def _key(entry: dict[str, Any]) -> tuple[object, ...]:
    return (entry.get("game"), entry.get("agent"), entry.get("scenario"), entry.get("lines"))
