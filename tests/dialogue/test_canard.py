"""The reader of CANARD, on questions that were written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import answer_of
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from tests.relations.contexts.harbour import entries, write


def test_questions_are_grouped_and_the_head_is_the_opening(tmp_path: Path):
    # The published file has the questions of a dialogue in any order.
    found = load_dialogues(write(tmp_path, entries()[::-1]), "val")
    assert (found.layout, found.normalisation) == ("canard", "plain")
    harbour = next(one for one in found.dialogues if one.id == "C_0")
    assert harbour.turns[0].system == "Lerwick harbour\nHistory"
    assert [turn.user for turn in harbour.turns[:2]] == [
        "Who built the harbour?",
        "When did he build it?",
    ]
    assert answer_of(harbour, 1) == "In 1848."


def test_no_answer_and_an_answer_that_is_not_there_are_told_apart(tmp_path: Path):
    harbour = load_dialogues(write(tmp_path), "val").dialogues[0]
    assert answer_of(harbour, 5) == ""
    assert harbour.turns[6].system == "I don't know."
    assert answer_of(harbour, 6) is None


def test_a_history_that_lacks_rounds_is_one_message(tmp_path: Path):
    damaged = entries()
    del damaged[1]
    with pytest.raises(
        DataError, match=r"dialogue C_0, question 3: its history has 6 entries instead of"
    ):
        load_dialogues(write(tmp_path, damaged), "val")
