"""Fixtures for the tests of extensions: suites of an own bot, run in a session of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_bot import TALKS, TEST

from pytest_dstfuzz import transformations
from pytest_dstfuzz.selection import select

#: The example package; here its modules are imported one by one, as a suite's own files.
EXAMPLES = Path(__file__).parents[2] / "examples" / "extension"
sys.path.insert(0, str(EXAMPLES))


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of an own bot, beside the examples of extensions."""
    pytester.makepyfile(test_bot=TEST)
    (pytester.path / "talks.jsonl").write_text(TALKS, encoding="utf-8")
    for name in ("vowel_search", "closed_slots"):
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        (pytester.path / f"{name}.py").write_text(source, encoding="utf-8")
    return pytester


@pytest.fixture
def operators_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the operators and transformations that a test registers."""
    transformations.find_operator("word_insert", "filler")  # The shipped ones stay.
    monkeypatch.setattr(transformations, "_OPERATORS", dict(transformations._OPERATORS))
    for registry in (transformations._TRANSFORMATIONS, transformations._FUNCTIONS):
        monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    yield
    select.cache_clear()
