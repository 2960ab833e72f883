"""Tests each wing as a separate package: ``python -m tools.house.wings [NAME ...]``.

For each wing, the tool builds a distribution with the folder and the entry points of the wing, and
one of the core without any wing. It installs both in an empty environment, with the wings that the
wing needs, and runs the tests of the wing there. Nothing is downloaded: the dependencies are those
of the Python that runs this. The tool also tests the core alone: it imports all modules of the
core, and prints the help of pytest and of ``dstfuzz``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

TOP: Final = Path(__file__).parents[2]
#: Wing -> the other wings that it needs.
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "models": ("repair",),
    "agents": ("models", "scale"),
    "games": ("models",),
    "scale": (),
    "papers": ("models", "agents", "games"),
    "audit": (),
    "repair": (),
}
_PACKAGE: Final = "pytest_dstfuzz"
_NAME: Final = "pytest-dstfuzz"
_ENTRY: Final = re.compile(rf'^[\w-]+ = "{_PACKAGE}\.(\w+)[.:]')
_UNWANTED: Final = shutil.ignore_patterns("__pycache__", "*.pyc")
#: Imports all modules, one after the other; ``__main__`` would run.
_IMPORT_ALL: Final = f"""
import importlib, pkgutil, sys
import {_PACKAGE}
found = pkgutil.walk_packages({_PACKAGE}.__path__, "{_PACKAGE}.", onerror=print)
names = [one.name for one in found if not one.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


@dataclass(frozen=True)
class Outcome:
    """The result of the tests of one wing."""

    wing: str
    passed: int
    skipped: int
    failed: int
    seconds: float


def needed(wing: str) -> list[str]:
    """Return a wing and all wings that it needs. A wing comes after those that it needs."""
    found: list[str] = []

    def add(name: str) -> None:
        if name not in found:
            found.append(name)
            for other in NEEDS[name]:
                add(other)

    add(wing)
    return found[::-1]


def entry_points(wing: str) -> str:
    """Return the entry points in ``pyproject.toml`` that belong to a wing."""
    tables: dict[str, list[str]] = {}
    table = ""
    for line in (TOP / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table = line
        elif (entry := _ENTRY.match(line)) and entry[1] == wing:
            tables.setdefault(table, []).append(line)
    return "".join(f"\n{name}\n" + "\n".join(lines) + "\n" for name, lines in tables.items())


def write_core(folder: Path) -> None:
    """Write the sources of the core, without the folders and entry points of the wings."""
    wings = shutil.ignore_patterns(*NEEDS)

    def left_out(place: str, names: list[str]) -> set[str]:
        return _UNWANTED(place, names) | (
            wings(place, names) if Path(place) == TOP / _PACKAGE else set()
        )

    shutil.copytree(TOP / _PACKAGE, folder / _PACKAGE, ignore=left_out)
    for name in ("_dstfuzz_pytestplugin.py", "README.md", "LICENSE"):
        shutil.copy(TOP / name, folder)
    lines = (TOP / "pyproject.toml").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not ((at := _ENTRY.match(line)) and at[1] in NEEDS)]
    (folder / "pyproject.toml").write_text("".join(kept), encoding="utf-8")


def write_wing(wing: str, folder: Path, version: str) -> None:
    """Write the sources of a wing: its folder, and a ``pyproject.toml``."""
    shutil.copytree(TOP / _PACKAGE / wing, folder / _PACKAGE / wing, ignore=_UNWANTED)
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    others = [_NAME, *(f"{_NAME}-{name}" for name in NEEDS[wing])]
    text = f"""[build-system]
requires = {project["build-system"]["requires"]}
build-backend = "hatchling.build"

[project]
name = "{_NAME}-{wing}"
version = "{version}"
requires-python = "{project["project"]["requires-python"]}"
dependencies = {[f"{name}=={version}" for name in others]}
{entry_points(wing)}
[tool.hatch.build.targets.wheel]
only-include = ["{_PACKAGE}/{wing}"]
"""
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def build(source: Path, wheels: Path) -> Path:
    """Build the wheel of a folder of sources."""
    before = set(wheels.glob("*.whl"))
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)], source)
    (made,) = set(wheels.glob("*.whl")) - before
    return made


def link_dependencies(folder: Path) -> None:
    """Fill a folder with links to all installed packages except this one."""
    folder.mkdir()
    places = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    for path in (path for place in places for path in Path(place).iterdir()):
        ours = "dstfuzz" in path.name or path.suffix == ".pth" or path.name == "__pycache__"
        if not ours and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)


