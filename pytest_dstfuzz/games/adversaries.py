"""Adversaries of an agent: by black box, by white box, and by looking ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, NamedTuple

import numpy as np

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.games.game import (
    Fluency,
    GoalAgent,
    GoalSelection,
    Said,
    Scenario,
    Talk,
    TargetView,
    TransparentAgent,
    check_utterance,
    name_of,
    talk_of,
)
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame, Script, Speaker
from pytest_dstfuzz.seeding import stream

#: Words of an utterance that are replaced at most, as in the source.
REPLACED: Final = 2
#: Words that are tried for each place, the best by the gradient; the source tries all of them.
SHORTLIST: Final = 48
#: Confidence: what is below minus this is as good (kappa of the source, which names no value).
CONFIDENCE: Final = 5.0
#: Added to the loss of an utterance after which the agent would not select at once.
_UNMET: Final = 1e3
#: Losses above this are of such utterances.
_MET: Final = _UNMET / 2


@dataclass(frozen=True)
class Rewritten:
    """An utterance as an attack changed it."""

    text: str
    loss: float  #: Below 0 the agent is expected to select what the adversary hopes for.
    acts: bool = True  #: Whether it meets what the attack is bound by.


#: Utterances -> their losses.
Losses = Callable[[Sequence[str]], np.ndarray]
#: Utterances -> the talks that end with them, or with what follows.
Talks = Callable[[Sequence[str]], Sequence[Talk]]


class WhiteBoxAttack:
    """Rewrites what is said next in one scenario."""

    def __init__(self, view: TargetView, fluency: Fluency, shortlist: int = SHORTLIST) -> None:
        self._view, self._fluency, self._shortlist = view, fluency, shortlist

    def reactive(self, said: Said, text: str) -> Rewritten:
        """Rewrite an utterance so that the agent selects at once, and badly."""
        view = self._view

        def losses(utterances: Sequence[str]) -> np.ndarray:
            # What the agent would select is looked at only where it would.
            found = _UNMET - view.closing(said, utterances).margin
            met = np.flatnonzero(found <= _UNMET)
            if len(met):
                talks = view.talks(said, [utterances[place] for place in met.tolist()])
                found[met] = self._loss(talks)
            return found

        found = self._rewritten(said, text, losses, partial(view.talks, said))
        # As in the source only what lets it select at once is said; a nearer miss is no attack.
        return found if found.loss <= _MET else Rewritten(text, found.loss, acts=False)

    def unconstrained(self, said: Said, text: str) -> Rewritten:
        """Rewrite an utterance so that the agent selects badly, if it selects at once.

        Formula 6 without the constraint of formula 7.
        """
        return self._by_talks(said, text, partial(self._view.talks, said))

    def preemptive(self, said: Said, text: str) -> Rewritten:
        """Rewrite an utterance so that the agent's answer to it leads to a bad selection.

        The answer is the likeliest one; the agent may draw another.
        """
        view = self._view

        def talks(utterances: Sequence[str]) -> list[Talk]:
            return view.answered(said, utterances, view.answers(said, utterances))

        return self._by_talks(said, text, talks)

    def _loss(self, talks: Sequence[Talk]) -> np.ndarray:
        found: np.ndarray = np.maximum(self._view.losses(self._view.scores(talks)), -CONFIDENCE)
        return found

    def _by_talks(self, said: Said, text: str, talks: Talks) -> Rewritten:
        """Rewrite an utterance by what the agent selects at the end of the talk with it."""
        return self._rewritten(said, text, lambda utterances: self._loss(talks(utterances)), talks)

    def _rewritten(self, said: Said, text: str, losses: Losses, talks: Talks) -> Rewritten:
        rewriter = Rewriter(self._view, self._fluency, self._shortlist)
        return rewriter.rewritten(said, text, losses, talks)


@dataclass(frozen=True)
class Rewriter:
    """Replaces words of an utterance greedily, for whatever loss."""

    view: TargetView  #: The agent that is attacked.
    fluency: Fluency  #: What may be said.
    shortlist: int = SHORTLIST  #: Words that are tried for each place.

    def rewritten(
        self,
        said: Said,
        text: str,
        losses: Losses,
        talks: Talks,
        enough: float = -CONFIDENCE,
    ) -> Rewritten:
        """Replace at most `REPLACED` words of an utterance, one after the other.

        Args:
            said: what was said before.
            text: the utterance.
            losses: what is lessened.
            talks: returns the talks in which the gradient says which words help.
            enough: a loss at which nothing more is tried.
        """
        best = Rewritten(text, float(losses([text])[0]))
        # Looked for once: words that help hardly change with one of them, and the slope is dear.
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
            best = Rewritten(tries[least], float(found[least]))
        return best


def _with(words: Sequence[str], place: int, word: str) -> str:
    return " ".join([*words[:place], word, *words[place + 1 :]])


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


#: Lines of both sides before an attack at a fixed turn, as in the source.
AFTER: Final = 2
#: Lines before a sentence that won elsewhere is said, as in the source.
_TRANSFERRED_AFTER: Final = 3
#: Sentences that won elsewhere and are kept: this share of the games that were won.
_BEST: Final = 1 / 3


class HearingAdversary(GameAdversary):
    """Decides line by line what to say, with what the agent said before its eyes."""

    learns = False
    searches = False

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        #: Ids of the scenarios in which it did more than let its voice speak; where what the voice
        #: says wins by itself, an attack may say just that.
        self.struck: set[str] = set()

    def script(self, scenario: Scenario, budget: int) -> Script:  # noqa: ARG002 - it searches nothing
        """Play a game, and return what it said there."""
        return self.arena.hear(scenario, self.speaker(scenario)).script

    @abstractmethod
    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who speaks in one game."""

    def voice(self, scenario: Scenario, *, teaches: bool = False) -> Speaker:
        """Return the voice in one game, or the teacher: what is said without an attack."""
        side = self.arena.side
        agent = (side.teacher or side.voice) if teaches else side.voice
        if agent is None:
            rng = self.rng(scenario.id, "voice")
            lines = self.arena.lines(scenario)
            return lambda _: lines[int(rng.integers(len(lines)))]
        agent.start(scenario.adversary)

        who = f"the voice {name_of(agent)!r}, in scenario {scenario.id!r},"

        def speak(said: Said) -> str | None:
            text = agent.reply(talk_of(said))
            return None if isinstance(text, GoalSelection) else check_utterance(text, who)

        return speak


