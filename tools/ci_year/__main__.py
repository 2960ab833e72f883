"""Simulates a year of CI: 84 builds of three bots, against the baseline gate with default options.

``python -m tools.ci_year --output DIR`` writes a baseline of each trusted bot, runs each of its
builds under the gate as a job would, and prints which builds the gate stopped. A build counts as
stopped if pytest does not exit with 0. New violations are counted here from the two reports, by
variants with the same text and context, so that the count does not depend on the gate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.report.json_report import read_report
from tools.ci_year import clinic, museum, parcels
from tools.ci_year.builds import VARIABLE, Build, Label

_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parents[1]
_DATA: Final = _HERE / "data"
#: Whether the gate has to stop a build, by its label.
_STOPPED: Final[dict[Label, bool]] = {"harmless": False, "changed": True, "brittle": True}
_BOTS: Final[dict[str, tuple[tuple[Build[Any], ...], list[str]]]] = {
    "clinic": (clinic.BUILDS, ["--dst-model=tools.ci_year.clinic:track"]),
    "parcels": (
        parcels.BUILDS,
        [
            "--dst-model=tools.ci_year.parcels:answer",
            "--dst-outcome=tool-calls",
            f"--dst-tools={_DATA / 'parcels.tools.json'}",
        ],
    ),
    "museum": (museum.BUILDS, ["--dst-model=tools.ci_year.museum:reply", "--dst-outcome=reply"]),
}


@dataclass(frozen=True)
class BuildRun:
    """The result of one build: pytest's exit status, and changes against the trusted bot."""

    bot: str
    name: str
    label: Label
    exit_status: int
    verdict: str
    new_violations: int

    @property
    def right(self) -> bool:
        """Whether the gate stopped or passed this build as its label says."""
        return (self.exit_status != 0) is _STOPPED[self.label]


def run(bot: str, build: str, folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Run pytest on one build; return its exit status and its report.

    Args:
        bot: One of the three bots.
        build: A build of it; empty for the trusted one.
        folder: A folder for the baseline and the reports of the bot.
        more: More options of pytest.

    Raises:
        RuntimeError: If pytest wrote no report.
    """
    report = folder / f"{build or 'trusted'}.json"
    report.unlink(missing_ok=True)
    options = [
        *_BOTS[bot][1],
        f"--dst-data={_DATA / f'{bot}.jsonl'}",
        f"--dst-baseline={folder / 'baseline.json'}",
        f"--dst-report={report}",
        f"--rootdir={folder}",
        *more,
    ]
    environment = os.environ | {VARIABLE: build, "PYTHONPATH": str(_ROOT)}
    ended = subprocess.run(  # noqa: S603 - our own interpreter with fixed arguments
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / f"{build or 'trusted'}.txt").write_text(ended.stdout + ended.stderr, "utf-8")
    if not report.exists():
        raise RuntimeError(f"{bot} {build}: no report\n{ended.stdout}\n{ended.stderr}")
    return ended.returncode, read_report(report)


def outcomes(report: dict[str, Any]) -> dict[tuple[str, int, str], str]:
    """Return the outcome of each variant under its turn, index, text and context."""
    return {
        (turn["id"], variant["index"], json.dumps([variant["text"], variant["context"]])): (
            variant["outcome"]
        )
        for turn in report["turns"]
        for variant in turn["variants"]
    }


def new_violations(trusted: dict[str, Any], build: dict[str, Any]) -> int:
    """Return how many variants of the trusted report held and break in the report of a build."""
    before = outcomes(trusted)
    after = outcomes(build)
    return sum(after[key] == "violation" and before.get(key) == "held" for key in after)


def runs(bot: str, folder: Path, labels: Sequence[Label]) -> Iterator[BuildRun]:
    """Write the baseline of ``bot``, then run its builds with these labels under the gate."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "baseline.json").unlink(missing_ok=True)
    _, trusted = run(bot, "", folder, "--dst-update-baseline")
    for build in (build for build in _BOTS[bot][0] if build.label in labels):
        status, report = run(bot, build.name, folder)
        verdict = (report["gate"] or {}).get("verdict", "none")
        new = new_violations(trusted, report)
        yield BuildRun(bot, build.name, build.label, status, verdict, new)


def main() -> int:
    """Print one line a build and the sums; exit with 1 if a harmless build was stopped."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for reports")
    parser.add_argument("--bot", choices=list(_BOTS), action="append", help="default: all three")
    parser.add_argument("--label", choices=list(_STOPPED), action="append", help="default: all")
    chosen = parser.parse_args()
    done: list[BuildRun] = []
    print(
        "| bot | build | label | new violations | exit | verdict | |\n|---|---|---|---|---|---|---|"
    )
    for bot in chosen.bot or _BOTS:
        for one in runs(bot, (chosen.output / bot).resolve(), chosen.label or list(_STOPPED)):
            done.append(one)
            cells = (bot, one.name, one.label, one.new_violations, one.exit_status, one.verdict)
            print(
                "|", " | ".join(map(str, cells)), "|", "" if one.right else "wrong", "|", flush=True
            )
    for label, stopped in _STOPPED.items():
        of_label = [one for one in done if one.label == label]
        right = sum(one.right for one in of_label)
        if of_label:
            print(f"{label}: {right} of {len(of_label)} {'stopped' if stopped else 'passed'}")
    return int(any(one.label == "harmless" and not one.right for one in done))


if __name__ == "__main__":
    sys.exit(main())
