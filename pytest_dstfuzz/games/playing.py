"""Plays games, and shortens the games that the adversary won."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.errors import DstFuzzError, UserError, message_of, passes_through
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
    score_selection,
)
from pytest_dstfuzz.printable import format_count, shorten_text

#: The lines of an adversary in order; after the last, it closes the talk.
Script = tuple[str, ...]
#: Returns the next line for a talk of (by the target, text) pairs; ``None`` closes the talk.
Speaker = Callable[[Sequence[tuple[bool, str]]], str | None]


@dataclass(frozen=True)
class PlayedGame:
    """A finished game."""

    scenario: Scenario
    lines: tuple[tuple[bool, str], ...]  #: Pairs: whether the target said it, and the text.
    selection: GoalSelection  #: The target's selection; the adversary gets the rest.
    scores: GameScores

    @property
    def script(self) -> Script:
        """The lines of the adversary."""
        return tuple(text for target, text in self.lines if not target)

    @property
    def advantage(self) -> float:
        """The adversary's score minus the target's score."""
        return self.scores.advantage


def play_game(game: Game, scenario: Scenario, agent: GoalAgent, script: Script) -> PlayedGame:
    """Let an agent play against fixed lines. The adversary says one line per turn.

    Raises:
        UserError: an utterance is invalid, the selection is not legal, or the agent never selects.
    """
    left = list(script)
    return play_against(game, scenario, agent, lambda _: left.pop(0) if left else None)


def play_against(game: Game, scenario: Scenario, agent: GoalAgent, speak: Speaker) -> PlayedGame:
    """Let an agent play against a function that chooses the adversary's lines.

    To repeat the game, call `play_game` with the script of the returned game.

    Raises:
        UserError: see `play_game`.
    """
    who = f"the agent {name_of(agent)!r}, in scenario {scenario.id!r},"
    said: list[tuple[bool, str]] = []

    def selected(answer: GoalSelection) -> PlayedGame:
        scores = score_selection(game, scenario, answer, who)
        return PlayedGame(scenario, tuple(said), answer, scores)

    def seen() -> list[TalkLine]:
        return [TalkLine(target, text) for target, text in said]

    def reply(history: list[TalkLine]) -> object:
        return _told(
            lambda: agent.reply(history), f"{who} after {format_count(len(said), 'line')},"
        )

    _told(lambda: agent.start(scenario.goal_for(target=True)), f"{who} when it got its goal,")
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
            f"{who} never selects: the talk was closed after {format_count(len(said), 'line')}, "
            f"and it said {shorten_text(str(answer), 60)!r}; if the last line closes the talk, "
            "reply() must return a GoalSelection"
        )
    return selected(answer)


def _told(asked: Callable[[], object], who: str) -> object:
    """Call the agent. Convert exceptions to a message with the place of the error."""
    try:
        return asked()
    except BaseException as error:
        if isinstance(error, DstFuzzError) or passes_through(error):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}, line {place.lineno}"
        raise UserError(
            f"{who} raised {type(error).__name__}: {message_of(error)} ({where})"
        ) from error


@dataclass(frozen=True)
class AdversarySide:
    """Resources of the adversaries in addition to the game: a voice and a language model."""

    #: Speaks for the adversary, with its goal; by default lines of the game are drawn. It must not
    #: be the agent under test.
    voice: GoalAgent | None = None
    #: Plays the adversary's side while winning lines are collected; by default the voice.
    teacher: GoalAgent | None = None
    #: Measures the perplexity of the adversary's utterances.
    fluency: FluencyModel | None = None
    #: Maximum perplexity of an utterance that an attack selects or rewrites, including its end.
    #: Lines of the voice and drawn lines of the game are not limited. ``None`` = no limit.
    most_perplexity: float | None = None

    def __post_init__(self) -> None:
        """Raise an error if the limit of perplexity is invalid."""
        if self.most_perplexity is not None and not self.most_perplexity > 1:
            raise UserError(f"most_perplexity must be above 1, not {self.most_perplexity:g}")
        if self.most_perplexity is not None and self.fluency is None:
            raise UserError("most_perplexity needs a language model: pass fluency, too")
        if self.fluency is not None and not isinstance(self.fluency, FluencyModel):
            raise UserError(f"{self.fluency!r} is not a language model: it must have surprise()")


class Arena:
    """Plays games against an agent. Counts them, and plays each game only once.

    If an agent behaves at random, the first result counts. Games for the report are always played
    anew (`fresh`).
    """

    def __init__(
        self, game: Game, agent: GoalAgent, seed: int, side: AdversarySide | None = None
    ) -> None:
        self.side = side or AdversarySide()
        for one in (agent, self.side.voice, self.side.teacher):
            if one is not None and (isinstance(one, type) or not isinstance(one, GoalAgent)):
                raise UserError(
                    f"{one!r} is not an agent: it must be an object with start(goal) and "
                    "reply(history)"
                )
        if not isinstance(game, Game):
            raise UserError(
                f"{game!r} is not a game: it must have name, most_turns, most_score, scenarios(), "
                "selections(), scores() and lines()"
            )
        if any(agent is one for one in (self.side.voice, self.side.teacher)):
            raise UserError(
                "the agent under test cannot also be the voice of the adversary: pass another "
                "object as the voice"
            )
        self.game, self.agent, self.seed = game, agent, seed
        self.games = 0  #: The number of games so far.
        self._known: dict[tuple[str, Script], PlayedGame] = {}
        self._checked: dict[str, tuple[str, ...]] = {}

    def lines(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the checked lines of a scenario. All scenarios must have the same number."""
        if scenario.id not in self._checked:
            check_game(self.game, scenario)
            lines = tuple(self.game.lines(scenario))
            other, known = next(iter(self._checked.items()), (scenario.id, lines))
            if len(known) != len(lines):
                raise UserError(
                    f"the game {self.game.name!r} has {len(known)} lines in scenario {other!r} "
                    f"and {len(lines)} in {scenario.id!r}: the n-th line must mean the same in "
                    "all scenarios"
                )
            self._checked[scenario.id] = lines
        return self._checked[scenario.id]

    @property
    def most_lines(self) -> int:
        """Maximum number of lines that an adversary can say if it speaks first."""
        return (self.game.most_turns + 1) // 2

    def play(self, scenario: Scenario, script: Script) -> PlayedGame:
        """Play a game, or return its cached result."""
        key = (scenario.id, script)
        if key not in self._known:
            self._known[key] = self.fresh(scenario, script)
        return self._known[key]

    def fresh(self, scenario: Scenario, script: Script) -> PlayedGame:
        """Play a game anew, without the cache."""
        self.lines(scenario)
        self.games += 1
        return play_game(self.game, scenario, self.agent, script)

    def hear(self, scenario: Scenario, speak: Speaker) -> PlayedGame:
        """Play a game against an adversary that chooses its lines after the agent's answers."""
        self.lines(scenario)
        self.games += 1
        return play_against(self.game, scenario, self.agent, speak)

    def fluency(self, scenario: Scenario) -> Fluency:
        """Return the language model with its limit, for the adversary's goal in a scenario."""
        side = self.side
        return Fluency(side.fluency, scenario.adversary, side.most_perplexity)


@dataclass(frozen=True)
class TurnedGame:
    """A won game, shortened, with the decisive line."""

    played: PlayedGame
    sentence: str  #: The decisive sentence: without it, the advantage falls most.
    times: int  #: How often the sentence occurs.
    without: float  #: The advantage without the sentence.
    #: Whether a repetition of the original game gave the same result.
    stays: bool = True


def shrink(arena: Arena, played: PlayedGame, budget: int) -> TurnedGame:
    """Drop lines, then words, of the adversary as long as the advantage does not fall.

    At most ``budget`` games are played. The target's answers may change, because only the advantage
    counts.
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
    """Yield shorter scripts. Each lacks one line, or one word in all repetitions of its line."""
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
    """Return the line that raises the advantage most, and the advantage without this line."""
    if not best.script:
        return "", best.advantage
    left = {
        line: arena.play(scenario, tuple(one for one in best.script if one != line)).advantage
        for line in dict.fromkeys(best.script)
    }
    line = min(left, key=lambda text: left[text])
    return line, left[line]
