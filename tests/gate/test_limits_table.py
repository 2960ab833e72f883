"""The table of limits in pyproject.toml, and the spelling of its values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_dstfuzz.config import parse_option
from pytest_dstfuzz.config.options import table_keys
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.gate.verdict import Gates, Limits, Part, check_names, read_gates

TABLE = """
[tool.dstfuzz.gates]
max-failure-rate = "5%"
max-regression = "2pp"

[tool.dstfuzz.gates.domain.hotel]
max-regression = 0.04

[tool.dstfuzz.gates.slot."hotel-book people"]
max-failure-rate = 0

[tool.dstfuzz.gates.transformation.char-drop]
max-failure-rate = 0.08
max-regression = "3 pp"
"""


def read(folder: Path, text: str) -> Gates:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return read_gates(path)


def test_every_part_has_its_limits(tmp_path: Path) -> None:
    gates = read(tmp_path, TABLE)
    assert gates.whole == Limits(0.05, 0.02)
    assert gates.parts == {
        Part("domain", "hotel"): Limits(None, 0.04),
        Part("slot", "hotel-book people"): Limits(0.0),
        Part("transformation", "char_drop"): Limits(0.08, 0.03),
    }
    assert gates.given


@pytest.mark.parametrize(("text", "limit"), [("5", 5.0), ("7.5", 7.5), ("'7.5'", 7.5), ("0", 0.0)])
def test_estimated_failures_are_a_number_of_1000_turns(
    tmp_path: Path, text: str, limit: float
) -> None:
    gates = read(tmp_path, f"[tool.dstfuzz.gates]\nmax-estimated-failures = {text}\n")
    assert gates.whole == Limits(max_estimated_failures=limit)
    assert gates.of_violations
    assert gates.of_expected
    rise = read(tmp_path, f"[tool.dstfuzz.gates]\nmax-estimated-rise = {text}\n")
    assert rise.whole == Limits(max_estimated_rise=limit)
    assert rise.of_expected
    assert not rise.without_baseline.given


def test_new_weaknesses_are_a_whole_number_of_a_session_with_a_baseline(tmp_path: Path) -> None:
    gates = read(tmp_path, "[tool.dstfuzz.gates]\nmax-new-weaknesses = 2\n")
    assert gates.whole == Limits(max_new_weaknesses=2)
    assert gates.of_violations
    assert not gates.without_baseline.given
    with pytest.raises(UserError, match=r"new-weaknesses: .* must be a whole number"):
        read(tmp_path, "[tool.dstfuzz.gates]\nmax-new-weaknesses = '1.5'\n")


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1\n", "[tool.dstfuzz.gates]\n"])
def test_without_limits_there_is_no_gate(tmp_path: Path, text: str) -> None:
    assert not read(tmp_path, text).given


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-failure-rat = 1", r"key of \[tool.dstfuzz.gates\] .* mean 'max-failure-rate'"),
        ("domains.hotel = {}", "unknown key of .* 'domains'. Did you mean 'domain'?"),
        ("domain.hotel.max = 1", r"unknown key of \[tool.dstfuzz.gates.domain.hotel\] 'max'"),
        ("transformation.char_dorp = {}", "unknown transformation in .* Did you mean 'char_drop'?"),
        ("max-failure-rate = '7'", r"gates\]: max-failure-rate: '7' must be a rate between 0 and"),
        ("slot.a-b.max-regression = '2'", r"slot.a-b\]: max-regression: '2' must be a difference"),
        ("max-estimated-failures = '5%'", "failures: '5%' must be a number from 0 to 1000"),
        ("max-estimated-failures = -1", "'-1' must be a number from 0 to 1000"),
        ("max-estimated-failures = 1001", "'1001' must be a number from 0 to 1000"),
        ("max-estimated-failures = nan", "'nan' must be a number from 0 to 1000"),
        ("domain.hotel.max-estimated-failures = 5", "unknown key of .* 'max-estimated-failures'"),
        ("max-regression = true", "max-regression must be a number or a text .* not bool True"),
        ("max-regression = []", "max-regression must be a number or a text"),
        ("domain = 3", r"\[tool.dstfuzz.gates.domain\] must be a table, not int 3"),
        ("domain.hotel = 3", r"\[tool.dstfuzz.gates.domain.hotel\] must be a table, not int 3"),
        ("= 3", "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path, f"[tool.dstfuzz.gates]\n{text}\n")
    assert str(caught.value).startswith(str(tmp_path / "pyproject.toml"))


def test_a_table_in_the_place_of_another_type(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\[tool.dstfuzz.gates\] must be a table"):
        read(tmp_path, "[tool.dstfuzz]\ngates = 3\n")
    with pytest.raises(UserError, match=r"must be a table, not str 'strict'"):
        read(tmp_path, "[tool]\ndstfuzz = 'strict'\n")
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        read_gates(tmp_path / "pyproject.toml")
    with pytest.raises(UserError, match="cannot read"):
        read_gates(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("reading", [read_gates, table_keys])
def test_a_file_that_is_nested_without_end(
    tmp_path: Path, reading: Callable[[Path], object]
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"x = {'[' * 100_000}", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        reading(path)
    assert str(caught.value) == f"{path} is nested too deeply to be read"


def test_names_of_the_data_are_checked(tmp_path: Path) -> None:
    slots = ("hotel-area", "hotel-book people", "taxi-leaveat")
    check_names(read(tmp_path, TABLE), slots)
    for part, guess in (("domain.hotell", "hotel"), ('slot."taxi-leave at"', "taxi-leaveat")):
        gates = read(tmp_path, f"[tool.dstfuzz.gates.{part}]\nmax-failure-rate = 0.5\n")
        with pytest.raises(UserError, match=f"Did you mean '{guess}'"):
            check_names(gates, slots)


def test_the_domain_of_a_call_is_its_tool(tmp_path: Path) -> None:
    gates = read(tmp_path, "[tool.dstfuzz.gates.domain.book]\nmax-failure-rate = 0.5\n")
    check_names(gates, ("book", "book.people"), ("book",))
    with pytest.raises(UserError, match="Did you mean 'books'"):
        check_names(gates, ("books", "books.people"), ("books",))


@pytest.mark.parametrize(
    ("text", "value"), [("2pp", 0.02), ("2 pp", 0.02), ("0.02", 0.02), ("2%", 0.02), ("0", 0.0)]
)
def test_points_are_written_in_three_ways(text: str, value: float) -> None:
    assert parse_option("max_regression", text, "x") == pytest.approx(value)


@pytest.mark.parametrize("text", ["2", "-1pp", "101pp", "pp", "nan", "2p"])
def test_other_points_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--x: '.*' must be a difference between 0 and 1"):
        parse_option("max_regression", text, "--x")
