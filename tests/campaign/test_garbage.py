"""The search for garbage is put off, and always taken up again."""

from __future__ import annotations

import gc

import pytest

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
