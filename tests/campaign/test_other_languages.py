"""A turn in another language is left as it is, counted, and named once."""

from __future__ import annotations

import pytest
from toybots import WordBot, data_of, talk

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.relations.relation import OTHER_LANGUAGE
from pytest_dstfuzz.totals.totals import Totals

DATA = data_of(
    talk("english", "a cheap chinese place in the north please", "and the south is fine"),
    talk("german", "ich suche ein restaurant und brauche keinen parkplatz", "我不要早餐"),
)


@pytest.mark.parametrize("relation", ["metamorphic", "stop-word-dropout", "plug-in"])
def test_it_is_inapplicable_and_counted(relation: str) -> None:
    settings = Settings.of(variants=2, turns=None, relation=relation)
    results = list(Campaign(WordBot(), DATA, settings))
    left = [one for one in results if one.dialogue_id == "german"]
    assert [(one.outcome, one.reason) for one in left] == [("inapplicable", OTHER_LANGUAGE)] * 2
    assert not any(one.variants for one in left)
    assert all(one.outcome != "inapplicable" for one in results if one not in left)
    assert Totals.of(results).in_other_languages == 2


def test_a_profile_without_locks_edits_it() -> None:
    settings = Settings.of(variants=2, turns=None, validity="edit-rate")
    results = list(Campaign(WordBot(), DATA, settings))
    assert all(one.outcome != "inapplicable" for one in results)
    assert Totals.of(results).in_other_languages == 0
