"""What the search ``noise`` saves: its intervals beside those of plain sampling, by calls.

::

    python -m tools.noise.calls --model trade --data ../shared/data/multiwoz21 --dialogues 60

Plain sampling draws what people make of a turn, most often nothing, and asks the tracker where
something slips. Both searches are campaigns on the same dialogues, judged by the same code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.expected import counted, expected_failures
from pytest_dstfuzz.config.settings import build_settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.search.noise import NoiseSearch
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.seeding import stream

#: Draws of a turn: of the search noise, and of plain sampling.
SAMPLES: Final = (3, 5, 8, 12)
PLAIN: Final = (20, 40, 80, 160, 320)


class PlainSearch(Search):
    """Draws what people make of a turn, clean or not; each draw stands for as much as any other."""

    name = "plain"
    by_density = True

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def turn(self, task: SearchTask) -> PlainTurn:
        """Begin a turn."""
        return PlainTurn(self, task)


class PlainTurn(TurnSearch):
    """The attempts of `PlainSearch` at one turn."""

    def __init__(self, search: PlainSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - nothing is drawn again
        """Return what one person makes of the turn."""
        task, support = self.task, self.task.source.support
        rng = task.stream(self.search.name, self.search.seed, number)
        edits = support.noisy.draw(rng, task.perturber.noise.rate) if support else ()
        return Proposal(task.perturber.remake(task.source, edits), NO_ACTION, 1 / task.variants)


class Row(NamedTuple):
    """Figures of a search at so many draws, over seeds."""

    search: str
    variants: int
    #: Contexts asked for a turn, but for the clean ones.
    calls: float
    per_1000: tuple[float, ...]
    width: float


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Run the campaigns."""
    data = load_dialogues(given.data, given.split)
    places = stream(given.seed, "dialogues").permutation(len(data.dialogues))[: given.dialogues]
    data = replace(data, dialogues=tuple(data.dialogues[place] for place in sorted(places)))
    for kind, sizes in ((NoiseSearch, SAMPLES), (PlainSearch, PLAIN)):
        for size in sizes:
            calls, found, widths = [], [], []
            for seed in range(given.seeds):
                settings = build_settings(
                    {
                        "validity": "natural",
                        "attack": "non-cumulative",
                        "variants": size,
                        "seed": seed,
                        "shrink": False,
                        "turns": None,
                    }
                )
                search = NoiseSearch(seed, 1) if kind is NoiseSearch else PlainSearch(seed)
                results = Campaign(given.model, data, settings, search=search)
                turns = [turn for turn in results if counted(turn)]
                figures = expected_failures(turns)
                if figures is None or figures.per_1000 is None or figures.interval is None:
                    continue
                calls.append(sum(turn.calls - 1 for turn in turns) / len(turns))
                found.append(figures.per_1000)
                widths.append(figures.interval[1] - figures.interval[0])
            yield Row(kind.name, size, fmean(calls), tuple(found), fmean(widths))


def main() -> int:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--dialogues", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the choice of dialogues")
    print(
        "| search | draws | calls a turn | of 1,000 turns, by seed | mean width of the interval |"
    )
    print("| --- | --- | --- | --- | --- |")
    try:
        for row in rows(parser.parse_args()):
            by_seed = ", ".join(f"{value:.2f}" for value in row.per_1000)
            cells = (row.search, row.variants, f"{row.calls:.2f}", by_seed, f"{row.width:.2f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    except DstFuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
