"""The search for garbage is put off, and always taken up again."""

from __future__ import annotations

import gc

import pytest

from pytest_dstfuzz.garbage import frozen, gc_paused


@gc_paused()
def searched_within(*, fails: bool = False) -> bool:
    with gc_paused():
        pass
    if fails:
        raise ValueError("as asked")
    return gc.isenabled()


@frozen()
def frozen_within(*, fails: bool = False) -> int:
    if fails:
        raise ValueError("as asked")
    return gc.get_freeze_count()


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


def test_what_is_frozen_thaws() -> None:
    assert frozen_within() > gc.get_freeze_count() == 0
    with pytest.raises(ValueError, match="as asked"):
        frozen_within(fails=True)
    assert gc.get_freeze_count() == 0