class VoicedAdversary(HearingAdversary):
    """Says what its voice says: no attack, or one that was trained beforehand."""

    name = "voice"
    about = "what its voice says, until that closes the talk"

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        refuse_without_voice(self, arena.side.voice)

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return the voice."""
        return self.voice(scenario)


class HandedOnAdversary(HearingAdversary):
    """Talks for some lines, and then says what won in other scenarios."""

    name = "handed-on"
    about = "its voice for three lines, then a last line that won in other scenarios"
    learns = True
    _won: tuple[str, ...] = ()

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        refuse_without_voice(self, arena.side.voice or arena.side.teacher)

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Gather the last lines of the games that the teacher won most of."""
        self._won = winning_lines(self, scenarios, budget)

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        voice, rng, done = self.voice(scenario), self.rng(scenario.id), False

        def speak(said: Said) -> str | None:
            nonlocal done
            if len(said) < _TRANSFERRED_AFTER or not self._won or done:
                return voice(said)
            done = True
            self.struck.add(scenario.id)
            return self._won[int(rng.integers(len(self._won)))]

        return speak


def refuse_without_voice(adversary: HearingAdversary, voice: object) -> None:
    """Refuse an adversary that has nobody to speak for it.

    Raises:
        UserError: there is no voice.
    """
    if voice is None:
        raise UserError(
            f"the adversary {adversary.name!r} needs a voice: side=AdversarySide(voice=...), an "
            "agent that plays the adversary's side"
        )


