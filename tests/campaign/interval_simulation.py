"""Campaigns with a known failure rate: how often does its interval hold it?

Dialogues have 1 to 30 turns with 5 variants each. A dialogue has a chance of its own to be
broken, drawn around the rate, and each of its turns one around that of the dialogue (their
correlation is 0.3): variants of a turn are more alike than turns of a dialogue. In ``equal``
campaigns every dialogue has 6 turns, in ``unequal`` ones 6 in the mean (geometric), and in
``linked`` ones longer dialogues break more often too. ``TRADE`` draws dialogues of a real
report (``tests/gate/trade_turns.json``), with how often each turn broke the shipped tracker.

Run ``python tests/campaign/interval_simulation.py`` for the tables in
``interval_simulation.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from pytest_dstfuzz.campaign.figures import FEWEST_DIALOGUES, ratio_interval

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]
Method = Callable[[Floats, Floats, np.random.Generator], Interval]

VARIANTS = 5
#: Mean and most turns of a dialogue, and the correlation of the variants of a turn.
TURNS, MOST_TURNS, TURN_CORRELATION = 6, 30, 0.3
TRADE = Path(__file__).parents[1] / "gate" / "trade_turns.json"
RESAMPLES = 500


class Campaigns:
    """Draws campaigns.

    Args:
        kind: ``equal``, ``unequal``, ``linked`` or ``TRADE``.
        rate: expected share of broken variants; TRADE has its own.
        correlation: of the turns of a dialogue.
    """

    def __init__(self, kind: str, rate: float = 0.0, correlation: float = 0.0) -> None:
        self._kind, self._rate, self._correlation = kind, rate, correlation
        self._real: list[Floats] = []
        if kind == "TRADE":
            dialogues = json.loads(TRADE.read_text(encoding="utf-8"))["dialogues"]
            self._real = [np.array([bad / valid for bad, valid in turns]) for turns in dialogues]
            self.truth = float(np.concatenate(self._real).mean())
        elif kind == "linked":
            turns = self._turns(400_000, np.random.default_rng(0))
            self.truth = float(np.average(self._chances(turns), weights=turns))
        else:
            self.truth = rate

    def draw(self, dialogues: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return violations and variants of each dialogue."""
        if self._real:
            drawn = [self._real[place] for place in rng.integers(len(self._real), size=dialogues)]
            sizes = np.array([len(chances) for chances in drawn])
            each = np.concatenate(drawn)
        else:
            sizes = self._turns(dialogues, rng)
            own = _around(self._chances(sizes), self._correlation, rng)
            each = _around(np.repeat(own, sizes), TURN_CORRELATION, rng)
        place = np.repeat(np.arange(dialogues), sizes)
        broken = np.bincount(place, weights=rng.binomial(VARIANTS, each), minlength=dialogues)
        return broken, sizes.astype(np.float64) * VARIANTS

    def _turns(self, dialogues: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        if self._kind == "equal":
            return np.full(dialogues, TURNS)
        return np.minimum(rng.geometric(1 / TURNS, dialogues), MOST_TURNS)

    def _chances(self, turns: npt.NDArray[np.int64]) -> Floats:
        if self._kind != "linked":
            return np.full(len(turns), self._rate)
        return self._rate * np.clip(turns / 10, 0.3, 2.5)


class Held(NamedTuple):
    """How often intervals held the truth, and how wide they were in the mean."""

    held: float
    width: float


def coverage(
    campaigns: Campaigns, count: int, dialogues: int, *, seed: int, only: str = ""
) -> dict[str, Held]:
    """Return for each kind of interval how often it holds the true rate.

    Args:
        campaigns: what is drawn from.
        count: number of campaigns.
        dialogues: of each.
        seed: of all draws.
        only: the one kind that is wanted.
    """
    rng = np.random.default_rng(seed)
    methods = {name: method for name, method in METHODS.items() if only in ("", name)}
    held, width = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0)
    for _ in range(count):
        parts, wholes = campaigns.draw(dialogues, rng)
        bound = 1 - 0.025 ** (1 / dialogues)
        for name, method in methods.items():
            # Without any violation all have the bound of Clopper and Pearson.
            low, high = method(parts, wholes, rng) if parts.any() else (0.0, bound)
            held[name] += low <= campaigns.truth <= high
            width[name] += high - low
    return {name: Held(held[name] / count, width[name] / count) for name in methods}


def main() -> None:
    """Print the tables."""
    count = 250
    rates = (0.01, 0.05, 0.1, 0.3)
    rows = {
        f"{kind}, correlation {correlation:g}": [
            Campaigns(kind, rate, correlation) for rate in rates
        ]
        for kind in ("equal", "unequal", "linked")
        for correlation in (0.05, 0.3)
    }
    rows["TRADE"] = [Campaigns("TRADE")]
    print(f"# Intervals of the failure rate by simulation: {count} campaigns of each kind")
    print(
        "\nMade by `python tests/campaign/interval_simulation.py`. How often a 95 % interval holds"
    )
    print(
        "the true failure rate (in brackets its mean width in points); mean over campaigns with a"
    )
    print("failure rate of 1, 5, 10 and 30 %. `adopted` is what reports show.\n")
    print(f"| campaigns | dialogues | {' | '.join(METHODS)} |")
    print(f"| --- | --- |{' --- |' * len(METHODS)}")
    found: dict[int, list[dict[str, Held]]] = {}
    for name, kinds in rows.items():
        for dialogues in (6, 8, 12, 20, 50):
            each = [coverage(kind, count, dialogues, seed=1) for kind in kinds]
            found.setdefault(dialogues, []).extend(each)
            print(f"| {name} | {dialogues} | {_cells(each)} |", flush=True)
    print("\nAll kinds together, and in brackets the worst of them (kind and rate):\n")
    print(f"| dialogues | {' | '.join(METHODS)} |\n| --- |{' --- |' * len(METHODS)}")
    for dialogues, each in found.items():
        cells = (
            f"{np.mean(shares):.1%} ({min(shares):.1%})"
            for shares in ([row[name].held for row in each] for name in METHODS)
        )
        print(f"| {dialogues} | {' | '.join(cells)} |")
    _few(rows["TRADE"][0], count)


