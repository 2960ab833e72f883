"""Kills runs at random moments (``kill -9``): ``python -m tools.scale.kills --output DIR``.

An actor, the driver and the process of a part are each killed when a random share of the results
exists. The same command then continues the run. The report must be that of an undisturbed run. The
tool compares the contexts that were asked once more with those of the unfinished blocks. The
tracker records how often it is asked.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.scale.results import ResultFolder
from pytest_dstfuzz.scale.runs import blocks_of
from tools.scale.runs import carried_out, dstfuzz, without_run

ACTORS: Final = 2
PARTS: Final = 2
WHO: Final = ("actor", "driver", "part")
#: Seconds at the most that a process goes on after the moment, so that it is within a block.
_LATER: Final = 0.5
#: It hears some words, takes its time, and writes down a byte for each context, a file a process.
_BOT: Final = """
import os
import time

WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}

def heard(context):
    time.sleep(float(os.environ["DSTFUZZ_KILLS_SECONDS"]))
    with open(f"asked/{os.getpid()}", "ab") as file:
        file.write(b".")
    said = " ".join(context.user_utterances).lower().split()
    return {slot: word for word, slot in WORDS.items() if word in said}
"""


class Trial:
    """The runs in one folder: undisturbed runs, and runs that are killed."""

    def __init__(self, folder: Path, words: Sequence[str], rng: random.Random) -> None:
        self._folder, self._words, self._rng = folder, words, rng
        (folder / "asked").mkdir(parents=True)
        (folder / "counted_bot.py").write_text(_BOT, encoding="utf-8")
        self._number = 0
        self._command("plain", "--report=plain.json")
        self._plain = without_run(folder / "plain.json")
        self._command("counted")
        #: Contexts that each process asks for before it runs anything.
        self._preflight = sum(self._asked) - 2 * self._manifest_asked("counted")
        self._preflight //= 2
        self._undisturbed: dict[str, int] = {}
        for who in ("driver", "part"):
            before = self._counted
            self._to_the_end(who, who)
            self._undisturbed[who] = self._counted - before
        self._undisturbed["actor"] = self._undisturbed["driver"]

    def _manifest_asked(self, name: str) -> int:
        return ResultFolder.open(self._folder / name).manifest.asked

    @property
    def _asked(self) -> list[int]:
        """Return the number of contexts that each process has asked so far."""
        return [file.stat().st_size for file in (self._folder / "asked").iterdir()]

    @property
    def _counted(self) -> int:
        """Return the number of contexts asked so far, without those of preflights."""
        asked = self._asked
        return sum(asked) - len(asked) * self._preflight

    def _command(self, results: str, *more: str) -> None:
        words = dstfuzz("campaign", *self._words, f"--results={results}", *more)
        carried_out(words, self._folder)

    def _lines(self, who: str, name: str) -> list[list[str]]:
        """Return the commands of a run. The first one is killed."""
        if who == "part":
            return [
                dstfuzz(
                    *("campaign", *self._words, f"--shard={number}/{PARTS}"),
                    f"--results={name}-{number}",
                )
                for number in range(1, PARTS + 1)
            ]
        ray = ("--ray", f"--ray-actors={ACTORS}", "--ray-gpus=0")
        written = (f"--results={name}", f"--report={name}.json")
        return [dstfuzz("campaign", *self._words, *ray, *written)]

    def _to_the_end(self, who: str, name: str) -> str:
        for words in self._lines(who, name):
            carried_out(words, self._folder)
        if who == "part":
            parts = [f"{name}-{number}" for number in range(1, PARTS + 1)]
            merged = (f"--output={name}", f"--report={name}.json")
            carried_out(dstfuzz("merge", *parts, *merged), self._folder)
        return without_run(self._folder / f"{name}.json")

    def killed(self, who: str) -> tuple[float, int, bool]:
        """Kill once.

        Return the share of results by then, the contexts asked again, and equality.
        """
        # A process may be through before it is hit: then another one is.
        while (found := self._try(who)) is None:
            pass
        return found

    def _try(self, who: str) -> tuple[float, int, bool] | None:
        self._number += 1
        name, share, before = f"{who}-{self._number}", self._rng.random(), self._counted
        started = subprocess.Popen(  # noqa: S603 - our own interpreter
            self._lines(who, name)[0],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        planned = self._planned("part-1" if who == "part" else "driver")
        results = self._folder / (f"{name}-1" if who == "part" else name)
        done = self._wait(results, share * planned, started)
        victims = sorted(actors_of(started.pid)) if who == "actor" else [started.pid]
        if started.poll() is not None or not victims:
            started.wait()
            return None
        os.kill(self._rng.choice(victims), signal.SIGKILL)
        status = started.wait()
        if who == "actor":
            if status:
                sys.exit(f"the run whose actor was killed ended with {status}")
            text = without_run(self._folder / f"{name}.json")
        else:
            text = self._to_the_end(who, name)
        again = self._counted - before - self._undisturbed[who]
        return done / planned, again, text == self._plain

    def _planned(self, name: str) -> int:
        return (self._folder / name / "results-0001.jsonl").read_bytes().count(b"\n")

    def _wait(self, folder: Path, lines: float, process: subprocess.Popen[bytes]) -> int:
        """Wait until there are ``lines`` results, and some time more. Return how many there are."""
        file = folder / "results-0001.jsonl"
        found = 0
        while found < max(1.0, lines) and process.poll() is None:
            time.sleep(0.02)
            found = file.read_bytes().count(b"\n") if file.exists() else 0
        time.sleep(self._rng.random() * _LATER)
        return found

    def window(self, who: str) -> int:
        """Return the number of contexts of the blocks that may be unfinished at once, at most."""
        name = "part-1" if who == "part" else "driver"
        folder = ResultFolder.open(self._folder / name)
        calls: dict[str, int] = {}
        for result in folder.results:
            calls[result.dialogue_id] = calls.get(result.dialogue_id, 0) + result.calls
        settings = folder.manifest.read_settings()
        campaign = Campaign(lambda _: {}, settings=settings)
        blocks = sorted(
            sum(calls.get(one.planned[0].id, 0) for one in block)
            for block in blocks_of(campaign.drawn, shard=settings.data.shard)
        )
        return sum(blocks[-ACTORS:] if who == "driver" else blocks[-1:])


def actors_of(driver: int) -> Iterator[int]:
    """Yield those child processes of a driver that are actors."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            line = (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        parents[int(folder.name)] = int(status.rpartition(")")[2].split()[1])
        if line.startswith("ray::BlockWorker"):
            named.append(int(folder.name))
    for process in named:
        above = process
        while above in parents and above != driver:
            above = parents[above]
        if above == driver:
            yield process


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table. The exit status is 1 if a report differs, or too much was asked again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for all runs")
    parser.add_argument("--data", default="sample")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.001, help="of a context")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    os.environ["DSTFUZZ_KILLS_SECONDS"] = str(given.seconds)
    data = given.data if given.data == "sample" else str(Path(given.data).resolve())
    words = ("--model=counted_bot:heard", f"--data={data}", f"--turns={given.turns}")
    trial = Trial(given.output, (*words, "--variants=3"), random.Random(given.seed))  # noqa: S311 - seeded on purpose
    print("| killed | done | asked again | window | equal |")
    print("| --- | ---: | ---: | ---: | --- |", flush=True)
    good = True
    for who in WHO:
        window = trial.window(who)
        for _ in range(given.moments):
            share, again, same = trial.killed(who)
            good = good and same and again <= window
            print(f"| {who} | {share:.0%} | {again} | {window} | {same} |", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
