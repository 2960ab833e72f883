"""The sample dialogues with tools are what their script writes, and can be read."""

from __future__ import annotations

from pathlib import Path

from pytest_dstfuzz.dialogue import load
from pytest_dstfuzz.dialogue.load import SAMPLE_TOOLS, load_dialogues
from tools.dialogues.build import main

SHIPPED = Path(load.__file__).parents[1] / "resources" / "dialogues" / SAMPLE_TOOLS / "test.jsonl"


def test_the_script_writes_what_ships(tmp_path: Path) -> None:
    main([str(tmp_path / "test.jsonl")])
    assert (tmp_path / "test.jsonl").read_bytes() == SHIPPED.read_bytes()


def test_the_sample_of_tool_calls_is_that_with_tools() -> None:
    data = load_dialogues("sample", outcome="tool-calls")
    assert data.name == SAMPLE_TOOLS
    assert load_dialogues(SAMPLE_TOOLS, outcome="tool-calls") == data
    assert len(data.dialogues) == 40
    labels = [turn.calls for dialogue in data.dialogues for turn in dialogue.turns]
    assert None not in labels
    assert sum(map(bool, labels)) == 60
    assert {tool.name for dialogue in data.dialogues for tool in dialogue.tools} == {
        *("find_restaurant", "book_table", "get_weather", "book_taxi", "find_books"),
        *("reserve_book", "track_parcel", "book_appointment"),
    }
