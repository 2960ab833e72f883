"""Does the stated interval hold the true number of violations? A table of many runs.

    python tests/campaign/wobble_table.py --seeds 20

A rule-based tracker whose answers go wrong with chance w, by draws from a generator of its own,
is put to the vote; the truth are the violations of the same tracker without its noise, on the same
variants. Its wrong answers are the same one each time (``same``: it forgets the dialogue),
different ones (``other``: one slot gets another value), or half of the contexts have twice the
noise and the others none (``some``).
"""

from __future__ import annotations

import argparse
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from pytest_dstfuzz.campaign.deciding import Vote
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet, Exchange
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.trackers.tracker import Prediction

KINDS = ("same", "other", "some")


@dataclass
class Rules:
    """Believes each value that is said, unless the word before it is one of those it dislikes."""

    values: Mapping[str, str]
    #: One word in so many is disliked: what rules of thumb trip over.
    trips: int = 6

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState(self.state(context))) for context in contexts]

    def state(self, context: Context) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in context.user_utterances:
            words = re.findall(r"\S+", text.lower())
            for before, word in zip(["", *words], words, strict=False):
                slot = self.values.get(word.strip(".,?!"))
                if slot is not None and zlib.crc32(before.encode()) % self.trips:
                    found[slot] = word.strip(".,?!")
        return found


@dataclass
class Wobbly:
    """Answers as the rules do, but with chance ``wobble`` in another way."""

    rules: Rules
    wobble: float
    kind: str
    seed: int
    times: Counter[tuple[Exchange, ...]] = field(default_factory=Counter)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> Prediction:
        right = self.rules.state(context)
        number = self.times[context.exchanges]
        self.times[context.exchanges] += 1
        of_context = _rng(self.seed, context.exchanges)
        rng = _rng(self.seed, (context.exchanges, number))
        wobble = self.wobble
        if self.kind == "some":
            wobble *= 2 * float(of_context.random() < 0.5)
        if rng.random() >= wobble:
            return Prediction(BeliefState(right))
        if self.kind == "other":
            slots = sorted({*self.rules.values.values()})
            wrong = {**right, slots[rng.integers(len(slots))]: f"value {rng.integers(5)}"}
        else:
            # It forgets; where there is nothing to forget, it makes something up.
            wrong = {} if right else {"hotel-area": "made up"}
        return Prediction(BeliefState(wrong))


def _rng(seed: int, what: object) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed} {what}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


@cache
def data() -> DialogueSet:
    """Return dialogues without labels: the truth is the tracker without its noise."""
    labelled = load_dialogues("sample", "test")
    dialogues = tuple(
        replace(one, turns=tuple(replace(turn, state=None) for turn in one.turns))
        for one in labelled.dialogues
    )
    return replace(labelled, dialogues=dialogues)


@cache
def rules() -> Rules:
    ontology = data().ontology
    assert ontology is not None
    pairs = ((v, slot) for slot, values in ontology.values.items() for v in values)
    return Rules({value: slot for value, slot in pairs if " " not in value and len(value) > 2})


def run(seed: int, turns: int, tracker: object, votes: int) -> tuple[list[TurnResult], Summary]:
    """Run a campaign; return its turns and its figures."""
    settings = Settings.of(validity="strict", seed=seed, attack="non-cumulative", shrink=False)
    chosen = sample_turns(data(), turns, seed, ())
    last: dict[str, tuple[object, int]] = {}
    for dialogue, index in chosen:
        last[dialogue.id] = dialogue, max(index, last.get(dialogue.id, (None, -1))[1])
    door = Predictor(tracker, ontology=None, decider=Vote(votes))  # type: ignore[arg-type]
    plan = list(last.values())
    campaign = CampaignEngine(settings, data(), door, load_lexicon(), plan=plan)  # type: ignore[arg-type]
    results = list(campaign.run())
    return results, summarise(results)


@dataclass(frozen=True)
class Row:
    """One run beside the truth."""

    true: int
    reported: int
    hits: int
    low: int
    high: int
    noise: float
    missed: float
    calls: int

    @property
    def holds(self) -> bool:
        return self.low <= self.true <= self.high


@cache
def truth(seed: int, turns: int) -> tuple[frozenset[tuple[str, int]], int]:
    """Return the violations without noise, and the calls that they took."""
    results, summary = run(seed, turns, rules(), 1)
    return _violations(results), summary.calls


def _violations(results: Sequence[TurnResult]) -> frozenset[tuple[str, int]]:
    return frozenset((turn.id, item.index) for turn in results for item in turn.violations)


def row(seed: int, turns: int, wobble: float, kind: str, votes: int = 3) -> Row:
    """Run the tracker with noise, beside the one without."""
    real, _ = truth(seed, turns)
    results, summary = run(seed, turns, Wobbly(rules(), wobble, kind, seed), votes)
    found, noise = _violations(results), summary.noise
    low, high = noise.real_violations if noise else (len(found), len(found))
    return Row(
        true=len(real),
        reported=len(found),
        hits=len(found & real),
        low=low,
        high=high,
        noise=noise.expected_noise if noise else 0.0,
        missed=noise.expected_missed if noise else 0.0,
        calls=summary.calls,
    )


def table(
    drawn: range, turns: int, wobbles: Sequence[float], kinds: Sequence[str], votes: int = 3
) -> list[str]:
    """Return the lines of the table: one for each kind and wobble, over the seeds ``drawn``."""
    seeds = len(drawn)
    head = (
        "kind    w     true  reported  precision  recall  noise  expected  missed  expected"
        "  width  calls  interval holds"
    )
    lines = [head]
    for kind in kinds:
        for wobble in wobbles:
            rows = [row(seed, turns, wobble, kind, votes) for seed in drawn]
            true, reported, hits = (
                sum(getattr(one, name) for one in rows) for name in ("true", "reported", "hits")
            )
            lines.append(
                f"{kind:<6}  {wobble:4.2f}  {true / seeds:4.1f}  {reported / seeds:8.1f}  "
                f"{hits / max(reported, 1):9.3f}  {hits / max(true, 1):6.3f}  "
                f"{(reported - hits) / seeds:5.1f}  {sum(r.noise for r in rows) / seeds:8.1f}  "
                f"{(true - hits) / seeds:6.1f}  {sum(r.missed for r in rows) / seeds:8.1f}  "
                f"{sum(r.high - r.low for r in rows) / seeds:5.1f}  "
                f"{sum(r.calls for r in rows) / seeds:5.0f}  "
                f"{sum(one.holds for one in rows)} of {seeds}"
            )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--turns", type=int, default=47)
    parser.add_argument("--votes", type=int, default=3)
    parser.add_argument("--wobbles", type=float, nargs="*", default=[0.0, 0.05, 0.2, 0.3])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    given = parser.parse_args()
    drawn = range(given.first_seed, given.first_seed + given.seeds)
    print("\n".join(table(drawn, given.turns, given.wobbles, given.kinds, given.votes)))
