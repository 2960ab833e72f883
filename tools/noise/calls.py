"""Measure how many calls the search ``noise`` saves for an interval of the same width.

::

    python -m tools.noise.calls --model trade --data ../shared/data/multiwoz21 --dialogues 30

Plain sampling draws what people make of a turn, most often nothing, and asks the tracker about each
different text that comes out. To compare the two without chance, every outcome with one slip is
asked once, and ten with several: what either search would find, and how much it varies, follows.
The width of the interval goes with the standard error over dialogues: that of the dialogues
themselves, which no number of calls makes less, and that of the draws within the turns.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.campaign.engine import predictor_for
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.search.searches import Outcomes
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction
from tools.noise.command import run

Floats = npt.NDArray[np.float64]
#: Most variants of a turn for the one, draws for the other.
SAMPLES: Final = (3, 5, 8, 12)
DRAWS: Final = 4_096
#: Outcomes with several slips that are asked, and samples of the search to see how they vary.
SEVERAL: Final = 10
REPEATS: Final = 100


class Known(NamedTuple):
    """A turn of which it is known what fails."""

    dialogue: str
    outcomes: Outcomes
    #: Of each outcome with one slip whether it fails; of several slips, how often.
    fails: Floats

    @property
    def chance(self) -> float:
        """How likely the turn fails."""
        return float(self.outcomes.chances @ self.fails)


class Precision(NamedTuple):
    """How narrow an estimate is."""

    #: Contexts asked a turn, but for the clean ones.
    calls: float
    #: Variance of the mean over turns, of the draws within them.
    within: float
    #: Contexts asked a turn where the same text is asked again each time it is drawn.
    drawn: float = 0.0


def known_turns(model: str, data: DialogueSet) -> Iterator[Known]:
    """Ask a tracker about what can be made of each turn."""
    settings = Settings.of(model=model, validity="natural", attack="non-cumulative", search="noise")
    spec = CampaignSpec.of(settings.variant, data, load_lexicon())
    predictor = predictor_for(settings, data, tracker_for(settings, data))
    perturber = spec.perturber
    for dialogue in data.dialogues:
        contexts = [dialogue.context(index) for index in range(len(dialogue.turns))]
        clean = predictor.predict(contexts)
        for turn, context in zip(dialogue.turns, contexts, strict=True):
            answer = clean[context]
            source = perturber.prepare(turn.user, lock_values(data, turn, answer), turn.system)
            if source.support is None or not isinstance(answer, Prediction):
                continue
            noisy, rate = source.support.noisy, perturber.noise.rate
            outcomes = Outcomes(noisy, rate)
            edits: list[tuple[Edit, ...]] = [(slip.edit,) for slip, _ in noisy.single(rate)]
            if outcomes.chances[-1]:
                rng = stream(0, "several", dialogue.id, turn.index)
                edits += [noisy.draw_several(rng, rate) for _ in range(SEVERAL)]
            made = [perturber.remake(source, some) for some in edits]
            asked: list[Context | None] = [
                dialogue.context(turn.index, {turn.index: variant.text}) if variant.valid else None
                for variant in made
            ]
            answers = predictor.predict({one: None for one in asked if one is not None})
            found = [one is not None and _differs(answers[one], answer) for one in asked]
            alone = len(outcomes.chances) - 1
            rest = found[alone:]
            several = sum(rest) / len(rest) if rest else 0.0
            fails = np.array([*map(float, found[:alone]), several])
            yield Known(dialogue.id, outcomes, fails)


def _differs(answer: object, clean: Prediction) -> bool:
    return isinstance(answer, Prediction) and answer.state != clean.state


def of_dialogues(turns: Sequence[Known]) -> float:
    """Return the variance of the mean over turns that comes from the choice of dialogues."""
    sums: dict[str, list[float]] = {}
    for turn in turns:
        sums.setdefault(turn.dialogue, []).append(turn.chance)
    parts = np.array([[math.fsum(chances), len(chances)] for chances in sums.values()])
    rate = parts[:, 0].sum() / parts[:, 1].sum()
    influences = (parts[:, 0] - rate * parts[:, 1]) / parts[:, 1].sum()
    return float(len(parts) / (len(parts) - 1) * (influences**2).sum())


def plain(turns: Sequence[Known], draws: int) -> Precision:
    """Return how narrow so many plain draws of each turn are."""
    chances = np.array([turn.chance for turn in turns])
    calls = 0.0
    for turn in turns:
        single, several = turn.outcomes.chances[:-1], turn.outcomes.chances[-1]
        calls += float((1.0 - (1.0 - single) ** draws).sum()) + draws * float(several)
    within = float((chances * (1.0 - chances)).sum()) / draws
    drawn = draws * math.fsum(float(turn.outcomes.chances.sum()) for turn in turns) / len(turns)
    return Precision(calls / len(turns), within / len(turns) ** 2, drawn)


def sampled(turns: Sequence[Known], variants: int) -> Precision:
    """Return how narrow the search ``noise`` is with at most so many variants of a turn."""
    calls, within = 0.0, 0.0
    for place, turn in enumerate(turns):
        rng = stream(0, "sampled", place, variants)
        size = turn.outcomes.size(variants)
        found = np.zeros(REPEATS)
        for number in range(REPEATS):
            drawn = turn.outcomes.draw_places(size, rng)
            fails = turn.fails[[place for place, _ in drawn]]
            last = [place == len(turn.fails) - 1 for place, _ in drawn]
            fails = np.where(last, rng.random(len(drawn)) < fails, fails)
            found[number] = fails @ [weight for _, weight in drawn]
            calls += len(drawn) / REPEATS
        within += float(found.var(ddof=1))
    return Precision(calls / len(turns), within / len(turns) ** 2)


def lines(given: argparse.Namespace) -> Iterator[str]:
    """Ask about every turn and yield the lines of the table."""
    data = load_dialogues(given.data, given.split)
    places = stream(given.seed, "dialogues").permutation(len(data.dialogues))
    chosen = sorted(places[: given.dialogues].tolist())
    turns: list[Known] = []
    for number, place in enumerate(chosen, 1):
        turns += known_turns(given.model, replace(data, dialogues=(data.dialogues[place],)))
        print(f"{number} of {len(chosen)} dialogues", file=sys.stderr, flush=True)
    between = of_dialogues(turns)
    rate = 1000 * sum(turn.chance for turn in turns) / len(turns)
    yield f"{len(turns)} turns; {rate:.2f} of 1,000 fail."
    yield ""
    yield "| most variants | calls a turn | error | plain draws | calls | different | share |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for variants in SAMPLES:
        found = sampled(turns, variants)
        draws = next(n for n in range(1, DRAWS) if plain(turns, n).within <= found.within)
        other = plain(turns, draws)
        error = 1000 * math.sqrt(between + found.within)
        yield (
            f"| {variants} | {found.calls:.2f} | {error:.2f} | {draws} | {other.drawn:.2f} "
            f"| {other.calls:.2f} | {100 * found.calls / other.drawn:.0f} %, "
            f"{100 * found.calls / other.calls:.0f} % |"
        )


if __name__ == "__main__":
    sys.exit(run(__doc__, lines, dialogues=(30, "how many"), seed=(0, "of their choice")))
