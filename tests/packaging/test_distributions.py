"""The builds: a wheel with its licence and metadata, and a source distribution with all files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What is only of use beside the history of the repository.
LEFT_OUT: frozenset[str] = frozenset()
#: What the build adds.
ADDED = {"PKG-INFO"}


def built(target: str, source: Path, output: Path) -> Path:
    """Build one distribution with the interpreter of the tests; nothing is downloaded."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(output)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (made,) = output.iterdir()
    return made


def tracked() -> list[str]:
    """Return the files of the repository, or skip where there is none: in an unpacked sdist."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no git repository to compare with")
    listed = subprocess.run(
        [git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_a_source_distribution_has_every_tracked_file(tmp_path: Path) -> None:
    wanted = set(tracked())
    # Of the tracked files alone: beside them may lie what a build here takes along.
    source = tmp_path / "source"
    for name in wanted:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    made = built("sdist", source, tmp_path / "dist")
    with tarfile.open(made) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held - ADDED == wanted - LEFT_OUT


def test_a_wheel_has_licence_types_and_metadata(tmp_path: Path) -> None:
    with zipfile.ZipFile(built("wheel", ROOT, tmp_path / "dist")) as archive:
        names = archive.namelist()
        (folder,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
        licence = archive.read(f"{folder}/licenses/LICENSE").decode()
    top = {"pytest_dstfuzz", "_dstfuzz_pytestplugin.py", folder}
    assert {name.partition("/")[0] for name in names} == top
    assert "pytest_dstfuzz/py.typed" in names
    assert "Copyright (c) 2026 the pytest-dstfuzz authors" in licence
    check_metadata(metadata)


def check_metadata(metadata: Message) -> None:
    """The metadata that an index shows is complete and true."""
    assert metadata["License-Expression"] == "MIT"
    assert "LICENSE" in metadata.get_all("License-File", [])
    classifiers = metadata.get_all("Classifier", [])
    assert {"Framework :: Pytest", "Typing :: Typed"} <= set(classifiers)
    minors = re.findall(r"Python :: 3\.(\d+)", "\n".join(classifiers))
    first = re.fullmatch(r">=3\.(\d+)", metadata["Requires-Python"])
    assert first is not None
    assert minors[0] == first[1], "the oldest version that is named is the oldest that is allowed"
    assert minors == [str(number) for number in range(int(first[1]), int(minors[-1]) + 1)]
