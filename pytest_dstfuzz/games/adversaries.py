"""Adversaries, which talk an agent into acting against its own goal.

Black-box adversaries see only the agent's utterances. White-box adversaries also use the agent's
predictions. The adversary `lookahead` uses them to search for the best line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar, Final, NamedTuple

import numpy as np

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.games.game import (
    Fluency,
    GoalAgent,
    GoalSelection,
    Scenario,
    Talk,
    TalkMessages,
    TargetView,
    TransparentAgent,
    check_utterance,
    name_of,
    talk_of,
)
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame, Script, Speaker
from pytest_dstfuzz.seeding import stream

#: Maximum number of replaced words in an utterance, as in the source.
REPLACED: Final = 2
#: Number of words to try for each place, the best by the gradient; the source tries all words.
SHORTLIST: Final = 48
#: Lower losses count as equally good (kappa of the source, which gives no value).
CONFIDENCE: Final = 5.0
#: Added to the loss of an utterance after which the agent would not select at once.
_UNMET: Final = 1e3
#: A higher loss means that the agent would not select at once.
_MET: Final = _UNMET / 2


@dataclass(frozen=True)
class AttackedUtterance:
    """An utterance of the adversary after an attack has rewritten it."""

    text: str
    loss: float  #: Negative if the agent is expected to make a selection that the adversary wants.
    acts: bool = True  #: Whether it satisfies the constraint of the attack.


#: Utterances -> their losses.
Losses = Callable[[Sequence[str]], np.ndarray]
#: Utterances -> talks that end with them, or with a likely continuation.
Talks = Callable[[Sequence[str]], Sequence[Talk]]


class WhiteBoxAttack:
    """Rewrites the adversary's next utterance in a scenario, with the agent's own predictions."""

    def __init__(
        self, view: TargetView, fluency: Fluency, shortlist: int = SHORTLIST, draws: int = 0
    ) -> None:
        """Store the settings.

        Args:
            view: the predictions of the agent.
            fluency: the filter of utterances.
            shortlist: the number of words to try for each place.
            draws: the number of drawn answers over which the preemptive attack averages its loss.
                0 means that it assumes the likeliest answer.
        """
        self._view, self._fluency, self._shortlist = view, fluency, shortlist
        self._draws = draws

    def reactive(self, said: TalkMessages, text: str) -> AttackedUtterance:
        """Rewrite an utterance so that the agent ends the talk at once with a bad selection."""
        view = self._view

        def losses(utterances: Sequence[str]) -> np.ndarray:
            # Predict the selection only if the agent would select.
            found = _UNMET - view.closing(said, utterances).margin
            met = np.flatnonzero(found <= _UNMET)
            if len(met):
                talks = view.talks(said, [utterances[place] for place in met.tolist()])
                found[met] = self._loss(talks)
            return found

        found = self._rewritten(said, text, losses, partial(view.talks, said))
        # As in the source, use the rewritten utterance only if the agent would select at once.
        return found if found.loss <= _MET else AttackedUtterance(text, found.loss, acts=False)

    def unconstrained(self, said: TalkMessages, text: str) -> AttackedUtterance:
        """Rewrite an utterance so that the agent selects badly, if it selects at once.

        This is formula 6 of the source without formula 7, which requires that the agent selects.
        """
        return self._by_talks(said, text, partial(self._view.talks, said))

    def preemptive(self, said: TalkMessages, text: str) -> AttackedUtterance:
        """Rewrite an utterance so that the agent's answer leads to a bad selection.

        The attack assumes the agent's most likely answer, but the agent may give another one. With
        ``draws``, it uses the mean loss over drawn answers instead. The published code does so if
        the loss for a first drawn answer is negative.
        """
        view, draws = self._view, self._draws

        def talks(utterances: Sequence[str]) -> list[Talk]:
            return view.answered(said, utterances, view.answers(said, utterances))

        def mean_losses(utterances: Sequence[str]) -> np.ndarray:
            answers = view.drawn_answers(said, utterances, draws)
            asked = [text for text in utterances for _ in range(draws)]
            found = self._loss(view.answered(said, asked, [*chain.from_iterable(answers)]))
            means: np.ndarray = found.reshape(len(utterances), draws).mean(1)
            return means

        if draws:
            return self._rewritten(said, text, mean_losses, talks)
        return self._by_talks(said, text, talks)

    def _loss(self, talks: Sequence[Talk]) -> np.ndarray:
        found: np.ndarray = np.maximum(self._view.losses(self._view.scores(talks)), -CONFIDENCE)
        return found

    def _by_talks(self, said: TalkMessages, text: str, talks: Talks) -> AttackedUtterance:
        """Rewrite an utterance so that the agent's selection at the end of the talk is bad."""
        return self._rewritten(said, text, lambda utterances: self._loss(talks(utterances)), talks)

    def _rewritten(
        self, said: TalkMessages, text: str, losses: Losses, talks: Talks
    ) -> AttackedUtterance:
        rewriter = Rewriter(self._view, self._fluency, self._shortlist)
        return rewriter.rewritten(said, text, losses, talks)


