"""The search for garbage is put off, and always taken up again."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import run_python
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


RUN = """
import gc, pytest
# A copy of a process counts once.
gc.get_freeze_count = getattr(gc.get_freeze_count, "__wrapped__", gc.get_freeze_count)
{before}
pytest.main(["-q", "--dst-model=bot:track", "--dst-turns=1", "--dst-variants=1"])
print("afterwards:", gc.get_freeze_count() > 0)
"""
AT_THE_END = """
import gc

def pytest_configure(config):
    config.add_cleanup(lambda: print("at the end:", gc.get_freeze_count() > 0))
"""


@pytest.mark.parametrize(
    ("before", "afterwards"), [("gc.unfreeze()", False), ("gc.freeze()", True)]
)
def test_a_run_searches_its_data_at_no_time_and_leaves_the_rest_as_it_was(
    tmp_path: Path, before: str, afterwards: bool
) -> None:
    (tmp_path / "bot.py").write_text("def track(context):\n    return {}\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(AT_THE_END, encoding="utf-8")
    printed = run_python("-c", RUN.format(before=before), cwd=tmp_path).stdout
    assert "at the end: True" in printed, printed
    assert f"afterwards: {afterwards}" in printed
