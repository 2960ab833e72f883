"""An attack of our own: of many lines that a person might say, the one that pays most.

The attacks of the source ask that the adversary has more than the agent, however little, and
rewrite words at any price in language. This one maximises the advantage itself, over whole lines,
and knows that it may also close the talk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_dstfuzz.games.game import Scenario
from pytest_dstfuzz.games.hearing import LookingAdversary
from pytest_dstfuzz.games.insight import Said, TargetView
from pytest_dstfuzz.games.playing import Speaker

#: Lines of both sides before it closes a talk by itself: one without words shows nothing.
_TALKED: Final = 2


class LookaheadAdversary(LookingAdversary):
    """Says the line with the highest expected advantage, or closes the talk where that pays more.

    The expectation is over whether the agent selects at once; its answer, where it gives one, is
    taken to be the likeliest, after which the adversary may close.
    """

    name = "lookahead"
    about = "of the game's lines and its voice's the one that is expected to pay most"

    def speaker(self, scenario: Scenario) -> Speaker:
        """Return who says it."""
        view, voice = self.view(scenario), self.voice(scenario)
        fluency, lines = self.arena.fluency(scenario), self.arena.lines(scenario)

        def speak(said: Said) -> str | None:
            own = voice(said)
            every = dict.fromkeys([*lines, *([] if own is None else [own])])
            pool = fluency.of(said, list(every)) or list(every)
            values = expected(view, said, pool)
            best = int(values.argmax())
            if len(said) >= _TALKED and _closing_now(view, said) >= values[best]:
                return None
            self.struck.add(scenario.id)
            return pool[best]

        return speak


def expected(view: TargetView, said: Said, utterances: Sequence[str]) -> np.ndarray:
    """Return ``[utterances]``: the expected advantage if the talk ends with the answer to each."""
    chance = view.closing(said, utterances).chance
    at_once = view.advantages[view.scores(view.talks(said, utterances)).argmax(1)]
    answers = view.answers(said, utterances)
    talks = view.answered(said, utterances, answers)
    later = view.advantages[view.scores(talks).argmax(1)]
    found: np.ndarray = chance * at_once + (1 - chance) * later
    return found


def _closing_now(view: TargetView, said: Said) -> float:
    return float(view.advantages[view.closed(said).argmax()])