@dataclass(frozen=True)
class Rewriter:
    """Replaces words of an utterance greedily, to minimise any loss."""

    view: TargetView  #: The attacked agent.
    fluency: Fluency  #: The filter of utterances.
    shortlist: int = SHORTLIST  #: The number of words to try for each place.

    def rewritten(
        self,
        said: TalkMessages,
        text: str,
        losses: Losses,
        talks: Talks,
        enough: float = -CONFIDENCE,
    ) -> AttackedUtterance:
        """Replace at most `REPLACED` words of an utterance, one by one.

        Args:
            said: the talk so far.
            text: the utterance.
            losses: returns the loss to minimise for each utterance.
            talks: returns the talks. Their gradient proposes replacement words.
            enough: the search stops at this loss.
        """
        best = AttackedUtterance(text, float(losses([text])[0]))
        # Compute once: the gradient is expensive, and one replaced word hardly changes it.
        offered: list[list[str]] = []
        if best.loss > enough:
            (talk,) = talks([text])
            offered = self.view.replacements(talk, len(said), self.shortlist)
        for _ in range(REPLACED):
            if best.loss <= enough:
                break
            words = best.text.split()
            spared = [_with(words, at, self.view.agent.blank) for at in range(len(words))]
            place = int(losses(spared).argmin())
            others = [word for word in offered[place] if word != words[place]]
            tries = self.fluency.of(said, [_with(words, place, word) for word in others])
            if not tries:
                break
            found = losses(tries)
            least = int(found.argmin())
            if found[least] >= best.loss:
                break
            best = AttackedUtterance(tries[least], float(found[least]))
        return best


def _with(words: Sequence[str], place: int, word: str) -> str:
    return " ".join([*words[:place], word, *words[place + 1 :]])


#: Discount for earlier words, as in the source: later words count more.
_DISCOUNT: Final = 0.95
_RATE: Final = 2.0
#: Maximum number of replaced words in an utterance, as in the source.
_REPLACED: Final = 2
#: Maximum number of winning last lines to keep.
_KEPT: Final = 10


class GameAdversary(ABC):
    """Base class of strategies against the agent. An adversary wants the opposite of its goal.

    `learn` is called once, then `script` for each scenario of the report. `script` may first play
    test games in its scenario, within its budget.
    """

    name: ClassVar[str]
    about: ClassVar[str]  #: A description in one line.
    learns: ClassVar[bool] = True
    searches: ClassVar[bool] = True

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:  # noqa: B027 - optional
        """Learn from at most ``budget`` games in scenarios that are not in the report."""

    @abstractmethod
    def script(self, scenario: Scenario, budget: int) -> Script:
        """Return the lines to say in a scenario.

        Play at most ``budget`` games there to find them.
        """

    def rng(self, *names: str | int) -> np.random.Generator:
        """Return the random generator of a named stream.

        The generator does not depend on the order of calls.
        """
        return stream(self.arena.seed, "game", self.name, *names)

    def plain(self, scenario: Scenario, rng: np.random.Generator) -> Script:
        """Return random lines of the game, at least one, as a baseline."""
        lines = self.arena.lines(scenario)
        count = int(rng.integers(1, self.arena.most_lines + 1))
        return tuple(lines[place] for place in rng.integers(0, len(lines), count))


class PlainAdversary(GameAdversary):
    """Says random lines of the game: the baseline."""

    name = "plain"
    about = "random lines of the game"
    learns = searches = False

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - no search
        """Return random lines of the game."""
        return self.plain(scenario, self.rng(scenario.id))


