"""Ten ordinary runs under coverage, and one turn for a bot of each kind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tools.house.fixed_runs import RUNS, TOP, FixedRun, environment
from tools.house.ordinary_data import write_ferries

PACKAGE: Final = TOP / "pytest_dstfuzz"
_PIZZA: Final = RUNS["pizza-bot"]
_BASELINE: Final = "--dst-baseline=baseline.json"
_SAMPLE: Final = ("--dst-model=tools.house.ordinary_data:track", "--dst-turns=20")
_FERRY: Final = ("--dst-model=tools.house.ordinary_data:track_ferry", "--dst-data=sgd")


def _more(run: FixedRun, *arguments: str) -> FixedRun:
    return replace(run, arguments=(*run.arguments, *arguments))


#: The runs, each with its steps. All of them write the JSON report and the page.
ORDINARY: Final[Mapping[str, Sequence[FixedRun]]] = {
    "belief states": [_PIZZA],
    "replies": [RUNS["replies"]],
    "tool calls": [RUNS["tool-calls"]],
    "noise search": [_more(_PIZZA, "--dst-search=noise")],
    "baseline and gate": [
        _more(_PIZZA, _BASELINE, "--dst-update-baseline"),
        _more(_PIZZA, _BASELINE, "--dst-max-failure-rate=20%"),
    ],
    "neighbour-swap": [FixedRun((*_SAMPLE, "--dst-relation=neighbour-swap"))],
    "value-swap": [FixedRun((*_SAMPLE, "--dst-relation=value-swap"))],
    "negation": [FixedRun((*_SAMPLE, "--dst-relation=negation"))],
    "TRADE": [FixedRun(("--dst-model=trade", "--dst-turns=10"))],
    "SGD": [FixedRun(_FERRY, write_ferries)],
}
#: One turn of each kind, with a violation.
TURNS: Final[Mapping[str, FixedRun]] = {
    "state": _more(_PIZZA, "-k=pizza-04-t0"),
    "reply": _more(RUNS["replies"], "-k=carla-t0"),
    "tool call": _more(RUNS["tool-calls"], "-k=friday-t0"),
}
_TURN_FILES: Final = "turn-files.txt"
#: Exit statuses of a run that came to its end.
_ENDED: Final = (0, 1)


@dataclass(frozen=True)
class Executed:
    """For each file of the package, how many statements it has, and how many were executed."""

    statements: Mapping[Path, int]
    executed: Mapping[Path, int]

    def share(self, paths: Sequence[Path]) -> float:
        """Return the per cent of the statements of some files that were executed."""
        total = sum(self.statements[path] for path in paths)
        return 100 * sum(self.executed[path] for path in paths) / total if total else 0.0

    def count_untouched(self, paths: Sequence[Path]) -> int:
        """Return how many of some files have statements, but none that was executed."""
        return sum(self.statements[path] > 0 == self.executed[path] for path in paths)


def measure_runs(paths: Sequence[Path], names: Sequence[str] = tuple(ORDINARY)) -> Executed:
    """Run some of `ORDINARY` under coverage, and return what they executed in some files."""
    import coverage  # noqa: PLC0415 - the extra dev has it, and lines are counted without it

    with tempfile.TemporaryDirectory() as kept:
        config, data = Path(kept) / "coveragerc", Path(kept) / "data"
        lines = ("[run]", f"source = {PACKAGE}", "parallel = true", f"data_file = {data}", "")
        config.write_text("\n".join(lines), encoding="utf-8")
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                ORDINARY[name][0].prepare(Path(folder))
                for step in ORDINARY[name]:
                    outputs = ("--dst-report=report.json", "--dst-report=page.html")
                    measured = ("coverage", "run", f"--rcfile={config}", "-m")
                    _run(Path(folder), measured, (*step.arguments, *outputs))
        found = coverage.Coverage(data_file=str(data), config_file=str(config))
        found.combine()
        found.load()
        statements, executed = {}, {}
        for path in paths:
            _, all_lines, _, missing, _ = found.analysis2(str(path))
            statements[path] = len(all_lines)
            executed[path] = len(all_lines) - len(missing)
    return Executed(statements, executed)


def files_of_turn(kind: str) -> list[str]:
    """Return the files of the package that one turn of a kind of bot passes, see `turn_files`."""
    run = TURNS[kind]
    with tempfile.TemporaryDirectory() as folder:
        run.prepare(Path(folder))
        kept = Path(folder) / _TURN_FILES
        plugin = ("-p", "tools.house.turn_files", "--dst-report=report.json")
        _run(Path(folder), (), (*run.arguments, *plugin), DSTFUZZ_TURN_FILES=str(kept))
        return kept.read_text(encoding="utf-8").splitlines()


def _run(folder: Path, before: Sequence[str], arguments: Sequence[str], **env: str) -> None:
    """Run pytest in a folder. If it does not come to its end, end this process, too."""
    pytest = ("pytest", "-q", f"--rootdir={folder}", *arguments)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", *before, *pytest],
        cwd=folder,
        env={**environment(), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in _ENDED:
        ended = f"{' '.join(pytest)} ended with {done.returncode}:\n"
        sys.exit(f"{ended}{done.stdout}{done.stderr}")
