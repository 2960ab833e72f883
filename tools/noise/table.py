"""Failure rates under ``strict`` and ``natural``, and estimated failures by slip rate and model.

::

    python -m tools.noise.table --model trade --data ../shared/data/multiwoz21 --turns 1000
    python -m tools.noise.table --model simpletod --data ../shared/data/multiwoz21 --turns 1000

Writes Markdown to standard output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.figures import EstimatedFailures
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.load import load_dialogues
from tools.noise.command import run

RATES: Final = (0.01, 0.02, 0.05)
MODELS: Final = ("typing", "casual", "speech")
PROFILES: Final = ("strict", "natural")


def lines(given: argparse.Namespace) -> Iterator[str]:
    """Run the campaigns and yield the lines of two tables."""
    data = load_dialogues(given.data, given.split)

    def summary(**options: Any) -> Summary:
        settings = Settings.of(turns=given.turns, seed=given.seed, shrink=False, **options)
        campaign = Campaign(given.model, data, settings)
        for _ in campaign:
            pass
        return campaign.summary()

    yield f"### {given.model}"
    yield ""
    yield "| profile, search `random` | failure rate | 95 % interval | turns broken |"
    yield "| --- | --- | --- | --- |"
    for profile in PROFILES:
        found = summary(validity=profile, search="random")
        low, high = found.failure_rate_interval or (0.0, 1.0)
        yield (
            f"| `{profile}` | {percent(found.failure_rate)} | {percent(low)} to {percent(high)} "
            f"| {percent(found.turn_failure_rate)} |"
        )
    yield ""
    yield f"| slips | {' | '.join(f'{percent(rate, 0)} of the words' for rate in RATES)} |"
    yield f"| --- |{' --- |' * len(RATES)}"
    for model in MODELS:
        cells = []
        for rate in RATES:
            found = summary(validity="natural", search="noise", noise=(model,), slip_rate=rate)
            cells.append(_cell(found.estimated_failures))
        yield f"| {model} | {' | '.join(cells)} |"


def _cell(found: EstimatedFailures | None) -> str:
    if found is None or found.per_1000 is None:
        return found.reason if found else "nothing can slip"
    if found.interval is None:
        return f"{found.per_1000:.1f} (too few dialogues for an interval)"
    low, high = found.interval
    return f"{found.per_1000:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    sys.exit(run(__doc__, lines, turns=(1000, "how many"), seed=(0, "of dialogues and draws")))