class TransferAdversary(GameAdversary):
    """Says a random line, then a line that won games in other scenarios."""

    name = "transfer"
    about = "a random line, then a line that won in other scenarios"
    searches = False
    _won: tuple[int, ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Collect the last lines of random games, ranked by mean advantage."""
        gains: dict[int, list[float]] = {}
        for number in range(budget):
            scenario = scenarios[number % len(scenarios)]
            rng = self.rng("learn", number)
            played = self.arena.play(scenario, self.plain(scenario, rng))
            # Lines after the agent's selection were not said, so they did not contribute.
            if played.script:
                place = self.arena.lines(scenario).index(played.script[-1])
                gains.setdefault(place, []).append(played.advantage)
        means = {place: sum(found) / len(found) for place, found in gains.items()}
        order = sorted(means, key=lambda place: (-means[place], place))
        self._won = tuple(order[: min(_KEPT, max(1, len(order) // 3))])

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - no search
        """Return a random line and a line that won in other scenarios."""
        rng = self.rng(scenario.id)
        first = self.plain(scenario, rng)[:1]
        if not self._won:
            return first
        return (*first, self.arena.lines(scenario)[int(rng.choice(self._won))])


class ReplacingAdversary(GameAdversary):
    """Replaces up to two words of the last line, at the places that matter most."""

    name = "replace"
    about = "greedily replaces up to two words of the last line"
    learns = False

    def script(self, scenario: Scenario, budget: int) -> Script:
        """Try words in random lines within the budget, and return the best lines."""
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
    """Learns by policy gradient which line to say in each turn.

    The reward is the advantage: the adversary's score minus the agent's. In each turn, it can say a
    line of the game, repeat the last line, or close the talk.
    """

    name = "learned"
    about = "lines chosen by a policy that is trained on the advantage (policy gradient)"
    searches = False
    _logits: np.ndarray | None = None

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Play games, and make actions more likely if their reward is above the mean so far."""
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

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - no search
        """Return lines drawn from the policy."""
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
            if not script:  # At first, there is nothing to repeat, and closing is not allowed.
                chances[again:] = 0.0
                chances /= chances.sum()
            action = int(rng.choice(len(chances), p=chances))
            actions.append(action)
            if action == close:
                break
            script.append(script[-1] if action == again else lines[action])
        return actions, tuple(script)


class ClimbingAdversary(GameAdversary):
    """Changes its lines step by step. Keeps a change if the result is at least as good.

    A change may also repeat a line until the end.
    """

    name = "climb"
    about = "hill climbing over the lines, their positions and their repetitions"
    _start: tuple[tuple[int, ...], ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Search for good lines in other scenarios, and store them as starting points."""
        share = max(1, budget // len(scenarios))
        found: list[tuple[float, tuple[int, ...]]] = []
        for scenario in scenarios[:budget]:
            best, places = self._climb(scenario, share, self.rng("learn", scenario.id))
            found.append((best.advantage, places))
        found.sort(key=lambda item: (-item[0], len(item[1]), item[1]))
        self._start = tuple(dict.fromkeys(places for _, places in found))[:3]

    def script(self, scenario: Scenario, budget: int) -> Script:
        """Return the best lines of all attempts in this scenario."""
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
        # A change may repeat an earlier script, which costs no game.
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
        """Return the indices of the lines with one change.

        The change replaces, adds or drops a line, or repeats a line until the end.
        """
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


#: Name -> adversary whose lines do not depend on answers, in the order of reports.
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


#: Number of lines before an attack at a fixed turn, as in the source.
AFTER: Final = 2
#: Number of lines before a sentence that won elsewhere, as in the source.
_TRANSFERRED_AFTER: Final = 3
#: Share of won games whose last lines are kept.
_BEST: Final = 1 / 3


class HearingAdversary(GameAdversary):
    """An adversary that chooses each line after hearing the agent's answers."""

    learns = False
    searches = False

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        #: Ids of the scenarios in which it attacked, instead of only passing on its voice. An
        #: attack may also leave the voice's line unchanged.
        self.struck: set[str] = set()

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - no search
        """Play a game, and return the adversary's lines."""
        return self.arena.hear(scenario, self.speaker(scenario)).script

    @abstractmethod
    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""

    def voice(self, scenario: Scenario, *, teaches: bool = False) -> Speaker:
        """Return a function that says lines without an attack.

        The voice is an agent that plays the adversary's side. It says the lines, or the teacher
        does if ``teaches`` is true. Without such an agent, the lines are random lines of the game.
        """
        side = self.arena.side
        agent = (side.teacher or side.voice) if teaches else side.voice
        if agent is None:
            rng = self.rng(scenario.id, "voice")
            lines = self.arena.lines(scenario)
            return lambda _: lines[int(rng.integers(len(lines)))]
        agent.start(scenario.goal_for(target=False))

        who = f"the voice {name_of(agent)!r}, in scenario {scenario.id!r},"

        def speak(said: TalkMessages) -> str | None:
            text = agent.reply(talk_of(said))
            return None if isinstance(text, GoalSelection) else check_utterance(text, who)

        return speak


class VoicedAdversary(HearingAdversary):
    """Says the lines of its voice, an agent that plays the adversary's side.

    The voice may itself be a trained attack.
    """

    name = "voice"
    about = (
        "the lines of its voice (an agent for the adversary's side), until the voice closes the "
        "talk"
    )

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        refuse_without_voice(self, arena.side.voice)

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the voice's lines."""
        return self.voice(scenario)


class HandedOnAdversary(HearingAdversary):
    """Says some lines of its voice, then a line that won in other scenarios."""

    name = "handed-on"
    about = "three lines of its voice, then a last line that won in other scenarios"
    learns = True
    _won: tuple[str, ...] = ()

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        refuse_without_voice(self, arena.side.voice or arena.side.teacher)

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Collect the last lines of the teacher's best games."""
        self._won = winning_lines(self, scenarios, budget)

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""
        voice, rng, done = self.voice(scenario), self.rng(scenario.id), False

        def speak(said: TalkMessages) -> str | None:
            nonlocal done
            if len(said) < _TRANSFERRED_AFTER or not self._won or done:
                return voice(said)
            done = True
            self.struck.add(scenario.id)
            return self._won[int(rng.integers(len(self._won)))]

        return speak


def refuse_without_voice(adversary: HearingAdversary, voice: object) -> None:
    """Check that an adversary has a voice. A voice is an agent for its side.

    Raises:
        UserError: the adversary has no voice.
    """
    if voice is None:
        raise UserError(
            f"the adversary {adversary.name!r} needs a voice: pass side=AdversarySide(voice=...), "
            "an agent that plays the adversary's side"
        )


def winning_lines(
    adversary: HearingAdversary, scenarios: Sequence[Scenario], budget: int
) -> tuple[str, ...]:
    """Return the last lines of the games that the teacher won, by falling advantage."""
    found: list[tuple[float, str]] = []
    for scenario in scenarios[:budget]:
        played = adversary.arena.hear(scenario, adversary.voice(scenario, teaches=True))
        if played.advantage > 0 and played.script:
            found.append((played.advantage, played.script[-1]))
    found.sort(key=lambda one: (-one[0], one[1]))
    kept = found[: max(1, round(len(found) * _BEST))]
    return tuple(dict.fromkeys(line for _, line in kept))


class LookingAdversary(HearingAdversary):
    """An adversary that uses the agent's own predictions (white-box)."""

    shortlist: int = SHORTLIST  #: The number of words to try for each place of a line.
    draws: int = 0  #: See `WhiteBoxAttack`.

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        if not isinstance(arena.agent, TransparentAgent):
            raise UserError(
                f"the adversary {self.name!r} needs an agent that shows its predictions (see "
                f"TransparentAgent), and {name_of(arena.agent)!r} does not: use 'replace', which "
                "rewrites words without predictions"
            )
        self._agent = arena.agent

    def view(self, scenario: Scenario) -> TargetView:
        """Return the predictions of the agent in one scenario."""
        return TargetView(self._agent, self.arena.game, scenario)

    def attack(self, scenario: Scenario) -> WhiteBoxAttack:
        """Return the attack that rewrites lines in one scenario."""
        return WhiteBoxAttack(
            self.view(scenario), self.arena.fluency(scenario), self.shortlist, self.draws
        )


class ReactiveAdversary(LookingAdversary):
    """Rewrites its line in a fixed turn, so that the agent ends the talk with a bad selection."""

    name = "reactive"
    about = (
        "lines in the style of its voice; one of them is rewritten so that the agent ends the talk "
        "at once with a bad selection"
    )
    after: int = AFTER  #: The number of lines of both sides before the attack.

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""
        voice, attack, done = self.voice(scenario), self.attack(scenario), False

        def speak(said: TalkMessages) -> str | None:
            nonlocal done
            text = voice(said)
            if done or text is None or len(said) < self.after:
                return text
            done = True
            found = attack.reactive(said, text)
            if found.acts:
                self.struck.add(scenario.id)
            return found.text

        return speak


class PreemptiveAdversary(LookingAdversary):
    """Rewrites its line in a fixed turn, so that the agent asks for less. Then closes the talk."""

    name = "preemptive"
    about = (
        "lines in the style of its voice; one of them is rewritten so that the agent asks for "
        "less, and then the adversary ends the talk"
    )
    after: int = AFTER

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""
        voice, attack, done = self.voice(scenario), self.attack(scenario), False

        def speak(said: TalkMessages) -> str | None:
            nonlocal done
            if done:
                return None
            text = voice(said)
            if text is None or len(said) < self.after:
                return text
            done = True
            self.struck.add(scenario.id)
            return attack.preemptive(said, text).text

        return speak


class DelayedAdversary(LookingAdversary):
    """Attacks when one of the two attacks is expected to win (algorithm 1 of the source)."""

    name = "delayed"
    about = (
        "the reactive attack if it is expected to win, else the preemptive attack if that one is, "
        "else a line of its voice (RA+PA+DA)"
    )

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""
        voice, attack = self.voice(scenario), self.attack(scenario)
        rng, closes = self.rng(scenario.id), False

        def speak(said: TalkMessages) -> str | None:
            nonlocal closes
            if closes:
                return None
            text = voice(said)
            if text is None:
                return None
            found = attack.reactive(said, text)
            if found.loss < 0:
                self.struck.add(scenario.id)
                return found.text
            found = attack.preemptive(said, text)
            if found.loss < 0:
                self.struck.add(scenario.id)
                closes = True
                return found.text
            return self.otherwise(text, rng)

        return speak

    def otherwise(self, text: str, rng: np.random.Generator) -> str:  # noqa: ARG002 - a subclass draws
        """Return the line to say if no attack is expected to win: the voice's own line."""
        return text


class TransferredAdversary(DelayedAdversary):
    """Like `DelayedAdversary`, but says a line that won elsewhere if no attack would win."""

    name = "transferred"
    about = (
        "as delayed, but with a line that won in other scenarios if neither attack is expected to "
        "win (RA+PA+TA)"
    )
    learns = True
    _won: tuple[str, ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Collect the last lines of the teacher's best games."""
        self._won = winning_lines(self, scenarios, budget)

    def otherwise(self, text: str, rng: np.random.Generator) -> str:
        """Return a line that won in other scenarios, if there is one."""
        return self._won[int(rng.integers(len(self._won)))] if self._won else text


#: Name -> adversary that needs a transparent agent, in the order of reports.
LOOKING: Final[dict[str, type[LookingAdversary]]] = {
    kind.name: kind
    for kind in (ReactiveAdversary, PreemptiveAdversary, DelayedAdversary, TransferredAdversary)
}
HEARING: Final[dict[str, type[HearingAdversary]]] = {
    kind.name: kind for kind in (VoicedAdversary, HandedOnAdversary)
}


#: Minimum number of lines before it closes a talk, since a shorter talk shows nothing.
_TALKED: Final = 2
#: If the best value is below this share of the maximum score, words are replaced in this number of
#: the best lines.
_POOR: Final = 0.5
_REWRITTEN: Final = 2
#: Number of best lines to search a second line for.
_FOLLOWED: Final = 6


class LookaheadAdversary(LookingAdversary):
    """Says the line with the highest expected advantage, or closes the talk if that is better.

    The expectation includes the chance that the agent ends the talk at once. If the agent answers
    instead, its most likely answer is assumed. Then the adversary may close the talk or say one
    more line.
    """

    name = "lookahead"
    about = (
        "the line with the highest expected score, among the game's lines and those of its voice"
    )

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the function that says the adversary's lines in one game."""
        view, voice = self.view(scenario), self.voice(scenario)
        fluency, lines = self.arena.fluency(scenario), self.arena.lines(scenario)
        poor = _POOR * self.arena.game.most_score

        def speak(said: TalkMessages) -> str | None:
            own = voice(said)
            every = list(dict.fromkeys([*lines, *([] if own is None else [own])]))
            pool = fluency.of(said, every)
            if not pool:
                return own
            values = self.foreseen(view, said, pool)
            order = np.argsort(-values, kind="stable")
            best, value = pool[int(order[0])], float(values[order[0]])
            if value < poor:
                for place in order[:_REWRITTEN].tolist():
                    text, found = _improved(view, fluency, said, pool[place])
                    if found > value:
                        best, value = text, found
            if len(said) >= _TALKED and _closing_now(view, said) >= value:
                return None
            self.struck.add(scenario.id)
            return best

        return speak

    def foreseen(self, view: TargetView, said: TalkMessages, pool: Sequence[str]) -> np.ndarray:
        """Return the expected advantage of each line, with at most one line after it: ``[pool]``.

        To save time, a second line is searched only for the best first lines.
        """
        chance, at_once, later, answers = _outcomes(view, said, pool)
        values: np.ndarray = chance * at_once + (1 - chance) * later
        if len(said) + 3 >= self.arena.game.most_turns:
            return values
        for place in np.argsort(-values, kind="stable")[:_FOLLOWED].tolist():
            answer = answers[place]
            if answer is not None and chance[place] < 1:
                talk = [*said, (False, pool[place]), (True, answer)]
                more = max(later[place], float(expect_advantage(view, talk, pool).max()))
                values[place] = chance[place] * at_once[place] + (1 - chance[place]) * more
        return values


def expect_advantage(view: TargetView, said: TalkMessages, utterances: Sequence[str]) -> np.ndarray:
    """Return the expected advantage of each utterance: ``[utterances]``.

    The talk is assumed to end after the agent's answer.
    """
    chance, at_once, later, _ = _outcomes(view, said, utterances)
    found: np.ndarray = chance * at_once + (1 - chance) * later
    return found


class _Outcomes(NamedTuple):
    """The possible outcomes of several utterances, with one number per utterance in each field."""

    chance: np.ndarray  #: The probability that the agent selects at once.
    at_once: np.ndarray  #: The advantage if it selects at once.
    later: np.ndarray  #: The advantage if it answers, and the talk is closed.
    answers: list[str | None]


def _outcomes(view: TargetView, said: TalkMessages, utterances: Sequence[str]) -> _Outcomes:
    answers = view.answers(said, utterances)
    talks = [*view.talks(said, utterances), *view.answered(said, utterances, answers)]
    found = view.advantages[view.scores(talks).argmax(1)]
    count = len(utterances)
    return _Outcomes(view.closing(said, utterances).chance, found[:count], found[count:], answers)


def _improved(
    view: TargetView, fluency: Fluency, said: TalkMessages, text: str
) -> tuple[str, float]:
    """Return an utterance with at most two replaced words, and its expected advantage."""

    def losses(utterances: Sequence[str]) -> np.ndarray:
        return -expect_advantage(view, said, utterances)

    talks = partial(view.talks, said)
    found = Rewriter(view, fluency).rewritten(said, text, losses, talks, -view.game.most_score)
    return found.text, -found.loss


def _closing_now(view: TargetView, said: TalkMessages) -> float:
    return float(view.advantages[view.closed(said).argmax()])


#: Name -> adversary, in the order of reports.
ADVERSARIES: Final[dict[str, type[GameAdversary]]] = {
    **SCRIPTED,
    **HEARING,
    **LOOKING,
    LookaheadAdversary.name: LookaheadAdversary,
}


def playing_against(agent: GoalAgent, side: AdversarySide) -> tuple[str, ...]:
    """Return the names of all adversaries that can play against an agent.

    Some adversaries need an agent that shows its predictions. Others need a voice, which is an
    agent for their side.
    """
    names = list(SCRIPTED)
    if side.voice is not None:
        names += HEARING
    if isinstance(agent, TransparentAgent):
        names += [*LOOKING, LookaheadAdversary.name]
    return tuple(names)


def adversary_by_name(name: str, arena: Arena) -> GameAdversary:
    """Return the adversary with this name.

    Raises:
        UserError: the name is unknown, or the adversary lacks a voice or a transparent agent.
    """
    if name not in ADVERSARIES:
        raise unknown_name("adversary", name, ADVERSARIES)
    return ADVERSARIES[name](arena)
