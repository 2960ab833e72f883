"""The tutorials are carried out: files saved, commands run, and what they print compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from pages_of_docs import ROOT, of, texts, title
from processes import run_python

from tools.docs.pages import blocks

#: Page -> exit statuses of its commands, in their order.
TUTORIALS = {
    "tutorials/first-bot.md": [1, 1, 0],
    "tutorials/first-reply.md": [1, 0, 0, 0],
    "tutorials/first-tool-calls.md": [0, 1, 0, 0],
    "tutorials/own-conversations.md": [0, 1, 1],
    "tutorials/into-ci.md": [0, 8],
}


@pytest.mark.nightly
@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_does_what_it_says(page: str, tmp_path: Path) -> None:
    statuses, printed = [], ""
    for block in blocks(texts()[page]):
        if title(block):
            (tmp_path / title(block)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / title(block)).write_text(block.text, encoding="utf-8")
        elif block.language == "shell" and not re.search("^pip |http://", block.text):
            done = run(block.text, tmp_path)
            printed = done.stdout + done.stderr
            statuses.append(done.returncode)
        elif block.language == "text":
            lines = iter(printed.splitlines())
            for line in block.text.splitlines():
                # Parts are left out, nothing is put in, and the order is that of the run.
                assert line in lines, f"not printed, or not in this order: {line!r}\n{printed}"
    assert statuses == TUTORIALS[page]


def test_a_bot_that_replies_needs_no_words_of_others() -> None:
    text = texts()["tutorials/first-reply.md"].lower()
    found = [w for w in ("belief state", "slot", "ontology", "tracker", "label") if w in text]
    assert found == []


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of ours in a folder, in a terminal of 100 columns."""
    program, *words = shlex.split(command)
    module = {"pytest": "pytest", "dstfuzz": "pytest_dstfuzz.cli"}[program]
    plain = ["-p", "no:cacheprovider", "--color=no"] if program == "pytest" else []
    environment = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(folder)}
    return run_python("-m", module, *plain, *words, cwd=folder, env=environment)


def test_every_tutorial_is_carried_out() -> None:
    written = {page for page in texts() if page.startswith("tutorials/")}
    # What the neural one shows, test_readme.py compares.
    assert written == {*TUTORIALS, "tutorials/neural-tracker.md"}
    assert any(page == "tutorials/neural-tracker.md" for page, _ in of("text"))
    assert (ROOT / "Makefile").is_file()
