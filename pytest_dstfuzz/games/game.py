"""The rules and figures of games between two agents, and agents that show predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import shorten_text
from pytest_dstfuzz.seeding import stream

#: The private knowledge of an agent in a game: names with JSON values.
Goal = Mapping[str, Any]
#: Maximum number of characters of an utterance.
MOST_CHARACTERS: Final = 4_000
_SHOWN: Final = 60


class TalkLine(NamedTuple):
    """A line of a conversation, seen from one side."""

    mine: bool  #: Whether this side said the line.
    text: str
    #: Whether the other side ended the talk; then this side must select. The text is empty.
    closes: bool = False


@dataclass(frozen=True, order=True, init=False)
class GoalSelection:
    """An agent's final decision in a conversation: an amount for each name.

    >>> GoalSelection({"refund": 3}) == GoalSelection(refund=3)
    True
    """

    amounts: tuple[tuple[str, int], ...]

    def __init__(self, amounts: Mapping[str, int] | None = None, **more: int) -> None:
        every = {**(amounts or {}), **more}
        object.__setattr__(self, "amounts", tuple(sorted(every.items())))

    def __getitem__(self, name: str) -> int:
        """Return the amount for a name, or 0 if the decision does not mention the name."""
        return dict(self.amounts).get(name, 0)

    def __str__(self) -> str:
        return ", ".join(f"{name} {amount}" for name, amount in self.amounts) or "nothing"


class GameScores(NamedTuple):
    """The scores of both sides for a selection, from 0 to the game's ``most_score``."""

    adversary: float
    target: float

    @property
    def advantage(self) -> float:
        """The adversary's score minus the target's score."""
        return self.adversary - self.target


@dataclass(frozen=True)
class Scenario:
    """The goals of both sides in one game. Games with the same rules have different scenarios."""

    id: str
    target: Goal = field(hash=False)  #: The goal of the agent under test.
    adversary: Goal = field(hash=False)  #: The goal of the other side.
    target_first: bool = False  #: Whether the agent under test speaks first.

    def goal_for(self, *, target: bool) -> dict[str, Any]:
        """Return a copy of a side's goal. An agent may keep it and change it."""
        return deepcopy(dict(self.target if target else self.adversary))


@runtime_checkable
class GoalAgent(Protocol):
    """An agent that talks to reach a goal, and finally makes a selection.

    A talk ends when the agent returns a selection. The agent must select if the last line
    ``closes`` the talk. Its behaviour must depend only on the goal and the history, so that games
    can be repeated.
    """

    def start(self, goal: Goal) -> None:
        """Start a new game with a goal. Forget earlier games."""
        ...

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        """Return an utterance or a selection. ``history`` has all lines, oldest first."""
        ...


@runtime_checkable
class Game(Protocol):
    """The rules and scores of a talk between the agent under test and an adversary."""

    name: str
    most_turns: int  #: Maximum number of lines of both sides, after which the talk is closed.
    most_score: float  #: The highest score of either side.

    def scenarios(self, count: int, seed: int) -> Sequence[Scenario]:
        """Return ``count`` scenarios with distinct ids.

        The same seed must give the same scenarios.
        """
        ...

    def selections(self, scenario: Scenario) -> Sequence[GoalSelection]:
        """Return the selections among which the target may choose."""
        ...

    def scores(self, scenario: Scenario, selection: GoalSelection) -> GameScores:
        """Return the scores of both sides if the target makes a selection."""
        ...

    def lines(self, scenario: Scenario) -> Sequence[str]:
        """Return basic lines that an adversary may say.

        The n-th line must mean the same in each scenario, because adversaries reuse lines by index.
        """
        ...


