"""Prints the measures of the house as a table in Markdown: ``python -m tools.house.measures``.

Lines are all lines of a Python file, and lines of code are neither blank nor comments nor
docstrings. A file belongs to a wing by its path, before the move of the wings and after it
(`tools.house.source_lines.WINGS`). The share of statements is the share that the runs of
`tools.house.ordinary_runs` execute. The files of a turn are the files of the package that one
broken turn needs, from asking to the JSON report: a function in them is called after the collection
(`tools.house.turn_files`). ``--quick`` leaves out the measures that need a run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest_dstfuzz
from tools.house import source_lines
from tools.house.fixed_runs import TOP, environment
from tools.house.ordinary_runs import PACKAGE, TURNS, files_of_turn, measure_runs

#: An option as the help of pytest lists it, at the start of a line.
_OPTION: Final = re.compile(r"^  --dst-([a-z-]+)", re.MULTILINE)


def count_options() -> int:
    """Return how many options of the plugin the help of pytest lists."""
    command = [sys.executable, "-m", "pytest", "--help"]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, cwd=TOP / "examples", env=environment(), capture_output=True, text=True, check=True
    )
    return len(set(_OPTION.findall(done.stdout)))


def rows(*, quick: bool) -> list[tuple[str, str]]:
    """Return the name and the figure of each measure."""
    files = source_lines.python_files(PACKAGE)
    wings: dict[str | None, list[Path]] = {}
    for path in files:
        wings.setdefault(source_lines.wing_of(path, PACKAGE), []).append(path)
    core = wings.pop(None, [])
    wing_files = [path for paths in wings.values() for path in paths]
    inner, outer, all_ = map(source_lines.count, (core, wing_files, files))
    of_wings = ", ".join(
        f"{name} {source_lines.count(wings.get(name, ())).lines:,}" for name in source_lines.WINGS
    )
    tests = source_lines.count(source_lines.python_files(TOP / "tests"))
    found = [
        ("lines of Python: core / wings / all", _three(inner.lines, outer.lines, all_.lines)),
        ("lines of each wing", of_wings),
        ("files: core / wings / all", _three(inner.files, outer.files, all_.files)),
        (
            "lines of import per 100 of code: core / wings / all",
            " / ".join(f"{part.imports_per_100:.1f}" for part in (inner, outer, all_)),
        ),
        ("options on the command line", str(count_options())),
        ("public names", str(len(vars(pytest_dstfuzz)["__all__"]))),
        ("lines of tests", f"{tests.lines:,}"),
        ("files of tests", f"{tests.files:,}"),
    ]
    if quick:
        return found
    executed = measure_runs(files)
    found += [
        (
            "share of statements that ten ordinary runs execute: core / wings / all",
            " / ".join(f"{executed.share(part):.1f} %" for part in (core, wing_files, files)),
        ),
        (
            "files that these runs never touch: core / wings / all",
            _three(*(executed.count_untouched(part) for part in (core, wing_files, files))),
        ),
        (
            f"package files a turn passes: {' / '.join(TURNS)}",
            _three(*(len(files_of_turn(kind)) for kind in TURNS)),
        ),
    ]
    return found


def _three(*figures: int) -> str:
    return " / ".join(f"{figure:,}" for figure in figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.house.measures")
    parser.add_argument("--quick", action="store_true", help="only what needs no run")
    given = parser.parse_args(arguments)
    print("| measure | figure |", "| --- | --- |", sep="\n")
    for name, figure in rows(quick=given.quick):
        print(f"| {name} | {figure} |", flush=True)
    left = source_lines.unmoved(PACKAGE)
    print()
    if left:
        print(
            f"Before the move of the wings, at least in part: not yet moved are {', '.join(left)}."
        )
    else:
        print("After the move of the wings: each of them is in its folder.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
