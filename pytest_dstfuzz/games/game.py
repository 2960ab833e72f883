"""Games with scores between agents with goals: their rules, figures and what an agent shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.seeding import stream

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


Talk = Sequence[TalkLine]
#: What was said so far: whether the target said it, and what.
Said = Sequence[tuple[bool, str]]


class Closing(NamedTuple):
    """Whether an agent selects at once, for some talks."""

    margin: np.ndarray  #: ``[talks]``: the logit of selecting less the highest of going on.
    chance: np.ndarray  #: ``[talks]``: 0 to 1, as it draws.


@runtime_checkable
class TransparentAgent(Protocol):
    """An agent that says what it would do: white-box attacks need it.

    Nothing here changes the agent. A talk is given as the agent sees it.
    """

    blank: str  #: The word that stands for no word.

    def closing(self, goal: Goal, talks: Sequence[Talk]) -> Closing:
        """Say whether it would select at once after each talk."""
        ...

    def selection_scores(
        self, goal: Goal, talks: Sequence[Talk], selections: Sequence[GoalSelection]
    ) -> np.ndarray:
        """Return ``[talks, selections]``, higher for what it rather selects at the end of each."""
        ...

    def answers(self, goal: Goal, talks: Sequence[Talk]) -> list[str | None]:
        """Return what it would most likely say next after each talk; ``None`` where it selects."""
        ...

    def replacements(
        self,
        goal: Goal,
        talk: Talk,
        line: int,
        wanted: Sequence[bool],
        selections: Sequence[GoalSelection],
        most: int,
    ) -> list[list[str]]:
        """Return words for each place of a line that would help most, by the gradient.

        Args:
            goal: of the agent.
            talk: it selects at the end of it, at once or because the last line closes the talk.
            line: the number of the line that may be changed.
            wanted: which of ``selections`` are hoped for.
            selections: what it may select.
            most: words for each place.
        """
        ...


@runtime_checkable
class FluencyModel(Protocol):
    """A language model of one side of a talk: how odd is what an attack says?"""

    def surprise(
        self, goal: Goal, talk: Talk, utterances: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Return nats and words of each utterance as what this side says next.

        ``talk`` is as the side sees it that speaks; perplexity is ``exp(nats / words)``.
        """
        ...


#: What closes a talk, as the agent under test sees it.
_CLOSE: Final = TalkLine(mine=False, text="", closes=True)


