"""Agents that let one look inside, and what an attack sees of one in the middle of a game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from pytest_dstfuzz.games.game import Game, Goal, GoalSelection, Scenario, TalkLine

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
