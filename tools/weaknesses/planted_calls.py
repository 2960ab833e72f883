"""Compares how many calls two searches need to find faults that were planted into several bots.

``python -m tools.weaknesses.planted_calls`` writes Markdown to standard output. ``--use choices``
takes the bots on which the search was improved, instead of those for the report.

The calls are counted as in `tools.weaknesses.planted`. The data are the same for all seeds. If a
campaign did not find a fault, the calls of the longer of the two campaigns with its seed stand for
the calls that it needs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.papers.formatting import markdown_table
from pytest_dstfuzz.search.adaptive import AdaptiveSearch
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.search.searches import RandomSearch
from pytest_dstfuzz.seeding import stream
from tools.weaknesses.planted import Found, look, rounds
from tools.weaknesses.planted_bots import Bot, bots

#: Number of resamples for an interval.
_RESAMPLES: Final = 2_000
_HEAD: Final = (
    *("bot", "answers", "first: `{}`", "first: `{}`", "ratio"),
    *("all: `{}`", "all: `{}`", "ratio", "found all"),
)
Floats = npt.NDArray[np.float64]


class Pair(NamedTuple):
    """The calls of both searches until an event, by seed: [seeds] each."""

    mine: Floats
    others: Floats

    def ratio(self, chosen: npt.NDArray[np.int64] | slice = slice(None)) -> float:
        """Return the ratio of the medians over the chosen seeds."""
        return float(np.median(self.mine[chosen]) / np.median(self.others[chosen]))


def play(bot: Bot, search: str, seed: int, dialogues: int, variants: int) -> Found:
    """Run a campaign on a bot, and return the faults that it found."""
    data = bot.dialogues(dialogues)
    settings = Settings.of(
        validity="natural", search=search, seed=seed, variants=variants, turns=None
    )
    if not search_by_name(search, seed=seed, k=3).lessons:
        # Only a search that learns during the run needs minimal versions.
        settings = settings.replace_options(shrink=False)
    results = tuple(bot.campaign(data, settings))
    return look(rounds(results, data, settings), data, bot.causes)


def pair(
    runs: Sequence[tuple[Found, Found]], calls: Callable[[Found], float]
) -> tuple[Pair, tuple[int, int]]:
    """Return the calls until an event, and in how many campaigns it happened."""
    totals = [max(one.total, other.total) for one, other in runs]
    found = np.array([[calls(one), calls(other)] for one, other in runs])
    seen = np.isfinite(found)
    told = np.where(seen, found, np.array(totals, float)[:, None])
    return Pair(told[:, 0], told[:, 1]), (int(seen[:, 0].sum()), int(seen[:, 1].sum()))


def until_first(found: Found) -> float:
    """Return the calls until the first fault."""
    return min(found.calls.values(), default=math.inf)


def until_all(bot: Bot) -> Callable[[Found], float]:
    """Return a function that returns the calls until all faults of a bot."""
    return lambda found: max(found.calls.get(fault, math.inf) for fault in bot.faults)


def lines(
    chosen: Sequence[Bot], searches: tuple[str, str], seeds: int, size: tuple[int, int]
) -> Iterator[str]:
    """Run all campaigns, and yield a table with a row for each bot, and one for all."""
    rows, firsts, alls = [], [], []
    for bot in chosen:
        runs = [
            (play(bot, searches[0], seed, *size), play(bot, searches[1], seed, *size))
            for seed in range(seeds)
        ]
        first, _ = pair(runs, until_first)
        every, count = pair(runs, until_all(bot))
        rows.append([bot.name, bot.answers, *_cells(first), *_cells(every)])
        rows[-1].append(f"{count[0]}, {count[1]} of {seeds}")
        firsts.append(first)
        alls.append(every)
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    over = [["median bot", "", "", "", _over(firsts), "", "", _over(alls), ""]]
    head = [
        cell.format(name)
        for cell, name in zip(_HEAD, ("", "", *searches, "", *searches, "", ""), strict=True)
    ]
    yield from markdown_table(head, rows + over)


def _cells(calls: Pair) -> list[str]:
    rng = stream(0, "planted", "seeds")
    count = len(calls.mine)
    drawn = [calls.ratio(rng.integers(0, count, count)) for _ in range(_RESAMPLES)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    medians = [f"{np.median(one):,.0f}" for one in calls]
    return [*medians, f"{calls.ratio():.2f} [{low:.2f}, {high:.2f}]"]


def _over(pairs: Sequence[Pair]) -> str:
    """Return the ratio at the median bot, with an interval over bots."""
    ratios = np.array([one.ratio() for one in pairs])
    rng = stream(0, "planted", "bots")
    drawn = [np.median(rng.choice(ratios, len(ratios))) for _ in range(_RESAMPLES)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{np.median(ratios):.2f} [{low:.2f}, {high:.2f}]"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.weaknesses.planted_calls")
    parser.add_argument("--use", choices=("choices", "report"), default="report")
    parser.add_argument("--bots", default="", help="names, with commas (default: all)")
    parser.add_argument("--search", default=AdaptiveSearch.name)
    parser.add_argument("--other", default=RandomSearch.name)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--dialogues", type=int, default=8, help="how many")
    parser.add_argument(
        "--variants", type=int, default=8, help="maximum number of variants of a turn"
    )
    given = parser.parse_args(arguments)
    names = given.bots.split(",") if given.bots else [one.name for one in bots()]
    chosen = [one for one in bots() if one.use == given.use and one.name in names]
    size = given.dialogues, given.variants
    for line in lines(chosen, (given.search, given.other), given.seeds, size):
        print(line, flush=True)


if __name__ == "__main__":
    main()
