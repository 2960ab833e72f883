"""Swaps, stop words, phrases and grammar: what is edited, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.relations.paraphrase import (
    GrammarErrors,
    MaskedReplacement,
    NeighbourSwap,
    Paraphrase,
    PhraseTable,
    PhraseTableRelation,
    StopWordDropout,
    phrase_table,
)

if TYPE_CHECKING:
    from conftest import SceneOf


def said(scene_of: SceneOf, relation: Paraphrase, user: str) -> set[str] | str:
    """What one edit makes of a turn, or why there is none."""
    scene = scene_of(user)
    found = relation.places(scene)
    if isinstance(found, str):
        return found
    return {user[: one.start] + one.after + user[one.end :] for one in found.replacements}


def test_free_neighbours_change_places(scene_of: SceneOf):
    found = said(scene_of, NeighbourSwap(), "Please find a decent hotel in the north.")
    assert found == {
        "Find please a decent hotel in the north.",
        "Please a find decent hotel in the north.",
        "Please find decent a hotel in the north.",
    }


@pytest.mark.parametrize(
    "user",
    ["You can book.", "Not that", "Thank you", "cheap north", "Well, please", "hotel and meal"],
)
def test_some_neighbours_stay(scene_of: SceneOf, user: str):
    assert said(scene_of, NeighbourSwap(), user) == NeighbourSwap.reasons[0]


def test_at_most_one_pair_in_four_words(scene_of: SceneOf):
    scene = scene_of("Please find my sister some decent meal somewhere lovely today")
    found = NeighbourSwap().places(scene)
    assert not isinstance(found, str)
    assert len(found.replacements) > 2
    assert found.most == 2


def test_stop_words_go_with_their_blank(scene_of: SceneOf):
    assert said(scene_of, StopWordDropout(), "A friend wants the menu, not a tour.") == {
        "friend wants the menu, not a tour.",
        "A friend wants menu, not a tour.",
        "A friend wants the menu, not tour.",
    }


@pytest.mark.parametrize(("user", "reason"), [("I am", 0), ("Do you", 0), ("Cheap or dear", 1)])
def test_what_stop_words_are_needed_for(scene_of: SceneOf, user: str, reason: int):
    assert said(scene_of, StopWordDropout(), user) == StopWordDropout.reasons[reason]


def test_what_words_lean_on_stays(scene_of: SceneOf):
    assert "'m hungry today" not in said(scene_of, StopWordDropout(), "I 'm hungry today")


def test_phrases_give_way(scene_of: SceneOf):
    found = said(scene_of, PhraseTableRelation(), "Thank you, I want to see the phone number.")
    assert "Thanks, I want to see the phone number." in found
    assert "Thank you, I wish to see the phone number." in found
    assert "Thank you, I want to see the telephone number." in found


def test_a_phrase_that_holds_a_lock_stays(scene_of: SceneOf):
    assert (
        said(scene_of, PhraseTableRelation(), "I do not want the north")
        == (PhraseTableRelation.reasons[0])
    )


def test_a_phrase_table_of_the_user(tmp_path: Path):
    path = tmp_path / "own.tsv"
    path.write_text("# mine\nextra cheese\tmore cheese\n")
    assert phrase_table(path).others[("more", "cheese")] == (("extra", "cheese"),)
    with pytest.raises(DataError, match="line 1: 'one' is not a pair"):
        PhraseTable.read("one", "own.tsv")
    with pytest.raises(DataError, match=r"cannot read the phrase table .*none\.tsv"):
        phrase_table(tmp_path / "none.tsv")


def test_words_take_the_wrong_form(scene_of: SceneOf):
    assert said(scene_of, GrammarErrors(), "My uncle has two tickets and wanted a map.") == {
        "My uncle have two tickets and wanted a map.",
        "My uncle has two tickets and want a map.",
        "My uncle has two tickets and wanted an map.",
    }
    assert said(scene_of, GrammarErrors(), "In the north") == GrammarErrors.reasons[0]


def test_what_the_model_proposes_is_near_and_means_the_same(scene_of: SceneOf):
    found = said(scene_of, MaskedReplacement(), "Tell me the phone number, have a great day.")
    assert "Tell me the telephone number, have a great day." in found
    assert "Tell me the phone number, have a good day." in found
    # Near to it, and another thing.
    assert not any("postcode" in text for text in found)
    assert said(scene_of, MaskedReplacement(), "The north") == MaskedReplacement.reasons[0]