def _few(campaigns: Campaigns, count: int) -> None:
    """Print what intervals of fewer dialogues than are asked for would be worth."""
    print(f"\nFewer than {FEWEST_DIALOGUES} dialogues of TRADE, which have no interval:\n")
    # Of so few dialogues many resamples have no spread to be studentised by.
    names = [name for name in METHODS if name not in ("adopted", "studentised bootstrap")]
    print(f"| dialogues | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for dialogues in (2, 3, 4, 5):
        each = {
            name: coverage(campaigns, count, dialogues, seed=1, only=name)[name] for name in names
        }
        print(f"| {dialogues} | {' | '.join(f'{row.held:.1%}' for row in each.values())} |")


def _cells(each: list[dict[str, Held]]) -> str:
    return " | ".join(
        f"{np.mean([row[name].held for row in each]):.1%} "
        f"({100 * np.mean([row[name].width for row in each]):.0f})"
        for name in METHODS
    )


def _around(chances: Floats, correlation: float, rng: np.random.Generator) -> Floats:
    """Return chances drawn from beta distributions with these means."""
    size = (1 - correlation) / correlation
    inside = np.clip(chances, 1e-9, 1 - 1e-9)
    drawn: Floats = rng.beta(inside * size, (1 - inside) * size)
    return drawn


def _linear(parts: Floats, wholes: Floats) -> tuple[float, float]:
    """Return rate and standard error of a ratio, by Taylor's expansion."""
    count, total = len(parts), wholes.sum()
    rate = parts.sum() / total
    residuals = parts - rate * wholes
    return float(rate), float(np.sqrt(count / (count - 1) * (residuals @ residuals)) / total)


def _percentile(parts: Floats, wholes: Floats, rng: np.random.Generator) -> Interval:
    weights = _weights(len(parts), rng)
    low, high = np.percentile((weights @ parts) / (weights @ wholes), [2.5, 97.5])
    return float(low), float(high)


def _studentised(parts: Floats, wholes: Floats, rng: np.random.Generator) -> Interval:
    """Bootstrap the t statistic of the logit."""
    weights, count = _weights(len(parts), rng), len(parts)
    totals, sums = weights @ wholes, weights @ parts
    rates = sums / totals
    squares = weights @ parts**2 - 2 * rates * (weights @ (parts * wholes))
    squares += rates**2 * (weights @ wholes**2)
    errors = np.sqrt(np.maximum(squares, 0) * count / (count - 1)) / totals
    rate, error = _linear(parts, wholes)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (special.logit(rates) - special.logit(rate)) * rates * (1 - rates) / errors
    values[sums == 0] = -np.inf
    low, high = np.percentile(values[~np.isnan(values)], [2.5, 97.5], method="nearest")
    scale = error / (rate * (1 - rate))
    ends = special.logit(rate) - np.array([high, low]) * scale
    return float(special.expit(ends[0])), float(special.expit(ends[1]))


def _fieller(parts: Floats, wholes: Floats, _: np.random.Generator) -> Interval:
    """Return the rates that a t test of ``parts - rate * wholes`` does not reject."""
    count = len(parts)
    square = stats.t.ppf(0.975, count - 1) ** 2
    mean, size = parts.mean(), wholes.mean()
    ((vary, both), (_, sizes)) = np.cov(parts, wholes) / count
    a, b, c = size**2 - square * sizes, mean * size - square * both, mean**2 - square * vary
    if a <= 0 or b * b < a * c:
        return 0.0, 1.0
    root = np.sqrt(b * b - a * c)
    return float(max(0.0, (b - root) / a)), float(min(1.0, (b + root) / a))


def _logit(parts: Floats, wholes: Floats, _: np.random.Generator) -> Interval:
    """Return a t interval of the logit."""
    rate, error = _linear(parts, wholes)
    reach = stats.t.ppf(0.975, len(parts) - 1) * error / (rate * (1 - rate))
    ends = special.expit(special.logit(rate) + np.array([-reach, reach]))
    return float(ends[0]), float(ends[1])


def _korn_graubard(parts: Floats, wholes: Floats, _: np.random.Generator) -> Interval:
    """Return Korn and Graubard's interval as published: n - 1 degrees of freedom."""
    rate, error = _linear(parts, wholes)
    total = float(wholes.sum())
    trials = min(total, rate * (1 - rate) / error**2) if error else total
    trials *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, len(parts) - 1)) ** 2
    part = trials * rate
    low = stats.beta.ppf(0.025, part, trials - part + 1)
    return float(low), float(stats.beta.ppf(0.975, part + 1, trials - part))


def _adopted(parts: Floats, wholes: Floats, _: np.random.Generator) -> Interval:
    pairs = [(int(part), int(whole)) for part, whole in zip(parts, wholes, strict=True)]
    found = ratio_interval(pairs)
    assert found is not None
    return found


def _weights(count: int, rng: np.random.Generator) -> Floats:
    drawn: Floats = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    return drawn


METHODS: dict[str, Method] = {
    "percentile bootstrap": _percentile,
    "studentised bootstrap": _studentised,
    "Fieller": _fieller,
    "t of the logit": _logit,
    "Korn and Graubard": _korn_graubard,
    "adopted": _adopted,
}

if __name__ == "__main__":
    main()