def check_game(game: Game, scenario: Scenario) -> None:
    """Raise an error if a game cannot be played.

    Raises:
        UserError: there is no selection, no line, or an invalid line.
    """
    where = f"the game {game.name!r}, scenario {scenario.id!r}"
    if not (isinstance(game.most_turns, Integral) and game.most_turns >= 2):
        raise UserError(
            f"{where}: most_turns is {game.most_turns!r}, but it must be a whole number of at "
            "least 2 turns"
        )
    if not game.selections(scenario):
        raise UserError(
            f"{where}: selections() has no legal selection; if the target may refuse, add a "
            "selection for that, such as GoalSelection(refund=0)"
        )
    lines = game.lines(scenario)
    if not lines:
        raise UserError(f"{where}: lines() has no line for an adversary")
    for line in lines:
        check_utterance(line, f"{where}: lines()")


def check_utterance(text: object, who: str) -> str:
    """Check an utterance and return it. Error messages begin with ``who``.

    Raises:
        UserError: the utterance is not a text, is empty, or has more than `MOST_CHARACTERS`
            characters.
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise UserError(f"{who} returned {kind}: it must be a text, or a GoalSelection of an agent")
    if not text.strip():
        raise UserError(f"{who} returned an empty utterance: an agent must say something or select")
    if len(text) > MOST_CHARACTERS:
        raise UserError(
            f"{who} returned an utterance of {len(text):,} characters, but a turn may have at "
            f"most {MOST_CHARACTERS:,}: {shorten_text(text, _SHOWN)!r}"
        )
    return text


def score_selection(
    game: Game, scenario: Scenario, selection: GoalSelection, who: str
) -> GameScores:
    """Check a selection and its scores. Return the scores.

    Raises:
        UserError: the selection is not legal, or a score is out of bounds.
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
                f"but scores must be from 0 to most_score, {game.most_score:g}"
            )
    return scores


def name_of(agent: object) -> str:
    """Return the name of an agent for reports: its attribute ``name``, or its class."""
    name = getattr(agent, "name", None)
    return name if isinstance(name, str) and name else type(agent).__name__


Talk = Sequence[TalkLine]
#: The lines of a talk so far as pairs: whether the target said it, and the text.
TalkMessages = Sequence[tuple[bool, str]]


class Closing(NamedTuple):
    """Whether an agent would make a selection right after several talks."""

    margin: np.ndarray  #: ``[talks]``: the logit of selecting minus the highest other logit.
    chance: np.ndarray  #: ``[talks]``: the probability of selecting, from 0 to 1.


@runtime_checkable
class TransparentAgent(Protocol):
    """An agent that shows its predictions, which white-box attacks need.

    No method changes the agent's state. All talks are seen from the agent's side.
    """

    blank: str  #: The word for an empty place.

    def closing(self, goal: Goal, talks: Sequence[Talk]) -> Closing:
        """Return whether the agent would select at once after each talk."""
        ...

    def selection_scores(
        self, goal: Goal, talks: Sequence[Talk], selections: Sequence[GoalSelection]
    ) -> np.ndarray:
        """Return the score of each selection after each talk. Likelier selections score higher."""
        ...

    def answers(self, goal: Goal, talks: Sequence[Talk]) -> list[str | None]:
        """Return the agent's most likely next line after each talk. ``None`` ends a talk."""
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
        """Return for each place of a line the words that help an attack most, by the gradient.

        Args:
            goal: the goal of the agent.
            talk: a talk after which the agent makes a selection.
            line: the index of the line to change.
            wanted: which of the ``selections`` the adversary wants.
            selections: the possible selections.
            most: the maximum number of words for each place.
        """
        ...


@runtime_checkable
class DrawingAgent(Protocol):
    """An agent whose answers are random, and that shows several of them."""

    def drawn_answers(
        self, goal: Goal, talks: Sequence[Talk], count: int
    ) -> list[list[str | None]]:
        """Draw ``count`` next lines after each talk. ``None`` ends a talk.

        The same arguments must give the same lines.
        """
        ...


