"""The weakness of a violation of which only texts and changes are kept: the same, or none."""

from __future__ import annotations

import pytest
from violations import Changes, edit, turn, violation

from pytest_dstfuzz.weaknesses.groups import Heard, Key, key_of_id, read, weakness_of
from pytest_dstfuzz.weaknesses.mechanisms import MECHANISMS, OTHER

SAID = "i'd like a taxi at 13:45 please, arrive by 15:00 in the the north"


@pytest.mark.parametrize(
    ("operator", "before", "after", "changes", "known"),
    [
        (
            "char_replace/swap",
            "like",
            "lkie",
            {"taxi-name": (None, "lkie")},
            "misspelt value copied",
        ),
        (
            "char_replace/swap",
            "arrive",
            "arrvie",
            {"taxi-arriveby": ("15:00", None)},
            "slip in key word, value wrong",
        ),
        (
            "char_replace/swap",
            "taxi",
            "txai",
            {"taxi-leaveat": ("13:45", None)},
            "slip in key word, value wrong",
        ),
        (
            "word_drop/stop_word",
            "a ",
            "",
            {"taxi-area": ("dontcare", None)},
            "no preference lost or changed",
        ),
        (
            "char_drop/apostrophe",
            "'",
            "",
            {"taxi-name": ("acorn", None)},
            "name changed or made up",
        ),
        ("word_drop/repeat", "the ", "", {"taxi-name": (None, "acorn")}, "name changed or made up"),
        # Another domain may have had the value, or not.
        ("char_replace/swap", "like", "lkie", {"taxi-area": ("south", None)}, ""),
        ("char_replace/swap", "like", "lkie", {"taxi-leaveat": ("13:45", None)}, ""),
        # It may go on with the name of a slot that nobody knows of here.
        ("char_replace/swap", "like", "lkie", {"taxi-name": ("the lodge area north", None)}, ""),
    ],
)
def test_one_edit_tells_its_weakness(
    operator: str, before: str, after: str, changes: Changes, known: str
) -> None:
    one = violation(SAID, [edit(SAID, operator, before, after)], changes)
    found = weakness_of(1, [Heard("", SAID, one.text)], one.changed_slots)
    whole = turn(SAID, {slot: pair[0] for slot, pair in changes.items() if pair[0]}, one)
    assert found == (Key(known).id if known else "")
    assert found in ("", read(whole, one).key.id)


def test_where_it_cannot_be_told_nothing_is() -> None:
    one = violation(
        SAID, [edit(SAID, "char_replace/swap", "like", "lkie")], {"a-name": ("c", None)}
    )
    changed, heard = one.changed_slots, Heard("hello", SAID, one.text)
    same = heard._replace(seen=SAID)
    assert weakness_of(1, [same, heard], changed)
    assert weakness_of(2, [same, heard], changed) == ""
    assert weakness_of(1, [heard, heard], changed) == ""
    assert weakness_of(1, [heard], (*changed, *changed)) == ""
    assert weakness_of(0, [same], changed) == ""


def test_every_id_names_its_key() -> None:
    for name in (*MECHANISMS, OTHER):
        assert key_of_id(Key(name).id) == Key(name)
    assert key_of_id("cue-word-41bf47") is None
