"""Text of data and services reaches a terminal or a CI runner, but never commands it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.github import command
from pytest_dstfuzz.report.page import TerminalPage

#: Text that is likely to hold what must not come through.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\x1b\x07\x9b\r\n\t\x0b\x85\u2028\u2029\u202e\u2066\u200f:#[ \ud800\u00a0"),
        st.sampled_from("abé日💙"),
        st.characters(),
    )
) | st.lists(st.sampled_from(["::error::", " ", "\n", "##[error]", "##vso[x]", ":", "word"])).map(
    "".join
)
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def obeyed(line: str) -> bool:
    """Whether a runner takes a line for a command; blanks are as .NET trims them."""
    return line.strip().startswith("::") or bool(re.search(r"##(\[|vso\[|teamcity\[)", line))


@given(TEXTS)
def test_nothing_is_left_to_obey(text: str) -> None:
    shown = printable(text)
    for char in shown:
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in BIDI
    assert not any(obeyed(line) for line in shown.splitlines())


@given(TEXTS)
def test_what_was_shown_once_is_shown_alike_again(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters=":#")))
def test_usual_text_stays(text: str) -> None:
    assert printable(text) == text


@given(TEXTS, TEXTS, st.integers(40, 120))
def test_a_page_begins_no_line_with_a_command(head: str, text: str, width: int) -> None:
    page = TerminalPage(width)
    page.field(head[:10].replace("\n", ""), text)
    page.line(f"{'x' * (width - 1)} ::error::{text}")
    page.table([("name", "count"), (text.replace("\n", " "), "1")])
    for line in page.lines:
        assert not any(obeyed(part) for part in line.text.splitlines()), line


def test_wrapped_text_keeps_to_the_width() -> None:
    page = TerminalPage(40)
    page.line(f"{'x' * 39} ::error::{'y' * 200}")
    assert max(len(line.text) for line in page.lines) <= 40
    assert "".join(line.text for line in page.lines).startswith(f"{'x' * 33}")


@given(TEXTS)
def test_errors_say_nothing_raw(text: str) -> None:
    for error in (UserError(text), unknown_name("slot", text, ["hotel-area"])):
        assert str(error) == f"{error}" == printable(str(error))


@pytest.mark.parametrize("raw", ["\x1b[2J", "\u202e", "\x9b1m", "\ud800"])
def test_an_annotation_is_one_command(raw: str) -> None:
    line = command("error", f"id{raw}", f"{raw}\n::error::{raw}")
    assert line.startswith("::error title=id")
    assert raw not in line
    assert "\n" not in line