def winning_lines(
    adversary: HearingAdversary, scenarios: Sequence[Scenario], budget: int
) -> tuple[str, ...]:
    """Return the last lines of the games that the teacher won most of, the best first."""
    found: list[tuple[float, str]] = []
    for scenario in scenarios[:budget]:
        played = adversary.arena.hear(scenario, adversary.voice(scenario, teaches=True))
        if played.advantage > 0 and played.script:
            found.append((played.advantage, played.script[-1]))
    found.sort(key=lambda one: (-one[0], one[1]))
    kept = found[: max(1, round(len(found) * _BEST))]
    return tuple(dict.fromkeys(line for _, line in kept))


class LookingAdversary(HearingAdversary):
    """An adversary that looks into the agent."""

    shortlist: int = SHORTLIST  #: Words that are tried for each place of a line.

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        if not isinstance(arena.agent, TransparentAgent):
            raise UserError(
                f"the adversary {self.name!r} looks into an agent, and {name_of(arena.agent)!r} "
                "does not let it (see TransparentAgent); 'replace' rewrites words without that"
            )
        self._agent = arena.agent

    def view(self, scenario: Scenario) -> TargetView:
        """Return the agent in one scenario."""
        return TargetView(self._agent, self.arena.game, scenario)

    def attack(self, scenario: Scenario) -> WhiteBoxAttack:
        """Return what rewrites lines in one scenario."""
        return WhiteBoxAttack(self.view(scenario), self.arena.fluency(scenario), self.shortlist)


class ReactiveAdversary(LookingAdversary):
    """Lets the agent select at once and badly, at a fixed turn."""

    name = "reactive"
    about = "its voice, and one line rewritten so that the agent selects at once and badly"
    after: int = AFTER  #: Lines of both sides before the attack.

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        voice, attack, done = self.voice(scenario), self.attack(scenario), False

        def speak(said: Said) -> str | None:
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
    """Lets the agent ask for less at a fixed turn, and closes the talk then."""

    name = "preemptive"
    about = "its voice, one line rewritten so that the agent asks for less, and the end of the talk"
    after: int = AFTER

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        voice, attack, done = self.voice(scenario), self.attack(scenario), False

        def speak(said: Said) -> str | None:
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
    """Attacks as soon as one of the two attacks is expected to win (algorithm 1 of the source)."""

    name = "delayed"
    about = "reactive, else preemptive where expected to win, else its voice (RA+PA+DA)"

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        voice, attack = self.voice(scenario), self.attack(scenario)
        rng, closes = self.rng(scenario.id), False

        def speak(said: Said) -> str | None:
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

    def otherwise(self, text: str, rng: np.random.Generator) -> str:  # noqa: ARG002 - others draw
        """Return what is said where neither attack is expected to win."""
        return text


class TransferredAdversary(DelayedAdversary):
    """As `DelayedAdversary`, but says what won elsewhere while neither attack would win."""

    name = "transferred"
    about = "as delayed, but a line that won in other scenarios where neither wins (RA+PA+TA)"
    learns = True
    _won: tuple[str, ...] = ()

    def learn(self, scenarios: Sequence[Scenario], budget: int) -> None:
        """Gather the last lines of the games that the teacher won most of."""
        self._won = winning_lines(self, scenarios, budget)

    def otherwise(self, text: str, rng: np.random.Generator) -> str:
        """Return a line that won elsewhere."""
        return self._won[int(rng.integers(len(self._won)))] if self._won else text


#: Needs an agent that lets one look into it: by name, in the order of reports.
LOOKING: Final[dict[str, type[LookingAdversary]]] = {
    kind.name: kind
    for kind in (ReactiveAdversary, PreemptiveAdversary, DelayedAdversary, TransferredAdversary)
}
HEARING: Final[dict[str, type[HearingAdversary]]] = {
    kind.name: kind for kind in (VoicedAdversary, HandedOnAdversary)
}


#: Lines of both sides before it closes a talk by itself: one without words shows nothing.
_TALKED: Final = 2
#: Share of the highest score below which words of the best lines are replaced, and how many lines.
_POOR: Final = 0.5
_REWRITTEN: Final = 2
#: Best lines behind which a second one is looked for.
_FOLLOWED: Final = 6


