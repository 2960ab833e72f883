"""Measures the time to load, read and sample a data set: ``python -m tools.scale.reading DATA``.

`tools.scale.memory` measures the memory for it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import pairwise

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line: turns, and seconds of each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a file, a folder or a name, as --dst-data takes them")
    parser.add_argument("--split", default="test")
    parser.add_argument("--outcome", default="state", choices=("state", "reply", "tool-calls"))
    given = parser.parse_args(arguments)
    times = [time.perf_counter()]
    data = load_dialogues(given.data, given.split, outcome=given.outcome)
    times.append(time.perf_counter())
    characters = sum(len(turn.user) for turn in data.turns())
    times.append(time.perf_counter())
    turns = data.turn_count()
    # Each of them read once, as a campaign does.
    planned = sum(last + 1 for _, last in sample_turns(data, max(1, turns // 2), seed=0))
    times.append(time.perf_counter())
    load, over, sample = (end - start for start, end in pairwise(times))
    print(
        f"{turns:,} turns, {len(data.dialogues):,} dialogues, {characters:,} characters: load "
        f"{load:.2f} s, go over {over:.2f} s, sample and read {planned:,} turns {sample:.2f} s"
    )


if __name__ == "__main__":
    main()
