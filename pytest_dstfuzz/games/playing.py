"""Playing games, and making their failures small."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.games.game import (
    Fluency,
    FluencyModel,
    Game,
    GameScores,
    GoalAgent,
    GoalSelection,
    Scenario,
    TalkLine,
    check_game,
    check_utterance,
    name_of,
    scored,
)
from pytest_dstfuzz.printable import counted, shortened

#: What an adversary says, one line after the other; then it closes the talk.
Script = tuple[str, ...]
#: Says a line to what was said so far (whether the target said it, and what); ``None`` closes.
Speaker = Callable[[Sequence[tuple[bool, str]]], str | None]


@dataclass(frozen=True)
class PlayedGame:
    """A game that was played to its end."""

    scenario: Scenario
    lines: tuple[tuple[bool, str], ...]  #: Whether the target said it, and what was said.
    selection: GoalSelection  #: The target's; the adversary takes the rest.
    scores: GameScores

    @property
    def script(self) -> Script:
        """What the adversary said."""
        return tuple(text for target, text in self.lines if not target)

    @property
    def advantage(self) -> float:
        """How much more the adversary has than the target."""
        return self.scores.advantage


def play_game(game: Game, scenario: Scenario, agent: GoalAgent, script: Script) -> PlayedGame:
    """Let an agent play against lines that are said in turn.

    Raises:
        UserError: the agent says what is no utterance, selects what is not legal, or never does.
    """
    left = list(script)
    return play_against(game, scenario, agent, lambda _: left.pop(0) if left else None)


def play_against(game: Game, scenario: Scenario, agent: GoalAgent, speak: Speaker) -> PlayedGame:
    """Let an agent play against one who hears it; `play_game` with its script is the same game.

    Raises:
        UserError: as `play_game`.
    """
    who = f"the agent {name_of(agent)!r}, in scenario {scenario.id!r},"
    said: list[tuple[bool, str]] = []

    def selected(answer: GoalSelection) -> PlayedGame:
        scores = scored(game, scenario, answer, who)
        return PlayedGame(scenario, tuple(said), answer, scores)

    def seen() -> list[TalkLine]:
        return [TalkLine(target, text) for target, text in said]

    def reply(history: list[TalkLine]) -> object:
        return _told(lambda: agent.reply(history), f"{who} after {counted(len(said), 'line')},")

    _told(lambda: agent.start(scenario.target), f"{who} told its goal,")
    targets_turn = scenario.target_first
    while len(said) < game.most_turns:
        if targets_turn:
            answer = reply(seen())
            if isinstance(answer, GoalSelection):
                return selected(answer)
            said.append((True, check_utterance(answer, who)))
        else:
            text = speak(tuple(said))
            if text is None:
                break
            said.append((False, check_utterance(text, "the adversary")))
        targets_turn = not targets_turn
    answer = reply([*seen(), TalkLine(mine=False, text="", closes=True)])
    if not isinstance(answer, GoalSelection):
        raise UserError(
            f"{who} never selects: after {len(said)} lines the talk was closed, and it said "
            f"{shortened(str(answer), 60)!r}; where the last line closes the talk, reply() is to "
            "return a GoalSelection"
        )
    return selected(answer)


def _told(asked: Callable[[], object], who: str) -> object:
    """Return what an agent says; what it raises becomes one message that says where."""
    try:
        return asked()
    except DstFuzzError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}, line {place.lineno}"
        raise UserError(f"{who} raised {error!r} ({where})") from error


@dataclass(frozen=True)
class AdversarySide:
    """What adversaries are given beside the game."""

    #: Plays the adversary's side, told its goal; lines of the game by chance without one. It must
    #: be another object than the agent under test.
    voice: GoalAgent | None = None
    #: Plays that side where winning lines are gathered; without one the voice does.
    teacher: GoalAgent | None = None
    #: Says how odd an utterance of that side is.
    fluency: FluencyModel | None = None
    #: Highest perplexity of an utterance that an attack chose or rewrote, the end included; what
    #: the voice says, and lines of the game that are drawn, are as they are. ``None`` = any.
    most_perplexity: float | None = None

    def __post_init__(self) -> None:
        """Refuse a bound that cannot be kept."""
        if self.most_perplexity is not None and not self.most_perplexity > 1:
            raise UserError(f"the perplexity is above 1, the bound is {self.most_perplexity:g}")
        if self.most_perplexity is not None and self.fluency is None:
            raise UserError("a bound of the perplexity needs a language model: give fluency, too")
        if self.fluency is not None and not isinstance(self.fluency, FluencyModel):
            raise UserError(f"{self.fluency!r} is no language model: it would have surprise()")


class Arena:
    """Where an agent is played against: it counts the games, and plays none of them twice.

    An agent that answers now so and now so is remembered by its first game; what is reported is
    always played anew (`fresh`).
    """

    def __init__(
        self, game: Game, agent: GoalAgent, seed: int, side: AdversarySide | None = None
    ) -> None:
        self.side = side or AdversarySide()
        for one in (agent, self.side.voice, self.side.teacher):
            if one is not None and (isinstance(one, type) or not isinstance(one, GoalAgent)):
                raise UserError(
                    f"{one!r} is no agent: it would be an object with start(goal) and "
                    "reply(history)"
                )
        if not isinstance(game, Game):
            raise UserError(
                f"{game!r} is no game: it would have name, most_turns, most_score, scenarios(), "
                "selections(), scores() and lines()"
            )
        if any(agent is one for one in (self.side.voice, self.side.teacher)):
            raise UserError("the agent cannot play both sides: give another object as the voice")
        self.game, self.agent, self.seed = game, agent, seed
        self.games = 0  #: That were played.
        self._known: dict[tuple[str, Script], PlayedGame] = {}
        self._checked: dict[str, tuple[str, ...]] = {}

    def lines(self, scenario: Scenario) -> tuple[str, ...]:
        """Return what may be said in a scenario, checked; always as many lines."""
        if scenario.id not in self._checked:
            check_game(self.game, scenario)
            lines = tuple(self.game.lines(scenario))
            other, known = next(iter(self._checked.items()), (scenario.id, lines))
            if len(known) != len(lines):
                raise UserError(
                    f"the game {self.game.name!r} has {len(known)} lines in scenario {other!r} and "
                    f"{len(lines)} in {scenario.id!r}: the n-th is to mean the same in all of them"
                )
            self._checked[scenario.id] = lines
        return self._checked[scenario.id]

    @property
    def most_lines(self) -> int:
        """How often an adversary can speak who speaks first."""
        return (self.game.most_turns + 1) // 2

    def play(self, scenario: Scenario, script: Script) -> PlayedGame:
        """Play a game, or return what came of it before."""
        key = (scenario.id, script)
        if key not in self._known:
            self._known[key] = self.fresh(scenario, script)
        return self._known[key]

    def fresh(self, scenario: Scenario, script: Script) -> PlayedGame:
        """Play a game."""
        self.lines(scenario)
        self.games += 1
        return play_game(self.game, scenario, self.agent, script)

    def hear(self, scenario: Scenario, speak: Speaker) -> PlayedGame:
        """Play a game against one who hears the agent."""
        self.lines(scenario)
        self.games += 1
        return play_against(self.game, scenario, self.agent, speak)

    def fluency(self, scenario: Scenario) -> Fluency:
        """Return what may be said, and how odd it is, in a scenario."""
        side = self.side
        return Fluency(side.fluency, scenario.adversary, side.most_perplexity)


@dataclass(frozen=True)
class TurnedGame:
    """A won game in its plainest form."""

    played: PlayedGame
    sentence: str  #: Without it the advantage falls most.
    times: int  #: How often it is said.
    without: float  #: The advantage without it.
    #: Whether the talk that was found was played twice with one outcome.
    stays: bool = True


def shrink(arena: Arena, played: PlayedGame, budget: int) -> TurnedGame:
    """Leave out lines, then words, while the adversary wins as much; at most ``budget`` games.

    The target's answers may change meanwhile: what counts is the advantage.
    """
    end = arena.games + budget
    scenario, best = played.scenario, arena.fresh(played.scenario, played.script)
    stays = best == played
    shorter = True
    while shorter:
        shorter = False
        for script in _shorter(best.script):
            if arena.games >= end:
                break
            found = arena.play(scenario, script)
            if found.advantage >= best.advantage and _size(found.script) < _size(best.script):
                best, shorter = found, True
                break
    sentence, without = _turning(arena, scenario, best)
    return TurnedGame(best, sentence, best.script.count(sentence), without, stays)


def _shorter(script: Script) -> Iterator[Script]:
    """Yield what is left when one line is spared, or one word of it wherever it is said."""
    for place in range(len(script)):
        yield (*script[:place], *script[place + 1 :])
    for line in dict.fromkeys(script):
        words = line.split()
        for place in range(len(words) if len(words) > 1 else 0):
            text = " ".join(words[:place] + words[place + 1 :])
            yield tuple(text if other == line else other for other in script)


def _size(script: Script) -> tuple[int, int]:
    return len(script), sum(len(line.split()) for line in script)


def _turning(arena: Arena, scenario: Scenario, best: PlayedGame) -> tuple[str, float]:
    """Return the line without which the adversary has least, and what it has then."""
    if not best.script:
        return "", best.advantage
    left = {
        line: arena.play(scenario, tuple(one for one in best.script if one != line)).advantage
        for line in dict.fromkeys(best.script)
    }
    line = min(left, key=lambda text: left[text])
    return line, left[line]
