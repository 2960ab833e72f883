"""What is played: agents with a goal, games with scores, and what is wrong with bad ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import shortened

#: What an agent is told before a game: values of JSON by their names.
Goal = Mapping[str, Any]
#: Characters of an utterance; a longer one is no turn of a talk.
MOST_CHARACTERS: Final = 4_000
_SHOWN: Final = 60


class TalkLine(NamedTuple):
    """What was said, as one of the two sees it."""

    mine: bool  #: Whether the one who reads it said it.
    text: str
    #: Whether the other side ended the talk with it: now a selection is due. The text is empty.
    closes: bool = False


@dataclass(frozen=True, order=True, init=False)
class GoalSelection:
    """What an agent decides on at the end of a talk: an amount for each name.

    >>> GoalSelection({"refund": 3}) == GoalSelection(refund=3)
    True
    """

    amounts: tuple[tuple[str, int], ...]

    def __init__(self, amounts: Mapping[str, int] | None = None, **more: int) -> None:
        every = {**(amounts or {}), **more}
        object.__setattr__(self, "amounts", tuple(sorted(every.items())))

    def __getitem__(self, name: str) -> int:
        """Return the amount of a name, 0 where it has none."""
        return dict(self.amounts).get(name, 0)

    def __str__(self) -> str:
        return ", ".join(f"{name} {amount}" for name, amount in self.amounts) or "nothing"


class GameScores(NamedTuple):
    """What a selection is worth to either side, from 0 to the game's ``most_score``."""

    adversary: float
    target: float

    @property
    def advantage(self) -> float:
        """How much more the adversary has than the target."""
        return self.adversary - self.target


@dataclass(frozen=True)
class Scenario:
    """Two goals that meet; nothing else differs between the games of one kind."""

    id: str
    target: Goal = field(hash=False)  #: What the agent under test is told.
    adversary: Goal = field(hash=False)  #: What the other side knows.
    target_first: bool = False  #: Whether the agent under test speaks first.


@runtime_checkable
class GoalAgent(Protocol):
    """An agent that talks towards a goal, and selects at the end.

    A talk ends when it selects. It must where the last line ``closes`` the talk. What it does must
    hang on the goal and the history alone: a game that is played again is to go as it went.
    """

    def start(self, goal: Goal) -> None:
        """Begin a game: nothing of an earlier one is remembered."""
        ...

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        """Say something, or select; ``history`` is all that was said, oldest first."""
        ...


@runtime_checkable
class Game(Protocol):
    """What is at stake between an agent and who talks to it."""

    name: str
    most_turns: int  #: Lines of both together, before the talk is closed.
    most_score: float  #: The highest score of either side.

    def scenarios(self, count: int, seed: int) -> Sequence[Scenario]:
        """Return so many scenarios, each with an id of its own; a seed gives the same again."""
        ...

    def selections(self, scenario: Scenario) -> Sequence[GoalSelection]:
        """Return what the target may select."""
        ...

    def scores(self, scenario: Scenario, selection: GoalSelection) -> GameScores:
        """Return what a selection of the target is worth to either side."""
        ...

    def lines(self, scenario: Scenario) -> Sequence[str]:
        """Return what an adversary may say to begin with.

        The n-th line of each scenario is to mean the same: what was learned in one game is said
        in others by its place.
        """
        ...


def check_game(game: Game, scenario: Scenario) -> None:
    """Refuse a game that cannot be played, before it is.

    Raises:
        UserError: no legal selection, no lines, or lines that nobody can say.
    """
    where = f"the game {game.name!r}, scenario {scenario.id!r}"
    if game.most_turns < 2:
        raise UserError(f"{where}: most_turns is {game.most_turns}, a talk has 2 turns at least")
    if not game.selections(scenario):
        raise UserError(
            f"{where}: selections() has no legal selection; a target that may refuse has one "
            "for that, such as GoalSelection(refund=0)"
        )
    lines = game.lines(scenario)
    if not lines:
        raise UserError(f"{where}: lines() gives an adversary nothing to say")
    for line in lines:
        check_utterance(line, f"{where}: lines()")


def check_utterance(text: object, who: str) -> str:
    """Return what somebody said, if it can be said; ``who`` begins the message.

    Raises:
        UserError: no text, an empty one, or one of more than `MOST_CHARACTERS`.
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise UserError(f"{who} gave {kind}: it would be a text, or a GoalSelection of an agent")
    if not text.strip():
        raise UserError(f"{who} gave an empty utterance: an agent says something, or selects")
    if len(text) > MOST_CHARACTERS:
        raise UserError(
            f"{who} gave an utterance of {len(text):,} characters, {MOST_CHARACTERS:,} at most are "
            f"a turn of a talk: {shortened(text, _SHOWN)!r}"
        )
    return text


def scored(game: Game, scenario: Scenario, selection: GoalSelection, who: str) -> GameScores:
    """Return the scores of a selection, if it is legal and they are what scores may be.

    Raises:
        UserError: the selection is none of the game's, or a score is out of bounds.
    """
    legal = game.selections(scenario)
    if selection not in legal:
        few = "; ".join(str(one) for one in list(legal)[:4])
        more = f" and {len(legal) - 4} more" if len(legal) > 4 else ""
        raise UserError(f"{who} selected {selection}, which is not legal; legal: {few}{more}")
    scores = game.scores(scenario, selection)
    for side, score in zip(("adversary", "target"), scores, strict=True):
        if not (math.isfinite(score) and 0 <= score <= game.most_score):
            raise UserError(
                f"the game {game.name!r} gives the {side} a score of {score:g} for {selection}, "
                f"scores are from 0 to most_score, {game.most_score:g}"
            )
    return scores


def name_of(agent: object) -> str:
    """Return what reports call an agent: its ``name``, or its class."""
    name = getattr(agent, "name", None)
    return name if isinstance(name, str) and name else type(agent).__name__
