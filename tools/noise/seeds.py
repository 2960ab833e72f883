"""Whether one tracker is told apart from itself: estimated failures under several seeds.

::

    python -m tools.noise.seeds --model trade --data ../shared/data/multiwoz21 --turns 2000

Runs the search ``noise`` on the same turns once for each seed and compares every two runs as a gate
compares two builds. Writes Markdown to standard output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.figures import TURNS, has_expectation, turn_failures
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.gate.pairing import PairedViolations, interval
from pytest_dstfuzz.seeding import stream
from tools.noise.command import run


def compared(before: Sequence[TurnResult], after: Sequence[TurnResult]) -> PairedViolations:
    """Pair two runs on the same turns by dialogue."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for old, new in zip(before, after, strict=True):
        if has_expectation(old) and has_expectation(new):
            rows.setdefault(old.dialogue_id, []).append((turn_failures(old), turn_failures(new)))
    return PairedViolations.of_rows(
        (sum(old for old, _ in each), sum(new for _, new in each), len(each))
        for each in rows.values()
    )


def lines(given: argparse.Namespace) -> Iterator[str]:
    """Run the campaigns and yield the lines of the table."""
    data = load_dialogues(given.data, given.split)
    order = stream(0, "dialogues").permutation(len(data.dialogues)).tolist()
    chosen, turns = [], 0
    while turns < given.turns and order:
        chosen.append(order.pop(0))
        turns += len(data.dialogues[chosen[-1]].turns)
    data = replace(data, dialogues=tuple(data.dialogues[place] for place in sorted(chosen)))
    runs = []
    for seed in range(given.seeds):
        settings = Settings.of(
            validity="natural", search="noise", seed=seed, turns=None, shrink=False
        )
        runs.append(tuple(Campaign(given.model, data, settings)))
        print(f"seed {seed}: {len(runs[-1])} turns", file=sys.stderr, flush=True)
    yield "| seeds | estimated failures of 1,000 turns | difference | 95 % interval | they differ |"
    yield "| --- | --- | --- | --- | --- |"
    for one, two in combinations(range(given.seeds), 2):
        paired = compared(runs[one], runs[two])
        whole = float(paired.variants.sum())
        low, high = interval(paired, stream(0, "seeds", one, two)) or (-1.0, 1.0)
        figures = [TURNS * float(side.sum()) / whole for side in (paired.before, paired.after)]
        both = f"{figures[0]:.2f}, {figures[1]:.2f} | {TURNS * paired.difference:+.2f}"
        bounds = f"{TURNS * low:+.2f} to {TURNS * high:+.2f}"
        yield f"| {one}, {two} | {both} | {bounds} | {'yes' if low * high > 0 else 'no'} |"


if __name__ == "__main__":
    sys.exit(run(__doc__, lines, turns=(2000, "at least so many"), seeds=(3, "how many")))
