"""Logs without tool calls: tables of utterances, and texts of users alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError

Write = Callable[[str, Any], Path]


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_columns_of_a_table_go_by_their_names(write: Write, parted: str) -> None:
    rows = [
        ["Body", "when", "Session ID", "Who"],
        ['"a ""large"" pizza', 'please"', "1", "s1", "Customer"],
        ["Which one?", "2", "s1", "bot"],
        ["And the size?", "2", "s1", "bot"],
        ["hello", "3", "s2", "customer"],
        ["Hawaii", "4", "s1", "Customer"],
        ["Done.", "5", "s1", "bot"],
    ]
    rows[1] = [f'"a ""large"" pizza{parted} please"', *rows[1][2:]]
    text = "\r\n".join(parted.join(row) for row in rows)
    found = load_dialogues(write("own.csv", text), outcome="tool-calls")
    first, second = found.dialogues
    assert [(turn.system, turn.user, turn.answer, turn.calls) for turn in first.turns] == [
        ("", f'a "large" pizza{parted} please', None, None),
        ("Which one?\nAnd the size?", "Hawaii", "Done.", None),
    ]
    assert (first.id, second.id, second.turns[0].user) == ("s1", "s2", "hello")
    (note,) = found.notes
    assert "dialogue = 'Session ID', speaker = 'Who', text = 'Body'" in note
    assert "'Customer' is the user, 'bot' is the assistant" in note


@pytest.mark.parametrize(
    ("name", "content", "users"),
    [
        ("own.txt", 'a pizza\n\n  "Hawaii" \n', [["a pizza"], ['"Hawaii"']]),
        ("own.log", "[info] a pizza\n", [["[info] a pizza"]]),
        ("own.jsonl", '"a pizza"\n["Hawaii", "large"]\n', [["a pizza"], ["Hawaii", "large"]]),
        ("own.jsonl", '["a pizza"]\n["Hawaii"]', [["a pizza"], ["Hawaii"]]),
        ("own.json", json.dumps(["a", "b"], indent=1), [["a"], ["b"]]),
        ("own.json", json.dumps([["a", "b"], ["c"]]), [["a", "b"], ["c"]]),
    ],
)
def test_texts_of_users_are_dialogues(
    write: Write, name: str, content: str, users: list[list[str]]
) -> None:
    found = load_dialogues(write(name, content), outcome="tool-calls")
    assert [[turn.user for turn in one.turns] for one in found.dialogues] == users
    assert found.layout == "users"
    assert "only the user" in found.notes[-1]


def test_in_a_folder_a_text_is_no_log(write: Write) -> None:
    write("d/readme.txt", "about the data")
    write("d/words.json", ["a", "b"])
    path = write("d/test.jsonl", {"dialogue_id": "a", "users": ["hi"]})
    assert load_dialogues(path.parent).layout == "jsonl"


@pytest.mark.parametrize("column", ["turn_id", "created_at", "other"])
def test_rows_that_are_not_in_order_are_noted(write: Write, column: str) -> None:
    when = ["3", "2", "4"] if column == "turn_id" else [f"2026-01-0{n}T10:00" for n in (3, 2, 4)]
    rows = [f"a,user,hi {n},{one}" for n, one in enumerate(when)]
    text = "\n".join([f"id,speaker,text,{column}", *rows, f"b,user,hello,{when[1]}"])
    notes = load_dialogues(write("a.csv", text)).notes
    told = "line 3 is earlier than the row before"
    assert any(told in note for note in notes) is (column != "other")
    right = "\n".join([f"id,speaker,text,{column}", rows[1], rows[0], rows[2]])
    assert not any(told in note for note in load_dialogues(write("a.csv", right)).notes)


def test_two_columns_of_one_name_are_refused(write: Write) -> None:
    text = "id,speaker,text,Text\na,user,hi,hello\n"
    with pytest.raises(DataError, match="line 1 has several columns 'text' for the text"):
        load_dialogues(write("a.csv", text))
