"""Readers of others: found by the files that they know, checked, refused in one message."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from two_columns import TwoColumns

from pytest_dstfuzz import Dialogue, Reader, Turn, UserError, load_dialogues, register_reader
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.dialogue.readers.registry import READERS, find_readers
from pytest_dstfuzz.dialogue.readers.source import ReadOptions, SourceFile

TALKS = "a hotel | Which area?\nthe north | Done.\n\na taxi | Where to?\n"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(READERS, "_registered", {})


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    path = tmp_path / "talks.txt"
    path.write_text(TALKS, encoding="utf-8")
    return path


class Lines(Reader):
    """Something that may do anything wrong."""

    name = "lines"

    def __init__(self, sure: Any = 1, read: Callable[..., Any] = lambda *_: ()) -> None:
        self.detect = lambda *_: sure  # type: ignore[method-assign]
        self.read = read  # type: ignore[method-assign]


def test_a_suite_brings_a_reader(talks: Path) -> None:
    assert load_dialogues(talks).layout == "users"
    assert register_reader(TwoColumns) is TwoColumns
    found = load_dialogues(talks)
    assert (found.layout, found.normalisation, found.split) == ("two-columns", "plain", "test")
    first, second = found.dialogues
    assert [(turn.system, turn.user) for turn in first.turns] == [
        ("", "a hotel"),
        ("Which area?", "the north"),
    ]
    assert second.turns[-1].answer == "Where to?"


def test_a_less_sure_reader_does_not_take_a_known_file(tmp_path: Path) -> None:
    register_reader(Lines(sure=0.7))
    path = tmp_path / "own.jsonl"
    path.write_text('{"dialogue_id": "a", "users": ["hi"]}\n', encoding="utf-8")
    assert load_dialogues(path).layout == "jsonl"


def test_a_guess_counts_for_a_file_alone(talks: Path) -> None:
    dialogue = Dialogue("a", (Turn(0, "", "hi"),))
    register_reader(Lines(sure=0.4, read=lambda *_: [dialogue]))
    assert load_dialogues(talks).layout == "lines"
    with pytest.raises(UserError, match="layout"):
        load_dialogues(talks.parent)


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (Lines(sure="very"), r"detect\(\).*'lines'.*'very'"),
        (Lines(sure=2), r"detect\(\).*'lines'.* 2"),
        (Lines(read=lambda *_: [1]), r"read\(\).*'lines'.*int"),
        (Lines(read=lambda *_: [Dialogue("a", (Turn(1, "", "b"),))]), r"'lines'.*indices"),
        (Lines(read=lambda *_: 1 / 0), r"'lines' raised ZeroDivisionError"),
        (Lines(read=lambda *_: map(sys.exit, [3])), r"'lines' raised SystemExit: 3"),
        (Lines(read=lambda *_: [None]), r"'lines' yielded NoneType"),
    ],
)
def test_a_reader_that_misbehaves(talks: Path, reader: Reader, words: str) -> None:
    register_reader(reader)
    with pytest.raises(UserError, match=words):
        load_dialogues(talks)


def test_a_reader_may_be_closed_before_its_end(talks: Path) -> None:
    dialogue = Dialogue("a", (Turn(0, "", "hi"),))
    register_reader(Lines(read=lambda *_: [dialogue, dialogue]))
    reader = find_readers("lines")[-1]
    found = reader.read(SourceFile("talks.txt", talks), ReadOptions())
    assert next(found) is dialogue
    found.close()  # type: ignore[attr-defined]  # a generator


class Unnamed(Reader):
    """A reader without a name."""


class Jsonl(Reader):
    """A reader with a name that ships."""

    name = "jsonl"


@pytest.mark.parametrize(
    ("given", "words"), [(Unnamed, "a name"), (Jsonl, "'jsonl' ships"), (3, "int")]
)
def test_what_is_no_reader(given: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        register_reader(given)


def test_errors_and_help_list_the_known_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register_reader(TwoColumns)
    path = tmp_path / "notes.md"
    path.write_text("nothing", encoding="utf-8")
    with pytest.raises(UserError, match=r"USER \| BOT"):
        load_dialogues(path)
    with pytest.raises(UserError, match="two-columns"):
        load_dialogues(path, layout="two-colums")
    with pytest.raises(SystemExit):
        main(["check-data", "--help"])
    assert "USER | BOT" in capsys.readouterr().out