@dataclass(frozen=True)
class TargetView:
    """A transparent agent in one scenario: what follows if something is said."""

    agent: TransparentAgent
    game: Game
    scenario: Scenario

    @cached_property
    def selections(self) -> tuple[GoalSelection, ...]:
        """What the agent may select."""
        return tuple(self.game.selections(self.scenario))

    @cached_property
    def advantages(self) -> np.ndarray:
        """``[selections]``: how much more the adversary has than the agent."""
        scores = (self.game.scores(self.scenario, one) for one in self.selections)
        return np.array([found.advantage for found in scores])

    @cached_property
    def wanted(self) -> np.ndarray:
        """``[selections]``: whether the adversary has more than the agent."""
        return self.advantages > 0

    def talks(self, said: Said, utterances: Sequence[str], *, closed: bool = False) -> list[Talk]:
        """Return the talk after each of some utterances of the adversary, as the agent sees it."""
        before = [TalkLine(target, text) for target, text in said]
        end = [_CLOSE] if closed else []
        return [[*before, TalkLine(mine=False, text=text), *end] for text in utterances]

    def closing(self, said: Said, utterances: Sequence[str]) -> Closing:
        """Say whether the agent selects at once after each utterance."""
        return self.agent.closing(self.scenario.target, self.talks(said, utterances))

    def scores(self, talks: Sequence[Talk]) -> np.ndarray:
        """Return ``[talks, selections]`` of the agent at the end of each talk."""
        return self.agent.selection_scores(self.scenario.target, talks, self.selections)

    def answers(self, said: Said, utterances: Sequence[str]) -> list[str | None]:
        """Return what the agent most likely says to each utterance; ``None`` where it selects."""
        return self.agent.answers(self.scenario.target, self.talks(said, utterances))

    def answered(
        self, said: Said, utterances: Sequence[str], answers: Sequence[str | None]
    ) -> list[Talk]:
        """Return the talk that ends with each utterance and its answer.

        It is closed by the adversary, but where the agent selects by itself.
        """
        found: list[Talk] = []
        for talk, answer in zip(self.talks(said, utterances), answers, strict=True):
            more = [] if answer is None else [TalkLine(mine=True, text=answer), _CLOSE]
            found.append([*talk, *more])
        return found

    def closed(self, said: Said) -> np.ndarray:
        """Return ``[selections]`` of the agent if the adversary closed the talk now."""
        talk = [*(TalkLine(target, text) for target, text in said), _CLOSE]
        found: np.ndarray = self.scores([talk])[0]
        return found

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Return ``[talks]``: below 0 where the agent selects what the adversary hopes for.

        The highest score of what is not wanted less the highest of what is (formula 6 of the
        source, for whatever the agent would select in place of its first choice alone). Infinite
        where no selection is wanted, minus infinite where every one is.
        """
        wanted = self.wanted
        none = np.full(len(scores), np.inf)
        bad = scores[:, ~wanted].max(1) if not wanted.all() else -none
        good = scores[:, wanted].max(1) if wanted.any() else -none
        found: np.ndarray = np.where(np.isinf(good), none, bad - good)
        return found

    def replacements(self, talk: Talk, line: int, most: int) -> list[list[str]]:
        """Return words for each place of a line that would help most, by the gradient."""
        if self.wanted.all() or not self.wanted.any():
            return [[] for _ in talk[line].text.split()]
        wanted = self.wanted.tolist()
        goal = self.scenario.target
        return self.agent.replacements(goal, talk, line, wanted, self.selections, most)


_RESAMPLES: Final = 2_000
_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class GameInterval:
    """A figure and its approximate 95 % interval, with the game as unit."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Return the figure and its interval as reports write them."""
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True)
class GameFigures:
    """What some games came to; scores are from 0 to the game's highest."""

    games: int
    adversary: float  #: Mean score.
    target: float  #: Mean score.
    advantage: GameInterval  #: Of the adversary over the target.
    positive: GameInterval  #: Share of games in which the adversary has more.
    agreement: float  #: Share of games that ended with one selection that both take.

    @classmethod
    def of(cls, scores: Sequence[GameScores], agreed: int | None = None) -> GameFigures:
        """Count some games, one at least; by default all of them were agreed on.

        Where two agents select for themselves, those that do not agree have no score.
        """
        count = len(scores)
        own, other = (np.array(part, dtype=np.float64) for part in zip(*scores, strict=True))
        positive = int((own > other).sum())
        return cls(
            count,
            float(own.mean()),
            float(other.mean()),
            mean_interval(own - other),
            share_interval(positive, count),
            (count if agreed is None else agreed) / count,
        )


def mean_interval(values: np.ndarray) -> GameInterval:
    """Return a mean with percentiles of means of games drawn again, with replacement.

    The draws hang on the number of games alone, so that the same games give the same bounds.
    """
    count = len(values)
    rng = stream(0, "games", count)
    means = np.array([values[rng.integers(0, count, count)].mean() for _ in range(_RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return GameInterval(float(values.mean()), float(low), float(high))


def share_interval(positive: int, count: int) -> GameInterval:
    """Return a share with Wilson's interval."""
    share = positive / count
    scale = 1 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    # At either end the bound is the end itself, which rounding would miss.
    low = 0.0 if positive == 0 else middle - half
    high = 1.0 if positive == count else middle + half
    return GameInterval(share, low, high)


def talk_of(said: Said) -> list[TalkLine]:
    """Return what was said as the adversary sees it."""
    return [TalkLine(not target, text) for target, text in said]


@dataclass(frozen=True)
class Fluency:
    """What a language model of the adversary's side finds of its utterances.

    Without a model nothing is measured; without a bound nothing is left out.
    """

    model: FluencyModel | None = None
    goal: Goal | None = None  #: The adversary's.
    most: float | None = None  #: Perplexity of an utterance, its end included.

    def of(self, said: Said, utterances: Sequence[str]) -> list[str]:
        """Return those of some utterances that may be said next, in their order."""
        if self.model is None or self.most is None or not utterances:
            return list(utterances)
        found = self.model.surprise(self.goal or {}, talk_of(said), utterances)
        return [
            text
            for text, (nats, words) in zip(utterances, found, strict=True)
            if math.exp(nats / words) <= self.most
        ]

    def surprise(self, said: Said) -> tuple[float, int]:
        """Return nats and words of all that the adversary said in a talk."""
        if self.model is None:
            return 0.0, 0
        nats, words = 0.0, 0
        for place, (target, text) in enumerate(said):
            if not target:
                ((more, count),) = self.model.surprise(
                    self.goal or {}, talk_of(said[:place]), [text]
                )
                nats, words = nats + more, words + count
        return nats, words


def perplexity(nats: float, words: int) -> float | None:
    """Return ``exp(nats / words)``; ``None`` where nothing was measured."""
    return math.exp(nats / words) if words else None
