"""What relations that keep the state may edit: no word that carries a slot."""

from __future__ import annotations

import pytest
from scenes import labelled_talk, scene_of

from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.checks import veto
from pytest_dstfuzz.relations.relation import Replacement

TEXT = "i would really like a cheap room at the golden lion for 3 people . it is not far i hope"
STATE = {"hotel-price": "cheap", "hotel-name": "golden lion"}


@pytest.mark.parametrize(
    ("old", "new", "lock"),
    [
        ("really", "truly", ""),
        ("really ", "", ""),
        ("would really like", "really want", ""),
        ("cheap", "dear", "value"),
        ("a cheap room", "a room", "value"),
        ("cheap room", "room cheap", "value"),
        ("golden lion", "golden um lion", "glued"),
        ("3", "4", "number"),
        ("not", "", "negation"),
        ("really", "not", "negation"),
        ("really", "2", "number"),
        ("really", "south", "value"),
    ],
)
def test_what_is_vetoed(old: str, new: str, lock: str) -> None:
    scene = scene_of(labelled_talk((TEXT, STATE)))
    start = TEXT.index(old)
    # As short as an edit can be where two words are kept: `golden [um ]lion`.
    if lock == "glued":
        replacement = Replacement(start + 7, start + 7, "um ", "x")
    else:
        replacement = Replacement(start, start + len(old), new, "x")
    edits = scene.edits([replacement])
    assert veto(scene, apply_edits(TEXT, edits), edits) == lock


def test_a_word_that_is_allowed_may_be_put_in() -> None:
    scene = scene_of(labelled_talk((TEXT, STATE)))
    edits = scene.edits([Replacement(0, 0, "no , ", "filler")])
    text = apply_edits(TEXT, edits)
    assert veto(scene, text, edits) != ""
    assert veto(scene, text, edits, allowed={"no"}) == ""


def test_edits_must_lead_to_the_text() -> None:
    scene = scene_of(labelled_talk((TEXT, STATE)))
    assert veto(scene, "something else", ()) == "edits"
    assert veto(scene, TEXT, [Edit("toy", "x", 0, 3, "you", "we")]) == "edits"
    assert veto(scene, TEXT, ()) == ""
