"""Measures the time and memory of the reports and the gate for a run of any size.

The results are those of a small campaign on the shipped dialogues, again and again under new
names, in a folder of results as a campaign writes it::

    python -m tools.scale.reports --turns 10000 --work .work/scale
    python -m tools.scale.reports --turns 100000 --work .work/scale --only gate

Each step runs in a process of its own, with its own peak memory. The tool prints the passes over
the results, seconds and megabytes. The step ``start`` measures the imports alone.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import OutputSettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, turn_keys
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.gate.baseline import Session, baseline_text, make_baseline, read_baseline
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.verdict import Gates
from pytest_dstfuzz.scale.results import DialogueResults, FolderReport, ResultFolder, StoredResults
from pytest_dstfuzz.scale.runs import manifest_of
from pytest_dstfuzz.totals.totals import Totals

STEPS: Final = ("start", "figures", "json", "html", "baseline", "gate")
_SEED: Final = 7


def heard(context: Context) -> dict[str, str]:
    """A cheap tracker that understands a few words if they are spelled correctly."""
    words = " ".join(context.user_utterances).lower().replace("?", "").replace(",", "").split()
    known = {"parking": "hotel-parking", "train": "train-day", "taxi": "taxi-leaveat"}
    state = {slot: "yes" for word, slot in known.items() if word in words}
    after = (words[place + 1] for place, word in enumerate(words[:-1]) if word == "the")
    return {**state, **({"hotel-area": last} if (last := next(after, "")) else {})}


class CountedResults(StoredResults):
    """Results that count how often they are read from beginning to end."""

    passes = 0

    def __iter__(self) -> Iterator[TurnResult]:
        CountedResults.passes += 1
        return super().__iter__()


def make_folder(path: Path, turns: int) -> None:
    """Write a folder with results for ``turns`` turns."""
    settings = Settings.of(turns=400, seed=_SEED)
    campaign = Campaign(heard, "sample", settings)
    dialogues: dict[str, list[TurnResult]] = {}
    for result in campaign:
        dialogues.setdefault(result.dialogue_id, []).append(result)
    manifest = replace(manifest_of(campaign), planned=turns)
    folder = ResultFolder.create(path, manifest)
    place = written = 0
    while written < turns:
        for name, results in dialogues.items():
            if written < turns:
                again = (_renamed(one, f"{name}-{place:06d}") for one in results)
                found = DialogueResults(place, "metamorphic", tuple(again))
                folder.append(found)
                place, written = place + 1, written + len(results)
    folder.close()


def _renamed(result: TurnResult, dialogue: str) -> TurnResult:
    return replace(result, dialogue_id=dialogue, id=f"sample-test-{dialogue}-t{result.turn_index}")


def contents(results: StoredResults, data: DialogueSet) -> dict[str, tuple[str, ...]]:
    """Return the keys of the turns of every dialogue."""
    keys = {dialogue.id: turn_keys(dialogue) for dialogue in data.dialogues}
    return {turn.dialogue_id: keys[turn.dialogue_id[:-7]] for turn in results}


def run(step: str, path: Path) -> None:
    """Do one step, and print its time and memory."""
    folder = ResultFolder.open(path / "results")
    begin = time.perf_counter()
    baseline = path / "baseline.json"
    if step in ("figures", "json", "html"):
        report = FolderReport(folder)
        report.results = CountedResults(folder)
        if step != "figures":
            report.write(OutputSettings(report=(str(path / f"report.{step}"),)))
    elif step in ("baseline", "gate"):
        results = CountedResults(folder)
        data = load_dialogues("sample")
        keys = contents(folder.results, data)
        begin = time.perf_counter()
        campaign = {"search": "random", "seed": _SEED, "normalisation": data.normalisation}
        groups = {"tests": results}
        if step == "baseline":
            write_text(baseline, baseline_text(make_baseline(groups, campaign, "heard", keys)))
        else:
            session = Session(groups, Totals.of(results), campaign, keys, _SEED)
            judge(session, Gates(), read_baseline(baseline))
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    counted = CountedResults.passes
    print(f"{step:<9} {counted:>2} passes {seconds:>8.1f} s {memory:>8.0f} MB", flush=True)


def main() -> None:
    """Make the results, and do each step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", choices=STEPS, help="one step, in this process")
    given = parser.parse_args()
    path = given.work / str(given.turns)
    if not (path / "results").is_dir():
        make_folder(path / "results", given.turns)
    if given.only:
        run(given.only, path)
        return
    for step in STEPS:
        command = [sys.executable, "-m", "tools.scale.reports", "--turns", str(given.turns)]
        subprocess.run([*command, "--work", str(given.work), "--only", step], check=True)  # noqa: S603 - this very program


if __name__ == "__main__":
    main()
