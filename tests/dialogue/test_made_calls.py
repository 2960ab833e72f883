"""Calls come back out of an outcome."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome, list_calls

_NAMES = st.text("ab_", min_size=1, max_size=3)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_CALLS = st.builds(ToolCall, _NAMES, st.dictionaries(_NAMES, _VALUES, max_size=3))


@given(calls=st.lists(_CALLS, max_size=4))
def test_calls_come_back(calls: list[ToolCall]) -> None:
    assert list(list_calls(calls_outcome(calls))) == calls


@pytest.mark.parametrize("arguments", [{"a": 1, "a.b": 2}, {"a.b": 1}, {"a[0]": 1}])
def test_names_that_look_like_paths_keep_their_paths(arguments: dict[str, Any]) -> None:
    outcome = calls_outcome([ToolCall("book", arguments)])
    assert calls_outcome(list_calls(outcome)) == outcome
