"""Rates as they are read and shown: what is shown may be given back as a limit."""

from __future__ import annotations

import pytest
from gate_cases import judged_figure, judged_rate
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.config import parse_option
from pytest_dstfuzz.config.parsers import (
    over,
    over_per_1000,
    parse_limit,
    parse_per_1000,
    per_1000,
    percent,
    under,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.gate.verdict import right_answers
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_figure_copied_from_a_report_is_a_limit_that_holds(whole: int, part: int) -> None:
    rate = min(part, whole) / whole
    shown = percent(rate)
    if shown[0] not in "<>":
        limit = parse_limit(shown)
        assert not over(rate, limit)
        assert not under(rate, limit)
        assert judged_rate(limit, min(part, whole), whole).verdict == "pass"
        right = right_answers(min(part, whole), whole, BELIEF_STATES)
        assert judged_figure("min-accuracy", limit, right).verdict == "pass"


def test_the_limit_of_the_issue() -> None:
    assert judged_rate(0.0851, 4, 47).verdict == "pass"
    assert judged_rate(0.085, 4, 47).verdict == "regression"


@pytest.mark.parametrize("rate", [1e-9, 1 / 20_001, 0.00001])
def test_none_is_none_and_all_is_all(rate: float) -> None:
    assert judged_rate(0.0, 1, round(1 / rate)).verdict == "regression"
    assert percent(rate) == "< 0.01 %"
    assert percent(1 - rate) == "> 99.99 %"
    assert under(1 - rate, 1.0)
    assert not over(0.0, 0.0)
    assert not over(1.0, 1.0)


@given(st.floats(0.01, 999))
def test_estimated_failures_copied_from_a_report_are_a_limit_that_holds(number: float) -> None:
    limit = parse_per_1000(per_1000(number))
    assert not over_per_1000(number, limit)
    assert over_per_1000(number, 0.9 * limit)


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_only_what_is_above_a_number_of_1000_is_over_it(number: float, limit: float) -> None:
    assert number > limit or not over_per_1000(number, limit)


LIMITS = ("max_failure_rate", "min_accuracy", "max_clean_drift", "max_regression")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("text", ["1", "1.0", " 1 ", "1e0"])
def test_a_bare_one_is_refused(name: str, text: str) -> None:
    unit = "pp" if name == "max_regression" else "%"
    with pytest.raises(UserError, match=f"is ambiguous: write 1{unit} or 100{unit}"):
        parse_option(name, text, "--x")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    ("text", "value"), [("1%", 0.01), ("100%", 1.0), ("0.01", 0.01), ("0", 0.0), ("8.51 %", 0.0851)]
)
def test_what_is_clear_is_taken(name: str, text: str, value: float) -> None:
    assert parse_option(name, text, "--x") == pytest.approx(value)


def test_a_percentage_without_its_sign_is_guessed() -> None:
    with pytest.raises(UserError, match=r"'5' must be a rate .* such as 5%: did you mean 5%\?"):
        parse_option("max_failure_rate", "5", "--x")
    for text in ("1e999", "nan", "-1", "101%", "5 percent", "%"):
        with pytest.raises(UserError, match="must be a rate between 0 and 1"):
            parse_option("max_failure_rate", text, "--x")