def environment(folder: Path, dependencies: Path, wheels: Sequence[Path]) -> Path:
    """Make an environment with some wheels, and return its Python."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    python = folder / "bin" / "python"
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    install = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    _run([sys.executable, *install, "--no-index", *map(str, wheels)], folder)
    return python


def copy_tests(wing: str, folder: Path) -> None:
    """Copy the tests of a wing, with shared modules and the files that the tests read."""
    own = TOP / "tests" / wing

    def left_out(place: str, names: list[str]) -> set[str]:
        within = Path(place) == own or own in Path(place).parents
        others = {name for name in names if name.startswith("test_") and not within}
        return _UNWANTED(place, names) | others

    shutil.copytree(TOP / "tests", folder / "tests", ignore=left_out)
    for name in ("tools", "examples", "docs"):
        shutil.copytree(TOP / name, folder / name, ignore=_UNWANTED)
    shutil.copy(TOP / "pyproject.toml", folder)


def run_tests(wing: str, python: Path, folder: Path) -> Outcome:
    """Run the tests of a wing with a Python, and print the failures."""
    report = folder / "junit.xml"
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    began = time.monotonic()
    subprocess.run(  # noqa: S603 - a Python made here
        [*command, f"tests/{wing}"], cwd=folder, env=_surroundings(python), check=False
    )
    suite = ET.parse(report).getroot()[0] if report.exists() else None  # noqa: S314 - our own
    of = {name: int(suite.get(name, 0)) if suite is not None else 0 for name in _COUNTS}
    failed = of["failures"] + of["errors"] if suite is not None else 1
    passed = of["tests"] - of["skipped"] - failed
    return Outcome(wing, max(passed, 0), of["skipped"], failed, time.monotonic() - began)


_COUNTS: Final = ("tests", "skipped", "failures", "errors")


def check_core(python: Path, folder: Path) -> str:
    """Import the core alone, print its help, and return a sentence about it.

    Raises:
        subprocess.CalledProcessError: a module imports a wing that is missing, or a command fails.
    """
    env = _surroundings(python)
    modules = _run([str(python), "-c", _IMPORT_ALL], folder, env).strip().splitlines()[-1]
    shown = _run([str(python), "-m", "pytest", "--help"], folder, env)
    options = len(set(re.findall(r"^  --dst-([a-z-]+)", shown, re.MULTILINE)))
    commands = _run([str(python), "-m", f"{_PACKAGE}.cli", "--help"], folder, env)
    assert options, "the plugin has no option"  # noqa: S101 - a tool of ours
    assert "evaluate" in commands  # noqa: S101 - likewise
    return (
        f"the core alone: {modules} modules imported, {options} options of pytest, dstfuzz --help"
    )


def _surroundings(python: Path) -> dict[str, str]:
    """Return an environment for commands that must not know this checkout.

    Bytecode is kept beside the Python. Otherwise, each of the hundreds of processes that tests
    start would compile all that it loads.
    """
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {
        "PATH": f"{python.parent}{os.pathsep}{kept.get('PATH', '')}",
        "PYTHONPYCACHEPREFIX": str(python.parents[1] / "bytecode"),
        "OMP_NUM_THREADS": "1",
    }


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


def try_wings(names: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Yield the outcome of each wing.

    ``folder`` is filled with sources, wheels and environments.
    """
    for name in ("core", "wheels"):
        (folder / name).mkdir()
    write_core(folder / "core")
    core = build(folder / "core", folder / "wheels")
    version = core.name.split("-")[1]
    link_dependencies(folder / "dependencies")
    alone = environment(folder / "alone", folder / "dependencies", [core])
    sys.stdout.write(f"{check_core(alone, folder)}\n")
    wheels = {}
    for wing in dict.fromkeys(other for name in names for other in needed(name)):
        write_wing(wing, folder / wing, version)
        wheels[wing] = build(folder / wing, folder / "wheels")
    for wing in names:
        within = folder / f"{wing}-tests"
        copy_tests(wing, within)
        installed = [core, *(wheels[other] for other in needed(wing))]
        python = environment(within / "environment", folder / "dependencies", installed)
        yield run_tests(wing, python, within)


def main(words: Sequence[str] | None = None) -> int:
    """Test the named wings, or all, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NEEDS)}")
    names = parser.parse_args(words).names or list(NEEDS)
    if unknown := [name for name in names if name not in NEEDS]:
        parser.error(f"there is no wing {unknown[0]!r}: name one of {', '.join(NEEDS)}")
    with tempfile.TemporaryDirectory() as folder:
        found = list(try_wings(names, Path(folder)))
    print("| wing | passed | skipped | failed | seconds |\n| --- | --- | --- | --- | --- |")
    for one in found:
        print(f"| {one.wing} | {one.passed} | {one.skipped} | {one.failed} | {one.seconds:.0f} |")
    return int(any(one.failed for one in found))


if __name__ == "__main__":
    sys.exit(main())
