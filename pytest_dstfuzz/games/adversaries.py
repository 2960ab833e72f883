"""Who talks an agent out of its goal, by playing alone: nothing of the agent is known.

An adversary is a search: it has a budget of games, half of them to learn on scenarios of their
own, the other half shared among the scenarios that are reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from pytest_dstfuzz.games.game import Scenario
from pytest_dstfuzz.games.playing import Arena, PlayedGame, Script
from pytest_dstfuzz.seeding import stream

#: Of later words, as in the source: what is said last counts most.
_DISCOUNT: Final = 0.95
_RATE: Final = 2.0
#: Words of an utterance that are replaced at most, as in the source.
_REPLACED: Final = 2
#: Winning last lines that are kept.
_KEPT: Final = 10


class GameAdversary(ABC):
    """One way to talk an agent out of its goal.

    `learn` is called once, then `script` for each scenario that is reported; what is said there
    may have been tried in that scenario within the budget.
    """

    name: ClassVar[str]
    about: ClassVar[str]  #: What it does, in one line.
    learns: ClassVar[bool] = True
    searches: ClassVar[bool] = True

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:  # noqa: B027 - not all learn
        """Play at most ``budget`` games in scenarios that are not reported."""

    @abstractmethod
    def script(self, scenario: Scenario, budget: int) -> Script:
        """Return what to say, after at most ``budget`` games in this scenario."""

    def rng(self, *names: str | int) -> np.random.Generator:
        """Return a stream of random numbers; its name hangs on no order."""
        return stream(self.arena.seed, "game", self.name, *names)

    def plain(self, scenario: Scenario, rng: np.random.Generator) -> Script:
        """Return lines of the game by chance, one at least."""
        lines = self.arena.lines(scenario)
        count = int(rng.integers(1, self.arena.most_lines + 1))
        return tuple(lines[place] for place in rng.integers(0, len(lines), count))


class PlainAdversary(GameAdversary):
    """Says lines of the game by chance: what the others are measured by."""

    name = "plain"
    about = "lines of the game, by chance"
    learns = searches = False

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - it searches nothing
        """Return lines by chance."""
        return self.plain(scenario, self.rng(scenario.id))


class TransferAdversary(GameAdversary):
    """Says in the end what won in other scenarios."""

    name = "transfer"
    about = "last lines that won in other scenarios, after a plain one"
    searches = False
    _won: tuple[int, ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Gather the lines with which games ended, by their mean advantage."""
        gains: dict[int, list[float]] = {}
        for number in range(budget):
            scenario = scenarios[number % len(scenarios)]
            rng = self.rng("learn", number)
            played = self.arena.play(scenario, self.plain(scenario, rng))
            # What was left unsaid when the agent selected won nothing.
            if played.script:
                place = self.arena.lines(scenario).index(played.script[-1])
                gains.setdefault(place, []).append(played.advantage)
        means = {place: sum(found) / len(found) for place, found in gains.items()}
        order = sorted(means, key=lambda place: (-means[place], place))
        self._won = tuple(order[: min(_KEPT, max(1, len(order) // 3))])

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - it searches nothing
        """Return a plain line and one that won."""
        rng = self.rng(scenario.id)
        first = self.plain(scenario, rng)[:1]
        if not self._won:
            return first
        return (*first, self.arena.lines(scenario)[int(rng.choice(self._won))])


class ReplacingAdversary(GameAdversary):
    """Replaces up to two words of the last line, the one that matters most by the one that wins."""

    name = "replace"
    about = "up to two words of the last line replaced, greedily"
    learns = False

    def script(self, scenario: Scenario, budget: int) -> Script:
        """Return lines by chance with the last one rewritten, as far as the budget goes."""
        rng = self.rng(scenario.id)
        script = self.plain(scenario, rng)
        if budget < 1:
            return script
        words, fluency = self._words(scenario), self.arena.fluency(scenario)
        end = self.arena.games + budget
        best = self.arena.play(scenario, script)
        script = best.script or script
        for _ in range(_REPLACED):
            last = script[-1].split()
            left_out = {
                place: self._tried(scenario, script, last[:place] + last[place + 1 :])
                for place in range(len(last))
                if len(last) > 1 and self.arena.games < end
            }
            if not left_out:
                break
            place = max(left_out, key=lambda at: left_out[at].advantage)
            better = best
            for word in rng.permutation(words).tolist():
                if self.arena.games >= end:
                    break
                changed = [*last[:place], word, *last[place + 1 :]]
                if not fluency.of((), [" ".join(changed)]):
                    continue
                found = self._tried(scenario, script, changed)
                better = max(better, found, key=lambda played: played.advantage)
            if better is best:
                break
            best, script = better, better.script
        return script

    def _tried(self, scenario: Scenario, script: Script, last: Sequence[str]) -> PlayedGame:
        return self.arena.play(scenario, (*script[:-1], " ".join(last)))

    def _words(self, scenario: Scenario) -> list[str]:
        return sorted({word for line in self.arena.lines(scenario) for word in line.split()})


class LearnedAdversary(GameAdversary):
    """Learns by policy gradient which line to say at which turn; the reward is the advantage.

    What it may do at a turn: say a line of the game, say its last line again, or close the talk.
    """

    name = "learned"
    about = "lines chosen by a policy trained on the advantage (policy gradient)"
    searches = False
    _logits: np.ndarray | None = None

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Play, and move the policy towards what paid more than games did so far."""
        mean = 0.0
        for number in range(budget):
            scenario = scenarios[number % len(scenarios)]
            logits = self._policy(scenario)
            actions, script = self._drawn(scenario, self.rng("learn", number))
            played = self.arena.play(scenario, script)
            reward = played.advantage / self.arena.game.most_score
            said = actions[: len(played.script) + (len(played.script) == len(script))]
            for turn, action in enumerate(said):
                chances = _softmax(logits[turn])
                gain = _DISCOUNT ** (len(said) - 1 - turn) * (reward - mean)
                step = -chances
                step[action] += 1.0
                logits[turn] += _RATE * gain * step
            mean += (reward - mean) / (number + 1)

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - it searches nothing
        """Return what the policy says, drawn."""
        return self._drawn(scenario, self.rng(scenario.id))[1]

    def _policy(self, scenario: Scenario) -> np.ndarray:
        if self._logits is None:
            shape = (self.arena.most_lines, len(self.arena.lines(scenario)) + 2)
            self._logits = np.zeros(shape)
        return self._logits

    def _drawn(
        self, scenario: Scenario, rng: np.random.Generator
    ) -> tuple[list[int], tuple[str, ...]]:
        lines, logits = self.arena.lines(scenario), self._policy(scenario)
        again, close = len(lines), len(lines) + 1
        actions: list[int] = []
        script: list[str] = []
        for turn in range(len(logits)):
            chances = _softmax(logits[turn])
            if not script:  # There is nothing yet to say again, or to close.
                chances[again:] = 0.0
                chances /= chances.sum()
            action = int(rng.choice(len(chances), p=chances))
            actions.append(action)
            if action == close:
                break
            script.append(script[-1] if action == again else lines[action])
        return actions, tuple(script)


class ClimbingAdversary(GameAdversary):
    """Changes what it says step by step, and keeps what is at least as good; it may insist."""

    name = "climb"
    about = "hill climbing over what to say, when, and how often"
    _start: tuple[tuple[int, ...], ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Climb in other scenarios, and remember where that led."""
        share = max(1, budget // len(scenarios))
        found: list[tuple[float, tuple[int, ...]]] = []
        for scenario in scenarios[:budget]:
            best, places = self._climb(scenario, share, self.rng("learn", scenario.id))
            found.append((best.advantage, places))
        found.sort(key=lambda item: (-item[0], len(item[1]), item[1]))
        self._start = tuple(dict.fromkeys(places for _, places in found))[:3]

    def script(self, scenario: Scenario, budget: int) -> Script:
        """Return the best of what was tried."""
        rng = self.rng(scenario.id)
        if budget < 1:
            places = self._start[0] if self._start else self._random(scenario, rng)
            return self._said(scenario, places)
        return self._climb(scenario, budget, rng)[0].script

    def _climb(
        self, scenario: Scenario, budget: int, rng: np.random.Generator
    ) -> tuple[PlayedGame, tuple[int, ...]]:
        end = self.arena.games + budget
        start = self._start[:budget] or (self._random(scenario, rng),)
        tried = [(self.arena.play(scenario, self._said(scenario, one)), one) for one in start]
        best, places = max(tried, key=lambda item: item[0].advantage)
        # A change may lead to what was played before, which costs no game.
        for _ in range(4 * budget):
            if self.arena.games >= end or best.advantage >= self.arena.game.most_score:
                break
            step = self._changed(scenario, places, rng)
            played = self.arena.play(scenario, self._said(scenario, step))
            if played.advantage >= best.advantage:
                best, places = played, step
        return best, places

    def _said(self, scenario: Scenario, places: Sequence[int]) -> Script:
        lines = self.arena.lines(scenario)
        return tuple(lines[place] for place in places)

    def _random(self, scenario: Scenario, rng: np.random.Generator) -> tuple[int, ...]:
        return (int(rng.integers(len(self.arena.lines(scenario)))),)

    def _changed(
        self, scenario: Scenario, places: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[int, ...]:
        """Return places of lines with one change: another line, one more, one less, insisting."""
        most, new = self.arena.most_lines, self._random(scenario, rng)
        at = int(rng.integers(len(places)))
        kind = int(rng.integers(4))
        if kind == 0:
            return (*places[:at], *new, *places[at + 1 :])
        if kind == 1:
            return (*places[:at], *new, *places[at:])[:most]
        if kind == 2 and len(places) > 1:
            return (*places[:at], *places[at + 1 :])
        return places[:at] + (places[at],) * (most - at)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    chances: np.ndarray = weights / weights.sum()
    return chances


#: By name, in the order of reports: what they say hangs on no answer.
SCRIPTED: Final[dict[str, type[GameAdversary]]] = {
    kind.name: kind
    for kind in (
        PlainAdversary,
        TransferAdversary,
        ReplacingAdversary,
        LearnedAdversary,
        ClimbingAdversary,
    )
}
