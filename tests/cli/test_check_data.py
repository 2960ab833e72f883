"""``dstfuzz check-data``: what is said of one's own file before anything is tested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import cli

TOOL = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["town"],
    },
}


def call(arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "book", "arguments": json.dumps(arguments)}
    calls = [{"id": "c1", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


MESSAGES = [
    {"role": "user", "content": "a table in oslo"},
    {"role": "assistant", "content": "For how many?"},
    {"role": "user", "content": "six please"},
    call({"town": "oslo", "people": 6}),
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "bye"},
]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Write a file, and return what the command says of it."""

    def run(content: Any, *more: str, name: str = "own.jsonl") -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        assert cli.main(["check-data", str(path), *more]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


def test_what_was_understood_of_a_conversation_with_calls(check: Any) -> None:
    shown = check({"id": "first", "messages": MESSAGES, "tools": [TOOL]})
    assert "own, split test, layout 'messages'" in shown
    assert "dialogues 1, called first" in shown
    assert "turns 3 in all" in shown
    assert "speakers user 3, assistant 2, assistant with calls 1, tool 1" in shown
    assert "tools 1, 1 call" in shown
    assert "book 2 1 1" in shown
    assert "calls recorded after 1 turn, none after 1, unknown for 1" in shown
    assert "locked 2 known values of 2 slots" in shown
    # The number is said as a word.
    assert "50.0 % of 2 values in the labels of 1 turn occur word for word" in shown
    assert "(0 in that turn, 1 before); 100.0 % of these are locked" in shown


def test_what_looks_like_a_fault_is_told(check: Any) -> None:
    shown = check({"messages": [MESSAGES[0], call({"town": "oslo"}), MESSAGES[2]]})
    assert "note Calls have no result before the next user message" in shown


def test_plain_dialogues_and_users_alone_are_described_too(check: Any) -> None:
    line = {"dialogue_id": "a", "users": ["a pizza", "hawaii"], "states": [{}, {"top": "hawaii"}]}
    shown = check(line)
    assert "tools none: the assistant uses its own tools" in shown
    assert "no messages of the assistant" in shown
    assert "states 2 of 2 turns, with 1 slot" in shown
    assert "100.0 % of 1 value in the labels of 1 turn" in shown
    assert "labels none" in check({"dialogue_id": "a", "users": ["a pizza"]})


def test_another_outcome_is_described_by_its_own_labels(check: Any) -> None:
    entry = {"messages": MESSAGES, "tools": [TOOL]}
    assert "replies recorded for 2 of 3 turns" in check(entry, "--outcome", "reply")
    shown = check(entry, "--outcome", "state")
    assert "1 of 3 turns have recorded tool calls, but this run tests belief states" in shown


def test_a_file_that_cannot_be_read_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"messages": 3}')
    assert cli.main(["check-data", str(path)]) == 2
    assert "own.jsonl: messages: 3 instead of a list" in capsys.readouterr().err
