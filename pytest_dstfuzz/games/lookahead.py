"""An attack of our own: of many lines that a person might say, the one that pays most.

The attacks of the source ask that the adversary has more than the agent, however little. This one
maximises the advantage itself, over whole lines and two of them ahead, and knows that it may also
close the talk. Only where no line is expected to pay well are words of the best ones replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.games.fluency import Fluency
from pytest_dstfuzz.games.game import Scenario
from pytest_dstfuzz.games.hearing import LookingAdversary
from pytest_dstfuzz.games.insight import Said, TargetView
from pytest_dstfuzz.games.playing import Speaker
from pytest_dstfuzz.games.whitebox import Rewriter

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