@runtime_checkable
class FluencyModel(Protocol):
    """A language model of one side. It measures how unusual the side's utterances are."""

    def surprise(
        self, goal: Goal, talk: Talk, utterances: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Return for each utterance its surprise in nats and its number of words.

        The utterance is taken as the next line of this side. ``talk`` is seen from this side. The
        perplexity is ``exp(nats / words)``.
        """
        ...


#: The end of a talk, from the view of the agent under test.
_CLOSE: Final = TalkLine(mine=False, text="", closes=True)


@dataclass(frozen=True)
class TargetView:
    """The predictions of a transparent agent in one scenario, for utterances of the adversary."""

    agent: TransparentAgent
    game: Game
    scenario: Scenario

    @cached_property
    def selections(self) -> tuple[GoalSelection, ...]:
        """The selections that the agent may make."""
        return tuple(self.game.selections(self.scenario))

    @cached_property
    def advantages(self) -> np.ndarray:
        """The adversary's score minus the agent's score for each selection: ``[selections]``."""
        scores = (self.game.scores(self.scenario, one) for one in self.selections)
        return np.array([found.advantage for found in scores])

    @cached_property
    def wanted(self) -> np.ndarray:
        """Whether each selection gives the adversary more than the agent: ``[selections]``."""
        return self.advantages > 0

    @property
    def _goal(self) -> dict[str, Any]:
        return self.scenario.goal_for(target=True)

    def talks(
        self, said: TalkMessages, utterances: Sequence[str], *, closed: bool = False
    ) -> list[Talk]:
        """Return the talk after each utterance of the adversary, from the view of the agent."""
        before = [TalkLine(target, text) for target, text in said]
        end = [_CLOSE] if closed else []
        return [[*before, TalkLine(mine=False, text=text), *end] for text in utterances]

    def closing(self, said: TalkMessages, utterances: Sequence[str]) -> Closing:
        """Return whether the agent would select at once after each utterance."""
        return self.agent.closing(self._goal, self.talks(said, utterances))

    def scores(self, talks: Sequence[Talk]) -> np.ndarray:
        """Return how likely each selection is at the end of each talk: ``[talks, selections]``."""
        return self.agent.selection_scores(self._goal, talks, self.selections)

    def answers(self, said: TalkMessages, utterances: Sequence[str]) -> list[str | None]:
        """Return the agent's likeliest answer to each utterance. ``None`` ends a talk."""
        return self.agent.answers(self._goal, self.talks(said, utterances))

    def drawn_answers(
        self, said: TalkMessages, utterances: Sequence[str], count: int
    ) -> list[list[str | None]]:
        """Return ``count`` drawn answers of the agent to each utterance. ``None`` ends a talk.

        Raises:
            UserError: the agent cannot draw answers.
        """
        if not isinstance(self.agent, DrawingAgent):
            raise UserError(
                f"the attack needs drawn answers, and {name_of(self.agent)!r} gives none: add "
                "drawn_answers(goal, talks, count), or let the attack assume the likeliest answer"
            )
        talks = self.talks(said, utterances)
        return self.agent.drawn_answers(self._goal, talks, count)

    def answered(
        self, said: TalkMessages, utterances: Sequence[str], answers: Sequence[str | None]
    ) -> list[Talk]:
        """Return the talks that end with each utterance and the agent's answer.

        If the agent answers, the adversary then closes the talk. If the agent selects, the talk
        ends.
        """
        found: list[Talk] = []
        for talk, answer in zip(self.talks(said, utterances), answers, strict=True):
            more = [] if answer is None else [TalkLine(mine=True, text=answer), _CLOSE]
            found.append([*talk, *more])
        return found

    def closed(self, said: TalkMessages) -> np.ndarray:
        """Return how likely each selection is if the talk is closed now: ``[selections]``."""
        talk = [*(TalkLine(target, text) for target, text in said), _CLOSE]
        found: np.ndarray = self.scores([talk])[0]
        return found

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Return a loss per talk. It is negative if the agent makes a selection the attack wants.

        The loss is the highest score of an unwanted selection minus the highest score of a wanted
        one. This is formula 6 of the source, but over all unwanted selections instead of only the
        agent's first choice. For example, let the scores be 1, 3 and 2, let the first selection be
        the agent's first choice, and let only the second be wanted. Then the source has 1 - 3 = -2,
        and this method has 2 - 3 = -1. The loss is infinite if no selection is wanted, and minus
        infinite if all are. The shape is ``[talks]``.
        """
        wanted = self.wanted
        none = np.full(len(scores), np.inf)
        bad = scores[:, ~wanted].max(1) if not wanted.all() else -none
        good = scores[:, wanted].max(1) if wanted.any() else -none
        found: np.ndarray = np.where(np.isinf(good), none, bad - good)
        return found

    def replacements(self, talk: Talk, line: int, most: int) -> list[list[str]]:
        """Return for each place of a line the words that help an attack most, by the gradient."""
        if self.wanted.all() or not self.wanted.any():
            return [[] for _ in talk[line].text.split()]
        wanted = self.wanted.tolist()
        goal = self._goal
        return self.agent.replacements(goal, talk, line, wanted, self.selections, most)


_RESAMPLES: Final = 2_000
_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class GameInterval:
    """A figure with its approximate 95 % confidence interval over games."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Return the figure and its interval as a text for reports."""
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True)
class GameFigures:
    """The figures of several games. Scores are from 0 to the game's maximum."""

    games: int
    adversary: float  #: Mean score.
    target: float  #: Mean score.
    advantage: GameInterval  #: The adversary's score minus the target's.
    positive: GameInterval  #: Share of games in which the adversary scores more.
    agreement: float  #: Share of games that ended with an agreement.

    @classmethod
    def of(cls, scores: Sequence[GameScores], agreed: int | None = None) -> GameFigures:
        """Compute the figures of at least one game.

        ``agreed`` is the number of games with an agreement, by default all. If two agents select
        separately and do not agree, both score 0.
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
    """Return a mean and its percentile bootstrap interval over games.

    The random numbers depend only on the number of games, so the bounds are reproducible.
    """
    count = len(values)
    rng = stream(0, "games", count)
    means = np.array([values[rng.integers(0, count, count)].mean() for _ in range(_RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return GameInterval(float(values.mean()), float(low), float(high))


def share_interval(positive: int, count: int) -> GameInterval:
    """Return a share and its Wilson interval."""
    share = positive / count
    scale = 1 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    # At 0 and at 1, set the bound exactly, since rounding would miss it.
    low = 0.0 if positive == 0 else middle - half
    high = 1.0 if positive == count else middle + half
    return GameInterval(share, low, high)


def talk_of(said: TalkMessages) -> list[TalkLine]:
    """Return the lines so far as a talk, seen from the adversary's side."""
    return [TalkLine(not target, text) for target, text in said]


@dataclass(frozen=True)
class Fluency:
    """A language model of the adversary's side, with a limit of perplexity.

    If there is no model, nothing is measured. If there is no limit, no utterance is excluded.
    """

    model: FluencyModel | None = None
    goal: Goal | None = None  #: The goal of the adversary.
    most: float | None = None  #: Maximum perplexity of an utterance, including its end.

    def of(self, said: TalkMessages, utterances: Sequence[str]) -> list[str]:
        """Return the utterances whose perplexity is within the limit, in order."""
        if self.model is None or self.most is None or not utterances:
            return list(utterances)
        found = self.model.surprise(self.goal or {}, talk_of(said), utterances)
        return [
            text
            for text, (nats, words) in zip(utterances, found, strict=True)
            if math.exp(nats / words) <= self.most
        ]

    def surprise(self, said: TalkMessages) -> tuple[float, int]:
        """Return the total surprise in nats, and the number of words, of the adversary's lines."""
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
    """Return ``exp(nats / words)``, or ``None`` if there are no words."""
    return math.exp(nats / words) if words else None
