"""Measures what Ray costs and gains: ``python -m tools.scale.ray_speed --output DIR``.

One campaign runs in one process, with one actor and with two, in turn. For each way, the tool
measures the seconds from the first result to the last, which leaves out the start of Ray and of the
tracker, and the processor seconds of all processes. It also measures what a block costs the driver
and an actor. From this follows how fast more actors would be, because the driver handles one block
at a time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.scale.driver import run_on_ray
from pytest_dstfuzz.scale.manifest import RunManifest
from pytest_dstfuzz.scale.ray import RayOptions
from pytest_dstfuzz.scale.results import EncodedResults, ResultFolder
from pytest_dstfuzz.scale.worker import BlockWorker, SentResults, Surroundings, Task

CURVE: Final = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class BlockCost:
    """The processor seconds that one block needs, and its size."""

    actor: float
    write: float
    bytes: int


def block_costs(settings: Settings) -> list[BlockCost]:
    """Run the blocks in this process as an actor does, and write them as the driver does."""
    worker = BlockWorker(settings, Surroundings.here())
    manifest = worker.prepare()
    if not isinstance(manifest, RunManifest):
        raise UserError(manifest.message)
    found: list[BlockCost] = []
    with tempfile.TemporaryDirectory() as name:
        folder = ResultFolder.create(Path(name) / "run", manifest)
        for number, places in enumerate(worker.plan().blocks):
            before = time.process_time()
            sent = [
                one
                for one in worker.run(Task(number, places, frozenset()))
                if isinstance(one, SentResults)
            ]
            between = time.process_time()
            results: list[EncodedResults] = [one for part in sent for one in part.results]
            for one in results:
                folder.append(one)
            size = sum(len(one.text) for one in results)
            after = time.process_time()
            found.append(BlockCost(between - before, after - between, size))
        folder.close()
    return found


def seconds_on_ray(settings: Settings, actors: int, folder: Path) -> tuple[float, float]:
    """Return the seconds from the first manifest to the end, and the driver's processor seconds."""
    before = time.process_time()
    options = RayOptions(actors=actors, gpus=0)
    found = run_on_ray(settings, options, folder, lambda _done, _planned: None)
    return found.manifest.seconds, time.process_time() - before


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all measurements, and the curve over the number of actors."""
    from pytest_dstfuzz.campaign.campaign import Campaign  # noqa: PLC0415 - beside what is timed
    from pytest_dstfuzz.models.neural import threads  # noqa: PLC0415 - likewise
    from pytest_dstfuzz.scale.runs import run_into  # noqa: PLC0415 - likewise

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for all runs")
    parser.add_argument("--model", default="trade")
    parser.add_argument("--data", default="sample")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--variants", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    settings = Settings.of(
        model=given.model, data=given.data, turns=given.turns, variants=given.variants
    )
    rows: dict[str, list[float]] = {"plain": [], "1 actor": [], "2 actors": []}
    drivers: list[float] = []
    for number in range(given.rounds):
        campaign = Campaign(given.model, settings=settings)
        with threads(1):  # As an actor has, which is given one processor.
            folder = run_into(
                campaign, given.output / f"plain-{number}", lambda _done, _planned: None
            )
        rows["plain"].append(folder.manifest.seconds)
        for actors, name in ((1, "1 actor"), (2, "2 actors")):
            path = given.output / f"{actors}-{number}"
            wall, driver = seconds_on_ray(settings, actors, path)
            rows[name].append(wall)
            # With everything done, what remains is Ray's start.
            _, start = seconds_on_ray(settings, actors, path)
            drivers.append(driver - start)
    print("| run | wall seconds, each round | least |\n| --- | --- | ---: |")
    for name, found in rows.items():
        print(f"| {name} | {', '.join(f'{one:.1f}' for one in found)} | {min(found):.1f} |")
    least = {name: min(found) for name, found in rows.items()}
    print(f"\n1 actor / plain: {least['1 actor'] / least['plain']:.2f}")
    print(f"1 actor / 2 actors: {least['1 actor'] / least['2 actors']:.2f}")
    _curve(block_costs(settings), statistics.median(drivers))


def _curve(costs: Sequence[BlockCost], driver: float) -> None:
    """Print what a block costs, and how fast many actors would be."""
    actor = statistics.mean(cost.actor for cost in costs)
    write = statistics.mean(cost.write for cost in costs)
    whole = driver / len(costs)
    size = statistics.mean(cost.bytes for cost in costs)
    print(
        f"\nof a block, processor seconds: {actor:.2f} in the actor; in the driver {write:.4f} to "
        f"write {size / 1e3:.0f} kB, {whole:.4f} with all that Ray does"
    )
    print("\n| actors | times one, driver as measured | driver that only writes |")
    print("| ---: | ---: | ---: |")
    for count in CURVE:
        fast = [min(count, actor / each) for each in (whole, write)]
        print(f"| {count} | {fast[0]:.1f} | {fast[1]:.1f} |")
    print(f"\nit bends at {actor / whole:.0f} actors, and at the latest at {actor / write:.0f}")


if __name__ == "__main__":
    main()
