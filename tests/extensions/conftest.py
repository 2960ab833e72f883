"""What the tests of extensions share: suites of an own bot, run in a session of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from own_bot import TALKS, TEST

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
