"""The examples of the page on extending, from an installed package of somebody else."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_of_docs import ROOT, of, title
from processes import run_python

from tools.docs.pages import Block

PAGE = "guides/extending.md"
SHOWN = {title(block): block for page, block in of("python", "toml", "text") if page == PAGE}
EXAMPLES = ("shorthand", "wrong_case", "dialect", "keyword_tracker", "lines_scheme", "vowel_search")
EXAMPLES += ("closed_slots", "other_day", "two_columns")
#: The tracker of the README stands for the reader's own.
BOT: Block = next(block for page, block in of("python") if page == "README.md")


PACKAGE = ROOT / "examples" / "extension"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_the_file_that_is_tested(name: str) -> None:
    shown: Block = SHOWN[f"{name}.py"]
    assert shown.text == (PACKAGE / f"{name}.py").read_text(encoding="utf-8")
    assert len(shown.text.splitlines()) <= 25


def test_the_package_is_described_as_it_is() -> None:
    assert SHOWN["pyproject.toml"].text == (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    assert sorted(path.stem for path in PACKAGE.glob("*.py")) == sorted(EXAMPLES)


def test_the_test_of_a_relation_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE))
    shown: dict[str, Any] = {}
    exec(SHOWN["test_my_relation.py"].text, shown)  # noqa: S102 - the page's own code
    shown["test_my_relation_is_sound"]()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path of imports in which the built package is installed."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(PACKAGE, folder / "source")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    # A wheel without scripts is installed by unpacking it.
    shutil.unpack_archive(wheel, folder / "site", "zip")
    return folder / "site"


@pytest.fixture
def lines() -> Iterator[str]:
    """Address of the service that the page shows, which answers one line of JSON with another."""
    shown: dict[str, Any] = {"__name__": "lines_service"}
    exec(SHOWN["lines_service.py"].text, shown)  # noqa: S102 - ours
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), shown["Lines"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"lines://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def report_of(folder: Path, options: str, installed: Path | None = None) -> dict[str, Any]:
    """Run the built-in suite and return its JSON report."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *shlex.split(options)]
    path = [str(installed or ""), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = run_python(*command, "--dst-report=report.json", cwd=folder, env=env)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


def operators(report: dict[str, Any]) -> set[str]:
    """Operators that made an edit, as ``TRANSFORMATION/OPERATOR``."""
    turns = report["turns"]
    edits = [edit for turn in turns for variant in turn["variants"] for edit in variant["edits"]]
    return {f"{edit['transformation']}/{edit['operator']}" for edit in edits}


def test_a_package_brings_tracker_search_relation_and_operators(
    installed: Path, tmp_path: Path
) -> None:
    report = report_of(
        tmp_path,
        "--dst-model=keywords --dst-search=vowels --dst-relation=closed-slots"
        " --dst-edits=+word_replace/shorthand,+char_replace/wrong_case --dst-turns=150"
        " --dst-validity=strict",
        installed,
    )
    settings = report["settings"]
    assert (settings["model"], settings["search"]) == ("keywords", "vowels")
    assert settings["relation"] == "closed-slots"
    assert {"word_replace/shorthand", "char_replace/wrong_case"} <= operators(report)


def test_a_package_brings_a_relation_that_edits_by_itself(installed: Path, tmp_path: Path) -> None:
    options = "--dst-model=keywords --dst-relation=metamorphic,other-day --dst-turns=20"
    report = report_of(tmp_path, options, installed)
    other = report["relations"][1]
    assert (other["name"], other["side"], other["edits"]) == ("other-day", "should-change", "own")
    # This bot has one slot, the area: the turns give it no day.
    assert other["inapplicable"] == {"the turn gives no slot the value friday": 20}


def test_a_package_brings_a_reader(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "talks.txt").write_text(SHOWN["talks.txt"].text, encoding="utf-8")
    data = report_of(tmp_path, "--dst-model=keywords --dst-data=talks.txt", installed)["data"]
    assert data["layout"] == "two-columns"


def test_a_package_brings_a_kind_of_address_and_a_transformation(
    installed: Path, tmp_path: Path, lines: str
) -> None:
    report = report_of(
        tmp_path,
        f"--dst-model={lines} --dst-edits=dialect --dst-turns=40 --dst-validity=strict",
        installed,
    )
    assert operators(report) == {"dialect/british", "dialect/australian"}


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    done = run_python("-m", "pytest", "-q", "--dst-model=keywords", cwd=tmp_path)
    assert done.returncode == 4
    assert "keywords" in done.stdout + done.stderr


@pytest.mark.nightly
def test_every_command_works_in_a_folder_with_these_files(tmp_path: Path, lines: str) -> None:
    for name, block in SHOWN.items():
        if name.endswith((".py", ".txt")) and not name.startswith("test_"):
            (tmp_path / name).write_text(block.text, encoding="utf-8")
    (tmp_path / "my_bot.py").write_text(BOT.text, encoding="utf-8")
    commands = [
        line.replace("lines://localhost:9000", lines)
        for page, block in of("shell")
        if page == PAGE
        for line in block.text.splitlines()
        if line.startswith("pytest ")
    ]
    assert len(commands) == 9
    for command in commands:
        options = command.removeprefix("pytest ")
        report = report_of(tmp_path, f"{options} --dst-turns=10")
        assert report["turns"], command


def test_for_an_operator_alone_one_line_is_enough(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import shorthand\n", encoding="utf-8")
    (tmp_path / "shorthand.py").write_text(SHOWN["shorthand.py"].text, encoding="utf-8")
    (tmp_path / "my_bot.py").write_text(BOT.text, encoding="utf-8")
    (command,) = (
        block.text for page, block in of("shell") if page == PAGE and "my_bot" in block.text
    )
    report = report_of(tmp_path, command.removeprefix("pytest "))
    assert "word_replace/shorthand" in operators(report)


def test_a_suite_may_return_the_search_itself(installed: Path, tmp_path: Path) -> None:
    for name in ("conftest.py", "test_with_a_search.py"):
        (tmp_path / name).write_text(SHOWN[name].text, encoding="utf-8")
    options = "--dst-model=keywords --dst-turns=20"
    report = report_of(tmp_path, f"{options} test_with_a_search.py", installed)
    made = [variant["text"] for turn in report["turns"] for variant in turn["variants"]]
    (tmp_path / "test_with_a_search.py").unlink()
    named = report_of(tmp_path, f"{options} --dst-search=vowels", installed)
    assert named["settings"]["search"] == "vowels"
    # Another search makes other variants, and so does another number of transformations.
    assert made != [variant["text"] for turn in named["turns"] for variant in turn["variants"]]
