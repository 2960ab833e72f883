"""Campaigns with a known truth: how often does the gate say what is true?

Each campaign draws dialogues from a real report (``trade_turns.json``: how many of 20
variants of each turn broke the shipped TRADE), so that turns and dialogues are as unequal
and as alike as they really are. Given the turn, the flips of two builds are independent.
A build that is worse has every turn's odds raised by one factor, so that the rate rises by
the shift that is asked for.

Run ``python tests/gate/gate_simulation.py`` for the table in ``gate_simulation.md``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from pytest_dstfuzz.gate.pairing import PairedViolations, dialogues_needed, interval
from pytest_dstfuzz.gate.verdict import DEFAULT_MAX_REGRESSION, judge_difference

Floats = npt.NDArray[np.float64]
VARIANTS = 5
#: By how much a build is worse, and what is allowed, where advice is put to the test.
ADVISED = ((0.0, 0.02), (0.0, 0.05), (0.025, 0.02), (0.03, 0.02), (0.05, 0.02), (0.1, 0.02))


class Campaigns:
    """Draws pairs of builds.

    Args:
        dialogues: for each turn of each dialogue, violations and valid variants.
    """

    def __init__(self, dialogues: Sequence[Sequence[tuple[int, int]]]) -> None:
        # Half a violation and half a pass more: no turn is broken always, or never.
        self._chances = [
            np.array([(bad + 0.5) / (valid + 1) for bad, valid in turns]) for turns in dialogues
        ]
        self._sizes = np.array([len(turns) for turns in dialogues])
        self._all = np.concatenate(self._chances)

    def draw(
        self, count: int, turns: int, shift: float, rng: np.random.Generator
    ) -> Iterator[PairedViolations]:
        """Yield ``count`` pairs of builds, the second worse by ``shift`` in expectation."""
        factor = self._factor(shift)
        for _ in range(count):
            drawn = rng.integers(len(self._chances), size=turns)
            ends = np.cumsum(self._sizes[drawn])
            drawn = drawn[: np.searchsorted(ends, turns) + 1]
            sizes = self._sizes[drawn]
            place = np.repeat(np.arange(len(sizes)), sizes)
            chances = np.concatenate([self._chances[number] for number in drawn])
            before = rng.binomial(VARIANTS, chances)
            after = rng.binomial(VARIANTS, special.expit(special.logit(chances) + factor))
            yield PairedViolations(
                np.bincount(place, weights=before),
                np.bincount(place, weights=after),
                sizes.astype(np.float64) * VARIANTS,
            )

    def _factor(self, shift: float) -> float:
        """Return what the logits of all turns rise by for their mean chance to rise by a shift."""

        def missed(factor: float) -> float:
            raised = special.expit(special.logit(self._all) + factor)
            return float(raised.mean() - self._all.mean() - shift)

        return float(optimize.brentq(missed, 0.0, 5.0)) if shift else 0.0


def verdicts(
    campaigns: Campaigns,
    count: int,
    *,
    turns: int,
    shift: float,
    seed: int,
    margin: float = DEFAULT_MAX_REGRESSION,
) -> dict[str, float]:
    """Return how often each verdict was given.

    Args:
        campaigns: what is drawn from.
        count: number of campaigns.
        turns: turns of each, about.
        shift: by how much the second build is worse.
        seed: of all draws.
        margin: rise that is allowed.
    """
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for pair in campaigns.draw(count, turns, shift, rng):
        bounds = interval(pair, rng)
        found[judge_difference(None, margin, pair.difference, bounds, None).verdict] += 1
    return {name: found[name] / count for name in ("regression", "pass", "inconclusive")}


def coverage(
    campaigns: Campaigns, count: int, *, turns: int, shift: float, seed: int
) -> dict[str, float]:
    """Return how often three kinds of interval hold the true difference; see `verdicts`."""
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for pair in campaigns.draw(count, turns, shift, rng):
        for name, (low, high) in {
            "typical values": interval(pair, rng) or (-1.0, 1.0),
            "percentile bootstrap": _percentile(pair, rng),
            "BCa bootstrap": _accelerated(pair, rng),
        }.items():
            found[name] += low <= shift <= high
    return {name: number / count for name, number in found.items()}


def decided(
    campaigns: Campaigns,
    count: int,
    *,
    shift: float,
    seed: int,
    margin: float = DEFAULT_MAX_REGRESSION,
) -> tuple[int, float]:
    """Return the number of dialogues that is advised, and how often so many decide rightly.

    Args:
        campaigns: what is drawn from.
        count: number of campaigns.
        shift: by how much the second build is worse.
        seed: of all draws.
        margin: rise that is allowed.
    """
    rng = np.random.default_rng(seed)
    # So large a campaign knows the true difference and its spread.
    (pilot,) = campaigns.draw(1, 200_000, shift, rng)
    needed = dialogues_needed(pilot, margin)
    assert needed is not None
    turns = round(needed * pilot.variants.mean() / VARIANTS)
    right = "regression" if shift > margin else "pass"
    found = verdicts(campaigns, count, turns=turns, shift=shift, seed=seed, margin=margin)
    return needed, found[right]


def invented(rate: float, correlation: float, seed: int = 0) -> Campaigns:
    """Return campaigns of 300 invented dialogues of unequal lengths.

    Args:
        rate: mean chance of a variant to break.
        correlation: of the turns of a dialogue; that of the variants of a turn is 0.3.
        seed: of the dialogues.
    """
    rng = np.random.default_rng(seed)
    size = (1 - correlation) / correlation
    own = np.clip(rng.beta(rate * size, (1 - rate) * size, 300), 1e-6, 1 - 1e-6)
    turns = np.minimum(rng.geometric(1 / 6, 300), 30)
    return Campaigns(
        [
            [(round(20 * chance), 20) for chance in rng.beta(mean * 2.3, (1 - mean) * 2.3, number)]
            for mean, number in zip(own, turns, strict=True)
        ]
    )


def main() -> None:
    """Print the table."""
    path = Path(__file__).with_name("trade_turns.json")
    campaigns = Campaigns(json.loads(path.read_text(encoding="utf-8"))["dialogues"])
    count = 1_000
    print(f"# The gate by simulation: {count:,} campaigns a row, {VARIANTS} variants a turn")
    print("\nMade by `python tests/gate/gate_simulation.py`.\n")
    names = ("regression", "pass", "inconclusive")
    print(f"| turns | truth | margin | `{'` | `'.join(names)}` |")
    print("| --- | --- | --- | --- | --- | --- |")
    for turns in (100, 300, 2_000):
        for shift, margin in ((0.0, 0.0), (0.0, 0.02), (0.02, 0.02), (0.05, 0.02)):
            found = verdicts(campaigns, count, turns=turns, shift=shift, seed=1, margin=margin)
            cells = " | ".join(f"{found[name]:.1%}" for name in names)
            print(f"| {turns:,} | {_truth(shift)} | {100 * margin:g} | {cells} |", flush=True)
    print("\nHow often the 95 % interval holds the true difference:\n")
    names = ("typical values", "percentile bootstrap", "BCa bootstrap")
    print(f"| turns | truth | {' | '.join(names)} |\n| --- | --- | --- | --- | --- |")
    for turns in (50, 100, 300):
        for shift in (0.0, 0.05):
            held = coverage(campaigns, count, turns=turns, shift=shift, seed=2)
            cells = " | ".join(f"{held[name]:.1%}" for name in names)
            print(f"| {turns:,} | {_truth(shift)} | {cells} |", flush=True)
    _advice(campaigns, count)


def _advice(trade: Campaigns, count: int) -> None:
    print("\nHow often as many dialogues as are advised (for 80 %) decide rightly:\n")
    print("| campaigns | truth | margin | dialogues | decided |\n| --- | --- | --- | --- | --- |")
    kinds = {
        "TRADE": trade,
        "5 % broken, correlation 0.2": invented(0.05, 0.2),
        "15 % broken, correlation 0.4": invented(0.15, 0.4),
    }
    for name, campaigns in kinds.items():
        for shift, margin in ADVISED:
            needed, share = decided(campaigns, count, shift=shift, seed=3, margin=margin)
            cells = f"{_truth(shift)} | {100 * margin:g} | {needed:,} | {share:.1%}"
            print(f"| {name} | {cells} |", flush=True)


def _truth(shift: float) -> str:
    return f"worse by {100 * shift:g} points" if shift else "equal"


def _resampled(pair: PairedViolations, rng: np.random.Generator) -> Floats:
    size = len(pair.variants)
    weights = rng.multinomial(size, np.full(size, 1 / size), size=2_000).astype(np.float64)
    rates: Floats = weights @ (pair.after - pair.before) / (weights @ pair.variants)
    return rates


def _percentile(pair: PairedViolations, rng: np.random.Generator) -> tuple[float, float]:
    low, high = np.percentile(_resampled(pair, rng), [2.5, 97.5])
    return float(low), float(high)


def _accelerated(pair: PairedViolations, rng: np.random.Generator) -> tuple[float, float]:
    rates, changes = _resampled(pair, rng), pair.after - pair.before
    below = np.mean(rates < pair.difference) + np.mean(rates == pair.difference) / 2
    bias = stats.norm.ppf(np.clip(below, 1e-4, 1 - 1e-4))
    left = (changes.sum() - changes) / (pair.variants.sum() - pair.variants)
    pull = left.mean() - left
    scale = 6 * float(pull @ pull) ** 1.5
    skew = float((pull**3).sum()) / scale if scale else 0.0
    ends = bias + stats.norm.ppf([0.025, 0.975])
    low, high = np.quantile(rates, stats.norm.cdf(bias + ends / (1 - skew * ends)))
    return float(low), float(high)


if __name__ == "__main__":
    main()
