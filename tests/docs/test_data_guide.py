"""The files that the guide of recorded tool calls shows are read as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages_of_docs import of, title

from pytest_dstfuzz import cli
from pytest_dstfuzz.dialogue.load import load_dialogues

PAGE = "guides/tool-call-data.md"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files of the page into a folder, and go there."""
    for page, block in of("json"):
        if page == PAGE:
            (tmp_path / title(block)).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def test_the_command_prints_what_the_page_shows(
    shown: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check-data", "conversations.jsonl"]) == 0
    (printed,) = (block.text for page, block in of("text") if page == PAGE)
    assert capsys.readouterr().out.strip() == printed.strip()
    assert shown.is_dir()


def test_both_forms_and_the_tools_of_a_file_are_one(shown: Path) -> None:
    claude = shown / "claude.json"
    line = ["convert", "--data", str(claude), "--output", str(shown / "chat.jsonl")]
    assert cli.main(line) == 0
    (own,) = load_dialogues(claude, outcome="tool-calls").dialogues
    (chat,) = load_dialogues(shown / "chat.jsonl", outcome="tool-calls").dialogues
    assert chat == own
    assert own.turns[0].calls == {"book_table[0]": "call 1", "book_table[0].people": "4"}
    bare = shown / "bare.csv"
    bare.write_text("session_id,sender,message\ns1,customer,a table for 4\n", encoding="utf-8")
    found = load_dialogues(bare, outcome="tool-calls", tools=shown / "tools.json")
    assert found.dialogues[0].tools == own.tools
