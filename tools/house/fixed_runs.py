"""Compares eight fixed runs of two versions: ``python -m tools.house.fixed_runs``.

``--output DIR`` runs each of them in a process of its own. It writes the reports to
``DIR/NAME.json`` and the exit statuses to ``DIR/statuses.json``. ``--compare BEFORE AFTER`` prints
each difference of two such folders, and exits with 1 if there is one. Times, paths, versions and
ports are left out. `RENAMED` and ``--renamed OLD=NEW`` give keys and whole texts their new names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.house.fixed_bots import QUESTIONS, served

TOP: Final = Path(__file__).parents[2]
#: Keys and whole texts of an earlier version, and what they are called now.
RENAMED: Final[Mapping[str, str]] = {}
#: Paths in a report at which two runs of one version may differ.
_IGNORED: Final = re.compile(r"tool\.version|run\.(?!contexts\b|usage\b).*")
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+")
_STATUSES: Final = "statuses.json"


def _nothing(folder: Path) -> None:
    """Leave the folder of a run empty."""


def _copy(example: str) -> Callable[[Path], None]:
    """Return a function that copies an example into the folder of a run."""

    def copy(folder: Path) -> None:
        shutil.copytree(TOP / "examples" / example, folder, dirs_exist_ok=True)

    return copy


def _write_questions(folder: Path) -> None:
    rows = [{"dialogue_id": name, "users": list(users)} for name, users in QUESTIONS.items()]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "questions.jsonl").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class FixedRun:
    """A run: the arguments of pytest, and a function that fills the folder of the run."""

    arguments: Sequence[str]
    prepare: Callable[[Path], None] = _nothing


_TRADE: Final = ("--dst-model=trade", "--dst-turns=30")
_DESK: Final = ("--dst-model=tools.house.fixed_bots:reply", "--dst-outcome=reply")
#: ``ADDRESS`` stands for that of the service.
RUNS: Final[Mapping[str, FixedRun]] = {
    "trade-random": FixedRun((*_TRADE, "--dst-search=random")),
    "trade-noise": FixedRun((*_TRADE, "--dst-search=noise")),
    "trade-agent": FixedRun((*_TRADE, "--dst-search=agent")),
    "pizza-bot": FixedRun(
        ("test_pizza_bot.py", "--dst-data=conversations.jsonl"), _copy("pizza_bot")
    ),
    "service": FixedRun(("--dst-model=ADDRESS", "--dst-turns=30")),
    "tool-calls": FixedRun(("test_table_agent.py",), _copy("tool_calls")),
    "replies": FixedRun((*_DESK, "--dst-data=questions.jsonl"), _write_questions),
    "relations": FixedRun((*_TRADE, "--dst-relation=neighbour-swap,value-swap")),
}


def write_reports(folder: Path, names: Sequence[str]) -> None:
    """Run some of `RUNS`, and write their reports and exit statuses into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    statuses = {}
    with served() as address:
        for name in names:
            arguments = [word.replace("ADDRESS", address) for word in RUNS[name].arguments]
            report = folder.resolve() / f"{name}.json"
            statuses[name] = _carry_out(arguments, RUNS[name].prepare, report)
            print(f"{name}: exit status {statuses[name]}", flush=True)
    (folder / _STATUSES).write_text(json.dumps(statuses, indent=1) + "\n", encoding="utf-8")


def environment() -> dict[str, str]:
    """Return the environment variables of a run: those of this process, without those of a CI."""
    known = {
        name: text for name, text in os.environ.items() if not name.startswith(("CI", "GITHUB"))
    }
    return {**known, "PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1"}


def _carry_out(arguments: list[str], prepare: Callable[[Path], None], report: Path) -> int:
    """Run pytest in a folder of its own and return its exit status."""
    report.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        outputs = [f"--rootdir={folder}", "--dst-cache=no", f"--dst-report={report}"]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "pytest", "-q", *arguments, *outputs],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    if not report.exists():
        sys.exit(f"{' '.join(arguments)} left no report:\n{done.stdout}{done.stderr}")
    return done.returncode


def differences(before: Path, after: Path, renamed: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each difference of two folders of reports."""
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.json")})
    for name in names:
        files = [folder / name for folder in (before, after)]
        if missing := [file for file in files if not file.exists()]:
            yield f"{name}: missing in {missing[0].parent}"
            continue
        old, new = (json.loads(file.read_text(encoding="utf-8")) for file in files)
        for path, left, right in _apart(_plain(old, renamed), _plain(new, {}), ""):
            yield f"{name}: {path}: {left} -> {right}"


def _plain(value: Any, renamed: Mapping[str, str]) -> Any:
    """Return a report with new names and without ports."""
    if isinstance(value, dict):
        return {renamed.get(key, key): _plain(part, renamed) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, renamed) for part in value]
    if isinstance(value, str):
        return renamed.get(value, _ADDRESS.sub("ADDRESS", value))
    return value


def _apart(old: Any, new: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield for each difference its path and both values, ``(nothing)`` if one side has none."""
    if _IGNORED.fullmatch(path):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            below = f"{path}.{key}" if path else key
            if key in old and key in new:
                yield from _apart(old[key], new[key], below)
            elif not _IGNORED.fullmatch(below):
                yield below, _shown(old, key), _shown(new, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _apart(left, right, f"{path}[{index}]")
    elif old != new or type(old) is not type(new):
        yield path, json.dumps(old), json.dumps(new)


def _shown(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key]) if key in values else "(nothing)"


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW")
    return old, new


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fixed runs, or compare two folders."""
    parser = argparse.ArgumentParser(prog="python -m tools.house.fixed_runs")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", type=Path, metavar="DIR", help="run, and write reports here")
    what.add_argument(
        "--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="compare two folders"
    )
    parser.add_argument(
        "--only", nargs="+", choices=list(RUNS), default=list(RUNS), help="only these runs"
    )
    parser.add_argument(
        "--renamed",
        type=_pair,
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="a key or a whole text that has another name in AFTER; may be repeated",
    )
    given = parser.parse_args(arguments)
    if given.output:
        write_reports(given.output, given.only)
        return 0
    for folder in given.compare:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder: write it with --output")
    before, after = given.compare
    found = list(differences(before, after, {**RENAMED, **dict(given.renamed)}))
    print(*found, f"{len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
