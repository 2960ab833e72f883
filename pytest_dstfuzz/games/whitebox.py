"""Attacks that look into the agent: words of an utterance replaced so that it decides badly.

After Cheng et al. (2019): `reactive` lets the agent select at once and badly (formula 7),
`preemptive` lets it answer first and closes the talk then (formula 8). Both replace at most two
words, greedily: the word that is spared best, then the best other word in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from pytest_dstfuzz.games.fluency import Fluency
from pytest_dstfuzz.games.insight import Said, Talk, TargetView

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
