"""The words that edits change, without the sentence around them."""

from __future__ import annotations

from pytest_dstfuzz.perturb.words import Edit
from tools.calls.weaknesses import edited_words


def test_each_edit_is_told_by_the_words_around_it() -> None:
    clean = "two rooms in the north"
    edits = (
        Edit("char_drop", "letter", 14, 15, "h", ""),
        Edit("char_drop", "space", 3, 4, " ", ""),
        Edit("word_insert", "again", 8, 8, "", " in"),
    )
    assert list(edited_words(clean, edits)) == [
        "`the` -> `te`",
        "`two rooms` -> `tworooms`",
        "`tworooms` -> `tworooms in`",
    ]
