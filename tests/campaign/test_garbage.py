"""The search for garbage is put off, and always taken up again."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest
from toybots import WordBot

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.garbage import gc_paused


@gc_paused()
def searched_within(*, fails: bool = False) -> bool:
    with gc_paused():
        pass
    if fails:
        raise ValueError("as asked")
    return gc.isenabled()


def test_no_search_within_and_one_afterwards() -> None:
    assert not searched_within()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="as asked"):
        searched_within(fails=True)
    assert gc.isenabled()


def test_who_searches_by_hand_goes_on_doing_so() -> None:
    gc.disable()
    try:
        searched_within()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"search": "greedy", "validity": "strict"},
        {"search": "bandit"},
        {"search": "noise"},
        {"relation": "value-swap"},
        {"relation": "shuffle"},
    ],
    ids=str,
)
def test_a_campaign_leaves_nothing_that_only_a_search_would_free(options: dict[str, Any]) -> None:
    """While none is made, what dialogues under way held would add up from one to the next."""
    campaign = Campaign(WordBot(), "sample", Settings.of(turns=40, variants=3, **options))
    results = iter(campaign)
    next(results)  # Objects made once, with references to themselves, stay.
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        found = list(results)
        gc.collect()
        left = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert len(found) > 2
    assert {name: many for name, many in left.items() if name.startswith("pytest_dstfuzz")} == {}