class LookaheadAdversary(LookingAdversary):
    """Says the line with the highest expected advantage, or closes the talk where that pays more.

    The expectation is over whether the agent selects at once; its answer, where it gives one, is
    taken to be the likeliest, after which the adversary may close, or say one line more.
    """

    name = "lookahead"
    about = "of the game's lines and its voice's the one that is expected to pay most"

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        view, voice = self.view(scenario), self.voice(scenario)
        fluency, lines = self.arena.fluency(scenario), self.arena.lines(scenario)
        poor = _POOR * self.arena.game.most_score

        def speak(said: Said) -> str | None:
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

    def foreseen(self, view: TargetView, said: Said, pool: Sequence[str]) -> np.ndarray:
        """Return ``[pool]``: what each line is expected to pay if one more may follow.

        The second line is looked for behind the best first ones alone.
        """
        chance, at_once, later, answers = _outcomes(view, said, pool)
        values: np.ndarray = chance * at_once + (1 - chance) * later
        if len(said) + 3 >= self.arena.game.most_turns:
            return values
        for place in np.argsort(-values, kind="stable")[:_FOLLOWED].tolist():
            answer = answers[place]
            if answer is not None and chance[place] < 1:
                talk = [*said, (False, pool[place]), (True, answer)]
                more = max(later[place], float(expected(view, talk, pool).max()))
                values[place] = chance[place] * at_once[place] + (1 - chance[place]) * more
        return values


def expected(view: TargetView, said: Said, utterances: Sequence[str]) -> np.ndarray:
    """Return ``[utterances]``: the expected advantage if the talk ends with the answer to each."""
    chance, at_once, later, _ = _outcomes(view, said, utterances)
    found: np.ndarray = chance * at_once + (1 - chance) * later
    return found


class _Outcomes(NamedTuple):
    """What may follow some utterances: a number each."""

    chance: np.ndarray  #: That the agent selects at once.
    at_once: np.ndarray  #: The advantage if it does,
    later: np.ndarray  #: and if it answers, and the talk is closed.
    answers: list[str | None]


def _outcomes(view: TargetView, said: Said, utterances: Sequence[str]) -> _Outcomes:
    answers = view.answers(said, utterances)
    talks = [*view.talks(said, utterances), *view.answered(said, utterances, answers)]
    found = view.advantages[view.scores(talks).argmax(1)]
    count = len(utterances)
    return _Outcomes(view.closing(said, utterances).chance, found[:count], found[count:], answers)


def _improved(view: TargetView, fluency: Fluency, said: Said, text: str) -> tuple[str, float]:
    """Return an utterance with at most two words replaced, and its expected advantage."""

    def losses(utterances: Sequence[str]) -> np.ndarray:
        return -expected(view, said, utterances)

    talks = partial(view.talks, said)
    found = Rewriter(view, fluency).rewritten(said, text, losses, talks, -view.game.most_score)
    return found.text, -found.loss


def _closing_now(view: TargetView, said: Said) -> float:
    return float(view.advantages[view.closed(said).argmax()])


#: Name -> adversary, in the order of reports.
ADVERSARIES: Final[dict[str, type[GameAdversary]]] = {
    **SCRIPTED,
    **HEARING,
    **LOOKING,
    LookaheadAdversary.name: LookaheadAdversary,
}


def playing_against(agent: GoalAgent, side: AdversarySide) -> tuple[str, ...]:
    """Return the names of all adversaries that can play: some need a voice, or to look inside."""
    names = list(SCRIPTED)
    if side.voice is not None:
        names += HEARING
    if isinstance(agent, TransparentAgent):
        names += [*LOOKING, LookaheadAdversary.name]
    return tuple(names)


def adversary_by_name(name: str, arena: Arena) -> GameAdversary:
    """Return an adversary.

    Raises:
        UserError: there is none of that name, or it cannot look into the agent.
    """
    if name not in ADVERSARIES:
        raise unknown_name("adversary", name, ADVERSARIES)
    return ADVERSARIES[name](arena)
