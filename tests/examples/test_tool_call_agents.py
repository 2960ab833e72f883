"""The assistants of `examples/tool_calls`, as the tutorial shows them: each fault is found."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from processes import run_python

from tools.docs.pages import blocks

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "tool_calls"
PAGE = ROOT / "docs" / "tutorials" / "first-tool-calls.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the example that modules are imported from."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    monkeypatch.syspath_prepend(tmp_path / "copy")
    yield tmp_path / "copy"
    for name in ("table_service", "table_graph"):
        sys.modules.pop(name, None)


def changes(folder: Path, model: str) -> set[tuple[str, str, str]]:
    """Return tool, argument and what came of it, of each change in the violations of a run."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--dst-model={model}", "--dst-report=report.json", "--dst-repeatable=yes"]
    done = run_python(*command, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text("utf-8"))
    found = [
        change
        for turn in report["turns"]
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
        for change in variant["changed_slots"]
    ]
    return {(one["slot"], str(one["before"]), str(one["after"])) for one in found}


def test_the_tutorial_shows_the_files() -> None:
    shown: dict[str, str] = {}
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if 'title="' in block.info:
            shown.setdefault(block.info.split('title="')[1].split('"')[0], block.text)
    files = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir() if path.is_file()}
    assert shown == {name: text for name, text in files.items() if name != "README.md"}


def test_a_function_loses_an_argument(folder: Path) -> None:
    found = changes(folder, "table_agent:answer")
    assert ("book_table[0].outside", "true", "None") in found


def test_a_service_calls_another_tool(folder: Path) -> None:
    import table_service  # noqa: PLC0415 - of the copy

    table_service.Agent.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), table_service.Agent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = changes(folder, f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    slots = {slot for slot, _, _ in found}
    assert {"cancel_booking[0]", "book_table[0]"} <= slots


def test_a_graph_calls_nothing(folder: Path) -> None:
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    found = changes(folder, "table_graph:answer")
    assert {after for _, _, after in found} == {"None"}
    assert {slot for slot, _, _ in found} >= {"book_table[0]", "cancel_booking[0]"}
