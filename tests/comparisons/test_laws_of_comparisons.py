"""The kit for comparisons of others: those that ship pass, and each broken rule is told."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.comparisons.registry import DEFAULT
from pytest_dstfuzz.testing import check_comparison

REPLIES = (
    *("It is open until 6 pm.", "We close at six.", "No, we are closed.", "I don't know."),
    *("Marie Curie won it in 1911 [3].", "The train to Ely leaves at 9:15.", "Yes."),
)


@pytest.mark.parametrize(
    "name",
    ["exact", "numbers", "names", "polarity", "ids", "embedding", "entities", DEFAULT],
)
def test_those_that_ship_pass(name: str) -> None:
    found = check_comparison(name, REPLIES)
    found.assert_passed()
    assert found.passed
    assert found.asked > 20


def test_a_broken_rule_is_told() -> None:
    answers = iter(range(10_000))
    shorter = check_comparison(lambda before, found: len(before) <= len(found), REPLIES)
    never = check_comparison(lambda before, found: before is found and not before)
    fails = check_comparison(lambda before, found: before[0] == found[0])
    moody = check_comparison(
        lambda before, found: next(answers) / 10_000,  # noqa: ARG005 - it looks at nothing
        threshold=2,
    )
    assert any("depends on the order of the texts" in finding for finding in shorter.findings)
    assert any("does not agree with itself" in finding for finding in never.findings)
    assert any("IndexError" in finding for finding in fails.findings)
    assert any(
        "another verdict when they are compared again" in finding for finding in moody.findings
    )
    with pytest.raises(AssertionError, match="the comparison 'lambda' breaks"):
        fails.assert_passed()
