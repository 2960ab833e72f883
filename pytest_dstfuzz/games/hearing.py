"""Adversaries that hear the agent, and those among them that look into it.

Each goes on from what a voice says: an agent that plays the adversary's side, or lines of the
game by chance. White-box attacks rewrite what the voice says next; they need an agent that lets
them look (`TransparentAgent`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.adversaries import GameAdversary
from pytest_dstfuzz.games.fluency import talk_of
from pytest_dstfuzz.games.game import GoalSelection, Scenario, check_utterance, name_of
from pytest_dstfuzz.games.insight import Said, TargetView, TransparentAgent
from pytest_dstfuzz.games.playing import Arena, Script, Speaker
from pytest_dstfuzz.games.whitebox import SHORTLIST, WhiteBoxAttack

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
