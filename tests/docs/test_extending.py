"""The examples of the page on extending, from an installed package of somebody else."""

from __future__ import annotations

import json
import os
import shlex
import socketserver
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_of_docs import ROOT, of, title

from tools.docs.pages import Block

PAGE = "guides/extending.md"
SHOWN = {title(block): block for page, block in of("python", "toml") if page == PAGE}
EXAMPLES = ("texting", "wrong_case", "dialect", "keyword_tracker", "lines_scheme", "vowel_search")
EXAMPLES += ("closed_slots",)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_the_file_that_is_tested(name: str) -> None:
    shown: Block = SHOWN[f"{name}.py"]
    file = ROOT / "tests" / "extensions" / f"{name}.py"
    assert shown.text == file.read_text(encoding="utf-8")
    assert len(shown.text.splitlines()) <= 25


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as an installed distribution, in a folder for the path of imports."""
    folder = tmp_path_factory.mktemp("installed")
    table = tomllib.loads(SHOWN["pyproject.toml"].text)["project"]
    for name in EXAMPLES:
        (folder / f"{name}.py").write_text(SHOWN[f"{name}.py"].text, encoding="utf-8")
    info = folder / "dstfuzz_examples-1.0.dist-info"
    info.mkdir()
    named = f"Metadata-Version: 2.1\nName: {table['name']}\nVersion: {table['version']}\n"
    (info / "METADATA").write_text(named, encoding="utf-8")
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in table["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(groups, encoding="utf-8")
    return folder


class _Lines(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        said = " ".join(text or "" for text in json.loads(self.rfile.readline()))
        answer = {"hotel-area": "north"} if "north" in said else {}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


@pytest.fixture
def lines() -> Iterator[str]:
    """Address of a service that answers one line of JSON with another."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Lines) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"lines://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def report_of(package: Path, folder: Path, options: str) -> dict[str, Any]:
    """Run the built-in suite and return its JSON report."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [*shlex.split(options), "--dst-report=report.json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT)))}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


def operators(report: dict[str, Any]) -> set[str]:
    """Operators that made an edit, as ``TRANSFORMATION/OPERATOR``."""
    turns = report["turns"]
    edits = [edit for turn in turns for variant in turn["variants"] for edit in variant["edits"]]
    return {f"{edit['transformation']}/{edit['operator']}" for edit in edits}


def test_a_package_brings_tracker_search_relation_and_operators(
    package: Path, tmp_path: Path
) -> None:
    report = report_of(
        package,
        tmp_path,
        "--dst-model=keywords --dst-search=vowels --dst-relation=closed-slots"
        " --dst-only=all,word_replace/texting,char_replace/wrong_case --dst-turns=150",
    )
    settings = report["settings"]
    assert (settings["model"], settings["search"]) == ("keywords", "vowels")
    assert settings["relation"] == "closed-slots"
    assert {"word_replace/texting", "char_replace/wrong_case"} <= operators(report)


def test_a_package_brings_a_kind_of_address_and_a_transformation(
    package: Path, tmp_path: Path, lines: str
) -> None:
    report = report_of(package, tmp_path, f"--dst-model={lines} --dst-only=dialect --dst-turns=40")
    assert operators(report) == {"dialect/british", "dialect/australian"}


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--dst-model=keywords"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "keywords" in done.stdout + done.stderr


def test_a_suite_may_return_the_search_itself(package: Path, tmp_path: Path) -> None:
    for name in ("conftest.py", "test_with_a_search.py"):
        (tmp_path / name).write_text(SHOWN[name].text, encoding="utf-8")
    report = report_of(
        package, tmp_path, "--dst-model=keywords --dst-turns=20 test_with_a_search.py"
    )
    made = [variant["text"] for turn in report["turns"] for variant in turn["variants"]]
    (tmp_path / "test_with_a_search.py").unlink()
    named = report_of(package, tmp_path, "--dst-model=keywords --dst-turns=20 --dst-search=vowels")
    assert named["settings"]["search"] == "vowels"
    # Another search makes other variants, and so does another number of transformations.
    assert made != [variant["text"] for turn in named["turns"] for variant in turn["variants"]]
