"""Arguments of calls: their names in limits of a session, and those that nothing can read."""

from __future__ import annotations

import json

import pytest

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dates import instant_of
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.dialogue.ontology import arguments_of, is_argument
from pytest_dstfuzz.errors import MalformedAnswerError

SCHEMA = {"type": "object", "properties": {"people": {}, "guest": {"type": "object"}}}
TOOLS = (Tool("bank.pay"), Tool("book", parameters=json.dumps(SCHEMA)))


def test_each_tool_and_argument_has_a_name() -> None:
    assert arguments_of(TOOLS) == ("bank.pay", "book", "book.people", "book.guest")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("book", True),
        ("book.people", True),
        ("book.guest.name", True),
        ("book.guest[0].name", True),
        ("bank.pay.amount", True),  # Its schema names no arguments.
        ("book.peple", False),
        ("bok.people", False),
        ("bank", False),
    ],
)
def test_a_typing_error_is_no_argument(name: str, known: bool) -> None:
    assert is_argument(name, TOOLS) == known


@pytest.mark.parametrize("depth", [101, 900, 40_000])
def test_arguments_nested_too_deeply_are_an_answer_that_cannot_be_read(depth: int) -> None:
    text = '{"guests": ' + "[" * depth + "]" * depth + "}"
    call = {"function": {"name": "book", "arguments": text}}
    with pytest.raises(MalformedAnswerError, match="arguments that are"):
        calls_of({"role": "assistant", "tool_calls": [call]})


def test_a_number_of_400_digits_is_no_instant() -> None:
    assert instant_of(10**400) is None
    assert instant_of(True) is None
