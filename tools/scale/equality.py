"""Compares a whole run, merged parts and Ray: ``python -m tools.scale.equality --output DIR``.

The same dialogues are run in one process, in 2, 4 and 7 parts that are then merged, and by 1 and 2
actors of Ray, for several searches under two relations. The JSON reports must be the same bytes,
except for the section ``run``. A table says for each report whether it is.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.scale.runs import carried_out, dstfuzz, turns_of, without_run

PARTS: Final = (2, 4, 7)
ACTORS: Final = (1, 2)


def runs(words: Sequence[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Run a campaign in each way. Yield the name of the way and the path of the report."""
    for name in ("plain", *(f"{count} parts" for count in PARTS), *(f"Ray {n}" for n in ACTORS)):
        short = name.replace(" ", "-")
        report = folder / f"{short}.json"
        written = (f"--report={report.name}",)
        if name == "plain":
            carried_out(dstfuzz("campaign", *words, f"--results={short}", *written), folder)
        elif name.startswith("Ray"):
            actors = ("--ray", f"--ray-actors={name.split()[1]}", "--ray-gpus=0")
            carried_out(
                dstfuzz("campaign", *words, *actors, f"--results={short}", *written), folder
            )
        else:
            count = int(name.split()[0])
            parts = [f"{short}-{number}" for number in range(1, count + 1)]
            for number, part in enumerate(parts, 1):
                own = (f"--shard={number}/{count}", f"--results={part}")
                carried_out(dstfuzz("campaign", *words, *own), folder)
            carried_out(dstfuzz("merge", *parts, f"--output={short}", *written), folder)
        yield name, report


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table. The exit status is 1 if reports differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for all runs")
    parser.add_argument("--model", default="trade")
    parser.add_argument("--data", default="sample")
    parser.add_argument("--split", default="test")
    parser.add_argument("--dialogues", type=int, default=200)
    parser.add_argument("--variants", type=int, default=5)
    parser.add_argument("--searches", default="random,near-value,agent")
    parser.add_argument("--relation", default="metamorphic,value-swap")
    given = parser.parse_args(arguments)
    data = given.data if given.data == "sample" else str(Path(given.data).resolve())
    turns = turns_of(data, given.split, given.dialogues)
    print(f"{turns} turns\n\n| search | run | seconds | digest | as plain |")
    print("| --- | --- | ---: | --- | --- |", flush=True)
    same = True
    for search in given.searches.split(","):
        folder = given.output / search
        folder.mkdir(parents=True)
        words = (
            *(f"--model={given.model}", f"--data={data}", f"--split={given.split}"),
            *(f"--turns={turns}", f"--variants={given.variants}", f"--search={search}"),
            f"--relation={given.relation}",
        )
        started, plain = time.perf_counter(), ""
        for name, report in runs(words, folder):
            text = without_run(report)
            plain = plain or text
            same = same and text == plain
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            seconds = time.perf_counter() - started
            print(f"| {search} | {name} | {seconds:.0f} | {digest} | {text == plain} |", flush=True)
            started = time.perf_counter()
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
